/* SPDX-License-Identifier: MIT
 *
 * The check mode: each sample is compared with a walk over all frames of Python.
 */
#ifndef CHECK_H
#define CHECK_H

#include "threads.h"

void check_context(const struct thread *t, uint32_t context, uint64_t *compared,
		   uint64_t *mismatches);

#endif
