/* SPDX-License-Identifier: MIT
 *
 * The check mode. What a full walk saw at each sample of a stack is kept until the traces are
 * retrieved. Then each trace is compared with it, frame by frame.
 */
#ifndef INCSTACK_HOTSPOT_SEEN_H
#define INCSTACK_HOTSPOT_SEEN_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

struct incstack__seen_frame {
	uint64_t method; /* without its kind */
	int32_t bci;
	uint32_t is_virtual; /* the frame above is inlined into this one */
};

struct incstack__seen_walk;

struct incstack__seen {
	struct incstack__seen_walk *first, **last;
	uint64_t skipped; /* samples that were not recorded, for lack of memory */
};

struct incstack__seen_result {
	uint64_t compared, mismatches, skipped;
	/* The first mismatch: the sample, and the frame in which it differs. */
	uint64_t sample;
	uint32_t frame;
	uint32_t reserved;
	struct incstack__seen_frame expected, traced; /* method 0: there is no such frame */
};

void incstack__seen_init(struct incstack__seen *seen);

/* Begins the record of the sample with this number, counted per stack. Returns the frames to be
 * filled in, innermost first, or null. */
struct incstack__seen_frame *incstack__seen_begin(struct incstack__seen *seen, uint64_t sample,
						  uint32_t count);

/* Compares the traces of the tree with the records, which are freed. `first` is the number of
 * the first trace. Of `method` in the traces only the bits of `mask` count. */
void incstack__seen_compare(struct incstack__seen *seen, const struct incstack_tree *tree,
			    uint64_t first, uint64_t mask, struct incstack__seen_result *result);

/* Drops all records. */
void incstack__seen_drop(struct incstack__seen *seen);

INCSTACK_END_C

#endif
