/* SPDX-License-Identifier: MIT
 *
 * Leaves 0 to 4 frames by longjmp, twice, while their returns are intercepted. Compiled many
 * times, with SCENARIO as the name of the exported function.
 */
#include <alloca.h>
#include <string.h>

#include "flavour.h"

#define NOINLINE __attribute__((noinline))
#define KEEP() __asm__ volatile("" ::: "memory")

flavour_scenario SCENARIO;

struct jump {
	const struct flavour_calls *calls;
	jmp_buf outer, inner;
	void *outer_frame, *inner_frame;
};

static NOINLINE long leave(struct jump *j, int frames, int inner);

/* Two shapes of frames, so that stale slots lie at unlike places. */
static NOINLINE long leave_by_alloca(struct jump *j, int frames, int inner)
{
	char *room = alloca((size_t)frames * 24 + 8);
	memset(room, frames, (size_t)frames * 24 + 8);
	j->calls->sample();
	long result = leave(j, frames - 1, inner);
	KEEP();
	return result + room[0];
}

static NOINLINE long leave(struct jump *j, int frames, int inner)
{
	if (frames > 0) {
		j->calls->sample();
		long result = frames % 2 ? leave_by_alloca(j, frames, inner)
					 : leave(j, frames - 1, inner);
		KEEP();
		return result + 1;
	}
	j->calls->sample();
	j->calls->popping(inner ? j->inner_frame : j->outer_frame);
	if (inner)
		longjmp(j->inner, 1);
	longjmp(j->outer, 1);
}

/* Ordinary calls, over the stack that the jump left behind. */
static NOINLINE long recurse(const struct flavour_calls *calls, int depth)
{
	volatile long filler[7];
	for (int i = 0; i < 7; i++)
		filler[i] = depth;
	calls->sample();
	long result = depth ? recurse(calls, depth - 1) : 0;
	calls->sample();
	return result + filler[depth % 7];
}

static NOINLINE long jump_within(struct jump *j, int frames)
{
	volatile int jumps = 0;
	j->inner_frame = (void *)&jumps;
	if (setjmp(j->inner) == 0 || jumps < 2) {
		j->calls->sample();
		jumps = jumps + 1;
		if (frames)
			leave(j, frames - 1, 1);
		j->calls->popping(j->inner_frame);
		longjmp(j->inner, 1);
	}
	j->calls->sample();
	return recurse(j->calls, 3) + jumps;
}

static NOINLINE long jump_over(struct jump *j, int frames)
{
	volatile long sum = 0;
	volatile int jumps = 0;
	j->outer_frame = (void *)&jumps;
	if (setjmp(j->outer) == 0 || jumps < 2) {
		j->calls->sample();
		jumps = jumps + 1;
		sum = sum + jump_within(j, frames);
		if (frames)
			leave(j, frames - 1, 0);
		j->calls->popping(j->outer_frame);
		longjmp(j->outer, 1);
	}
	j->calls->sample();
	return sum + recurse(j->calls, 5) + jumps;
}

long SCENARIO(const struct flavour_calls *calls, int frames)
{
	struct jump j = {.calls = calls};
	calls->sample();
	long result = jump_over(&j, frames);
	calls->sample();
	result += recurse(calls, 2);
	calls->sample();
	return result;
}
