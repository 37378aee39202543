/* SPDX-License-Identifier: MIT
 *
 * Compares traces with the walks of --crosscheck: a walk of the whole stack at each sample. The
 * recorder compares when it retrieves traces. The reader of a spool compares those that the
 * process did not get to.
 */
#ifndef INCSTACK_TRACEFILE_WALKS_H
#define INCSTACK_TRACEFILE_WALKS_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/incstack.h>

/* The maximum length of a walk. Frames beyond it are not compared. */
enum { INCSTACK__WALK_FRAMES_MOST = (1 << 16) - 64 };

/* The walks, in the order of the traces. Each begins with a word: 0 if there was no walk, else the
 * number of frames plus 1. Then follow the pc and the stack pointer of each frame. */
struct incstack__walks {
	const uint64_t *words;
	size_t size;    /* room, in words */
	uint64_t count; /* walks */
};

/* Returns how many words a walk of so many frames takes. */
static inline size_t incstack__walk_words(size_t frames)
{
	return 1 + 2 * frames;
}

/* Compares traces with walks. Counts the traces that have a walk, and those that differ from it. */
void incstack__walks_compare(const struct incstack__walks *walks, const struct incstack_tree *tree,
			     uint64_t *compared, uint64_t *mismatches);

#endif
