/* SPDX-License-Identifier: MIT
 *
 * What --crosscheck compares traces with: the walk of the whole stack at each sample. The
 * recorder compares when traces are retrieved, and the reader of a spool those that the
 * process had no time for.
 */
#ifndef INCSTACK_HEAP_WALKS_H
#define INCSTACK_HEAP_WALKS_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/incstack.h>

/* A longer walk is cut there. The frames beyond it are not compared. */
enum { INCSTACK__WALK_FRAMES_MOST = (1 << 16) - 64 };

/* One for each trace, in their order: a word, which is 0 where there was no walk, else 1 more
 * than the number of frames; then the pc and the stack pointer of each frame. */
struct incstack__walks {
	const uint64_t *words;
	size_t size;    /* words there are at most */
	uint64_t count; /* walks */
};

/* What a walk of so many frames takes. */
static inline size_t incstack__walk_words(size_t frames)
{
	return 1 + 2 * frames;
}

/* Adds the traces that have a walk, and those that differ from it. */
void incstack__walks_compare(const struct incstack__walks *walks, const struct incstack_tree *tree,
			     uint64_t *compared, uint64_t *mismatches);

#endif
