/* SPDX-License-Identifier: MIT
 *
 * toyvm_walk FRAMES [LAPS]: walks a stack of that many frames as the collector does, LAPS times,
 * with a barrier in every return slot. Prints what a frame costs. A test counts the instructions of
 * walk_all under callgrind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vm.h"

static const char text[] = "def down(n) { yield(); if (n < 1) { return 0; }\n"
			   "  return down(n - 1) + 1; }\n"
			   "def main(n) { return down(n); }\n";

static uint64_t frames, laps = 1, seen, barriers;
static double nanoseconds;

/* Walks all frames as the VM does, which reads each slot through the library. */
__attribute__((noinline)) static uint64_t walk_all(struct fiber *f)
{
	struct frame frame;
	uint64_t count = 0;
	frame_first(f, &frame);
	do
		count += (uint64_t)frame.count;
	while (frame_next(f, &frame));
	return count;
}

static uint64_t count_barriers(struct fiber *f)
{
	struct frame frame;
	uint64_t count = 0;
	frame_first(f, &frame);
	do
		count += has_barrier(frame.slot);
	while (frame_next(f, &frame));
	return count;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Takes a sample at every depth on the way down. At the deepest frame the walk follows. */
static void at_poll(struct fiber *f)
{
	const struct incstack_top top = {.pc = f->pc, .sp = f->sp, .fp = f->fp};
	if (seen)
		return;
	if (incstack_stack_reserve(f->stack, 4096) || incstack_stack_sample(f->stack, 1, 1, &top))
		COUNT(mismatches);
	if ((uint64_t)(f->shadow - f->shadow_base) < frames)
		return;
	barriers = count_barriers(f);
	nanoseconds = now();
	for (uint64_t i = 0; i < laps; i++)
		seen = walk_all(f);
	nanoseconds = now() - nanoseconds;
}

static void nothing(struct vm *vm)
{
	(void)vm;
}

int main(int argc, char **argv)
{
	static const struct sampling sampling = {nothing, nothing, at_poll};
	struct schedule schedule = {
		.distance = 1, .threads = 1, .compile_after = 2, .sampling = &sampling};
	struct parse_error error;
	frames = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	if (argc > 2)
		laps = strtoull(argv[2], NULL, 0);
	if (argc > 3 || frames < 3 || frames > 15000 || !laps) {
		fputs("usage: toyvm_walk FRAMES [LAPS]; 3 to 15000 frames\n", stderr);
		return 2;
	}
	struct program *p = program_parse(text, strlen(text), &error);
	if (!p)
		return 1;
	vm_run(p, &schedule, 1, (int64_t)frames, false);
	program_free(p);
	printf("frames=%llu barriers=%llu mismatches=%llu ns_per_frame=%.2f\n",
	       (unsigned long long)seen, (unsigned long long)barriers,
	       (unsigned long long)counters.mismatches,
	       nanoseconds / (double)laps / (double)(seen ? seen : 1));
	return counters.mismatches || seen < frames || barriers + 2 < seen;
}
