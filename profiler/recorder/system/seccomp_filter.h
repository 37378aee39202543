/* SPDX-License-Identifier: MIT
 *
 * What a seccomp filter would do to a system call, found out without loading it.
 */
#ifndef INCSTACK_HEAP_SECCOMP_FILTER_H
#define INCSTACK_HEAP_SECCOMP_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

/* Runs the filter over one call and stores its result (SECCOMP_RET_*). Negative: the kernel
 * would not load such a filter. Thread: any. Signal: yes. Allocates: no. Blocks: no. */
int incstack__seccomp_run(const struct sock_filter *filter, size_t count,
			  const struct seccomp_data *call, uint32_t *result);

/* Whether a call with that result is made or returns an error. In both cases the program is not
 * ended, and none of its handlers runs. */
bool incstack__seccomp_survives(uint32_t result);

#endif
