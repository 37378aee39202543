/* SPDX-License-Identifier: MIT
 *
 * Checks the frame iterator: over a stack that was just sampled it must show the frames of the
 * oracle's record, and the kind of each as the VM's own walk knows it.
 */
#include <stdio.h>

#include <incstack/frames.h>

#include "vm.h"

static uint32_t kind_of(const struct frame *frame, int i)
{
	if (i + 1 < frame->count)
		return INCSTACK_KIND_INLINED;
	if (frame->blob)
		return INCSTACK_KIND_COMPILED;
	return frame->frames[i].method->native ? INCSTACK_KIND_WRAPPER : INCSTACK_KIND_INTERPRETED;
}

/* The iterator shows this entry of the record next. */
static bool shows(struct incstack_frames *frames, uint64_t entry)
{
	return incstack_frames_next(frames) > 0 && frames->function == entry >> 32 &&
	       frames->position == (int32_t)entry;
}

/* entries[0] is the base, which the VM's own walk does not show. */
static bool shows_kinds(struct fiber *f, struct incstack_frames *frames, const uint64_t *entries,
			size_t count)
{
	struct frame own;
	bool more = f->pc != stubs.base;
	if (more)
		frame_first(f, &own);
	for (; more; more = frame_next(f, &own))
		for (int i = 0; i < own.count; i++)
			if (count-- < 2 || !shows(frames, entries[count]) ||
			    frames->kind != kind_of(&own, i) || frames->frame.sp == 0)
				return false;
	return count == 1 && shows(frames, entries[0]) && incstack_frames_next(frames) == 0;
}

/* The same without the kinds, where methods decode to frames that the VM does not have. */
static bool shows_entries(struct incstack_frames *frames, const uint64_t *entries, size_t count)
{
	while (count-- > 0)
		if (!shows(frames, entries[count]))
			return false;
	return incstack_frames_next(frames) == 0;
}

/* Walks twice from the top, with the state of the stack or without it. */
void iterate(struct fiber *f, const struct incstack_top *top, const uint64_t *entries, size_t count)
{
	const bool with_state = f->linked || count % 2;
	const struct incstack_frames_place place = {.stack = with_state ? f->stack : NULL,
						    .runtime = f->vm->runtime,
						    .low = f->low,
						    .high = f->high};
	struct incstack_frames frames;
	bool agrees = !incstack_frames_begin(&frames, &place, top) &&
		      (f->vm->schedule.more_frames || shows_kinds(f, &frames, entries, count));
	agrees = agrees && !incstack_frames_begin(&frames, &place, top) &&
		 shows_entries(&frames, entries, count);
	COUNT(walks);
	if (!agrees && COUNT(mismatches) < 3)
		fprintf(stderr, "the frame iterator shows another stack (%zu frames)\n", count);
}
