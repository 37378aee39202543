/* SPDX-License-Identifier: MIT
 *
 * Which bytes of the live blocks were in memory at a moment, and what the rest of the process's memory was. A page that
 * has several blocks is split by bytes: a block's resident bytes are those of its bytes that lie on resident pages.
 */
#ifndef INCSTACK_TRACEFILE_RESIDENT_H
#define INCSTACK_TRACEFILE_RESIDENT_H

#include "moment.h"

/* A live block. */
struct incstack__resident_block {
	uint64_t low;
	uint64_t bytes;
	uint64_t
		weight; /* the bytes that it stands for: more than its own if only some are recorded */
	uint32_t node; /* of its context */
};

/* Who has memory that no live block has. */
enum incstack__owner {
	INCSTACK__OWNER_ALLOCATOR, /* malloc, or what replaces it */
	INCSTACK__OWNER_STACKS,
	INCSTACK__OWNER_FILES, /* written data of the program and its libraries, and their .bss */
	INCSTACK__OWNER_OTHER, /* mappings that the program has made itself */
	INCSTACK__OWNERS,
};

struct incstack__resident {
	/* By node, in the unit of weights; null: the trace has no moment. */
	uint64_t *resident;
	uint64_t *swapped;

	/* Of all live blocks. Only `requested`, `live` and `live_swapped` are weights. */
	uint64_t requested;
	uint64_t live; /* resident */
	uint64_t live_swapped;
	uint64_t live_anonymous; /* bytes of blocks on anonymous pages */
	uint64_t outside;        /* bytes of blocks that no mapping has */

	/* Of the areas in which the allocator hands out blocks, and of its arenas. */
	uint64_t held;       /* address space, also what was never touched */
	uint64_t held_pages; /* anonymous pages that are resident, in bytes */
	uint64_t shared;     /* of these: bytes between live blocks, on pages that have some */

	uint64_t rest[INCSTACK__OWNERS]; /* resident anonymous bytes that no live block has */
	uint64_t rest_swapped[INCSTACK__OWNERS]; /* swapped bytes, likewise */
	uint64_t anonymous;                      /* all resident anonymous bytes */
	uint64_t common;                         /* of these: on pages that are not exclusive */
	uint64_t file;                           /* resident bytes of files and of shared memory */
};

/* Sorts the blocks, and adds all up. `nodes` is the number of nodes. Returns 0 or INCSTACK_ENOMEM. Free *resident in
 * each case. */
int incstack__resident_find(struct incstack__resident *resident,
			    const struct incstack__moment *moment,
			    struct incstack__resident_block *blocks, size_t count, uint32_t nodes);
void incstack__resident_free(struct incstack__resident *resident);

#endif
