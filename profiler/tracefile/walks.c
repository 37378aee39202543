/* SPDX-License-Identifier: MIT
 *
 * Compares traces with walks, frame by frame; see walks.h.
 */
#include <stdbool.h>

#include "walks.h"
#include "format.h"

typedef struct incstack_frame_object object;

/* Returns the index of o in the walk. The trace lacks the callers up to o, because they were not
 * captured yet when the process was killed. The walk has them. */
static size_t behind_gap(const uint64_t *frames, size_t at, size_t count, const object *o)
{
	while (at < count && frames[2 * at + 1] != o->address)
		at++;
	return at;
}

static bool same(const uint64_t *frames, size_t count, const object *o)
{
	size_t at = 0;

	for (; o; o = o->parent, at++) {
		if (o->function == INCSTACK__TRACEFILE_GAP_PC) {
			o = o->parent;
			if (!o)
				return true;
			at = behind_gap(frames, at, count, o);
		}
		if (at == INCSTACK__WALK_FRAMES_MOST)
			return true;
		if (at == count || frames[2 * at] != o->function ||
		    frames[2 * at + 1] != o->address)
			return false;
		/* Where code has no unwind rules, both walks guess, each in its own way. */
		if (o->flags & (INCSTACK_OBJECT_TRUNCATED | INCSTACK_OBJECT_POINTER))
			return true;
	}
	return at == count;
}

void incstack__walks_compare(const struct incstack__walks *walks, const struct incstack_tree *tree,
			     uint64_t *compared, uint64_t *mismatches)
{
	const struct incstack_trace *trace = tree->traces;
	size_t at = 0;

	for (uint64_t i = 0; i < walks->count && trace && at < walks->size; i++) {
		const uint64_t word = walks->words[at++];
		const uint64_t frames = word != 0 ? word - 1 : 0;

		if (frames > (walks->size - at) / 2)
			return;
		if (word != 0 && trace->top->function != INCSTACK__TRACEFILE_GAP_PC) {
			*compared += 1;
			*mismatches += !same(walks->words + at, frames, trace->top);
		}
		at += 2 * frames;
		trace = trace->next;
	}
}
