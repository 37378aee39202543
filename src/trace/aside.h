/* SPDX-License-Identifier: MIT
 *
 * What is done about an unwinder whose functions cannot be called.
 */
#ifndef INCSTACK__ASIDE_H
#define INCSTACK__ASIDE_H

#include <stdint.h>

void incstack__step_aside(const uintptr_t *frame);
void incstack__resume_aside(void *exception, const uintptr_t *frame);

#endif
