/* SPDX-License-Identifier: MIT
 *
 * How much each thread has allocated, or how much time it has used; and how many allocations had which size.
 */
#ifndef INCSTACK_TRACEFILE_SHARES_H
#define INCSTACK_TRACEFILE_SHARES_H

#include "base/table.h"

struct incstack__share_of_thread {
	uint32_t number; /* the recorder's */
	uint64_t calls;
	uint64_t bytes;
	uint64_t live; /* of what the thread allocated, whoever frees it */
};

/* Class c has the sizes from 2^(c-1) to 2^c - 1 bytes; class 0 has size 0. The last class has all larger ones. */
#define INCSTACK__SHARES_SIZES 48u
struct incstack__share_of_size {
	uint64_t calls;
	uint64_t bytes;
};

struct incstack__shares {
	struct incstack__share_of_thread *threads; /* in the order of their first events */
	size_t thread_count, thread_room;
	uint32_t latest; /* the thread that was found last */
	struct incstack__table table;
	struct incstack__share_of_size sizes[INCSTACK__SHARES_SIZES];
};

int incstack__shares_init(struct incstack__shares *shares);
void incstack__shares_free(struct incstack__shares *shares);
/* Returns where threads[] has a thread, which is added if it is new. INCSTACK__NONE: no memory. */
uint32_t incstack__shares_thread(struct incstack__shares *shares, uint32_t number);
/* Counts calls that requested `size` bytes each. */
void incstack__shares_size(struct incstack__shares *shares, uint64_t size, uint64_t calls,
			   uint64_t bytes);

#endif
