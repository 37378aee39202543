/* SPDX-License-Identifier: MIT
 *
 * The meter, with a clock of the test's own: random programs, which keep a record of their calls and times.
 */
#include <check.h>
#include <stdbool.h>
#include <string.h>

#include <incstack/instrument.h>

#include "metered.h"
#include "run_suite.h"

enum { CALLED = 4, RANDOM_PROGRAMS = 60 };

/* The record that a program makes of itself. */
struct recorded {
	int parent, method;
	uint64_t timed, counted, own;
};

static struct {
	struct recorded contexts[4096];
	int count;
	int path[64], frames[64], depth; /* contexts of the open calls */
	bool is_timed[64];
	uint32_t mode[METHODS];
	uint64_t events, seed;
	bool unseen, descends;
} program;

static uint32_t below(uint32_t n)
{
	program.seed = program.seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((program.seed >> 33) % n);
}

static int context_of(int parent, int method)
{
	for (int i = 0; i < program.count; i++)
		if (program.contexts[i].parent == parent && program.contexts[i].method == method)
			return i;
	ck_assert_int_lt(program.count, 4096);
	program.contexts[program.count] = (struct recorded){.parent = parent, .method = method};
	return program.count++;
}

/* The clock runs for the innermost timed call. */
static void spend(uint64_t ticks)
{
	int at = program.depth - 1;

	now += ticks;
	while (at >= 0 && !program.is_timed[at])
		at--;
	if (at >= 0)
		program.contexts[program.path[at]].own += ticks;
}

static void call(int method, int frame)
{
	const int parent = program.depth > 0 ? program.path[program.depth - 1] : -1;
	int context;

	if (program.mode[method] != INCSTACK_METER_OFF && (program.depth > 0 || method == 0)) {
		context = context_of(parent, method);
		program.path[program.depth] = context;
		program.frames[program.depth] = frame;
		program.is_timed[program.depth] = program.mode[method] == INCSTACK_METER_TIMED;
		if (program.is_timed[program.depth])
			program.contexts[context].timed++;
		else
			program.contexts[context].counted++;
		program.depth++;
	}
	enter(method, (uintptr_t)frame);
	program.events++;
}

static void run(int depth, int frame, int *abandon);

/* A callee, which may be left by a jump that nobody reports. */
static void run_callee(int depth, int frame, int *abandon)
{
	const int open = program.depth, method = (int)below(CALLED);

	call(method, frame);
	run(depth + 1, frame, abandon);
	if (*abandon > 0) {
		--*abandon;
		return;
	}
	if (program.depth > open)
		program.depth = open;
	leave(method, (uintptr_t)frame);
}

static void run(int depth, int frame, int *abandon)
{
	const int open = program.depth;

	for (uint32_t i = below(depth < 4 ? 5 : 2) + 1; i > 0; i--) {
		spend(below(100));
		if (depth < 8 && below(3))
			run_callee(depth, frame - 16 - (int)below(3) * 16, abandon);
		if (*abandon > 0)
			return;
		/* Here the jump has arrived. Without descending frames the meter learns it at the exit. */
		if (program.depth > open && program.descends) {
			incstack_meter_unwinding_to(thread, (uintptr_t)frame);
			program.depth = open;
		}
		if (program.depth > open)
			return;
	}
	if (program.unseen && depth > 2 && below(20) == 0)
		*abandon = 1 + (int)below(2);
}

static void compare(void)
{
	struct incstack_meter_snapshot *snapshot;
	struct incstack_meter_context context = {.size = sizeof(context)};
	int known[4096];
	uint32_t i;

	ck_assert_int_eq(incstack_meter_snapshot_create(meter, 0, &snapshot), 0);
	for (i = 0; incstack_meter_snapshot_context(snapshot, i, &context) == 0; i++) {
		const int parent =
			context.parent == INCSTACK_METER_NONE ? -1 : known[context.parent];
		const struct recorded *right;

		ck_assert_uint_lt(i, 4096);
		known[i] = context_of(parent, (int)context.function);
		right = &program.contexts[known[i]];
		ck_assert_uint_eq(context.timed, right->timed);
		ck_assert_uint_eq(context.calls, right->timed + right->counted);
		ck_assert_uint_eq(context.own_ns, right->own);
	}
	ck_assert_int_eq((int)i, program.count);
	incstack_meter_snapshot_destroy(snapshot);
}

START_TEST(random_programs)
{
	memset(&program, 0, sizeof(program));
	program.seed = (uint64_t)_i * 7919 + 3;
	program.descends = _i % 2;
	program.unseen = program.descends && _i % 3 == 0;
	create(program.descends ? INCSTACK_METER_FRAMES_DESCEND : 0, 0, 0);
	for (int turn = 0; turn < 12; turn++) {
		int abandon = 0;

		call(0, 1000000);
		run(0, 1000000, &abandon);
		program.depth = 0;
		leave(0, 1000000);
		spend(1000);
		for (int i = 1; i < METHODS && below(2); i++) {
			const int changed = (int)below(CALLED - 1) + 1;

			program.mode[changed] = below(3);
			incstack_meter_method_set_mode(methods[changed], program.mode[changed]);
		}
		compare();
	}
	ck_assert_uint_gt(program.events, 200);
	ck_assert_uint_eq(stats_now().unmatched, 0);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("random calls");
	TCase *random = tcase_create("random");

	tcase_add_checked_fixture(random, NULL, teardown);
	tcase_add_loop_test(random, random_programs, 0, RANDOM_PROGRAMS);
	suite_add_tcase(suite, random);
	return suite;
}

int main(void)
{
	return run_suite(make_suite());
}
