/* SPDX-License-Identifier: MIT
 *
 * libc's own functions for threads. The program may have a library that replaces them, as it may replace
 * those of kernel.h. They are called in events, and the kernel does not have them.
 */
#ifndef INCSTACK_RECORDER_LIBC_H
#define INCSTACK_RECORDER_LIBC_H

#include <pthread.h>

struct incstack__libc {
	int (*setcancelstate)(int state, int *before);
	int (*setcanceltype)(int type, int *before);
	int (*setspecific)(pthread_key_t key, const void *value);
};

extern struct incstack__libc incstack__libc;

/* Called once, before the first use. What libc does not have is found where the dynamic linker finds
 * it for everybody. */
void incstack__libc_find(void);

#endif
