/* SPDX-License-Identifier: MIT
 *
 * Tests setjmp and longjmp over live barriers: out of 0 to 4 frames, twice, in code of both
 * compilers at every level of optimization. An announced jump loses nothing. After an
 * unannounced one, traces are prefixes, and these are counted.
 */
#include <alloca.h>

#include "flavour.h"
#include "../unit/run_suite.h"
#include "traced.h"

/* FLAVOURS is a list F(name) made by the build. */
#define F(name) extern flavour_scenario name;
FLAVOURS
#undef F
#define F(name) {#name, name},
static const struct {
	const char *name;
	flavour_scenario *run;
} flavours[] = {FLAVOURS};
enum { FLAVOUR_COUNT = sizeof(flavours) / sizeof(flavours[0]) };

static const unsigned distances[] = {0, 1, 2, 3, 6};
enum { DISTANCES = 5, FRAMES = 5, LEFT_OUT = 9, EVENTS = DISTANCES * FRAMES * LEFT_OUT };

static void announce(void *target)
{
	ck_assert_int_eq(incstack_stack_unwinding_to(traced_stack, (uintptr_t)target), 0);
}

static void say_nothing(void *target)
{
	(void)target;
}

/* The first samples are left out, so that the first barrier comes anywhere. */
static int left_out;
static void sample(void)
{
	if (--left_out < 0)
		traced_sample();
}

static const struct flavour_calls announced = {sample, announce};
static const struct flavour_calls unannounced = {sample, say_nothing};

/* recurse(d) is d(d+1)/2; within: 2 jumps; over: twice within, 2 jumps. */
static const long expected = 2 * (6 + 2) + 15 + 2 + 3;

struct event {
	unsigned distance;
	int frames, leave_out;
};

static struct event event_of(int i)
{
	return (struct event){distances[i % DISTANCES], i / DISTANCES % FRAMES,
			      i / DISTANCES / FRAMES};
}

static void jump(int flavour, struct event e, const struct flavour_calls *calls,
		 enum incstack_mode mode)
{
	traced_open(e.distance, mode);
	left_out = e.leave_out;
	ck_assert_int_eq(flavours[flavour].run(calls, e.frames), expected);
	ck_assert_int_eq(incstack__stack_verify(traced_stack), 0);
}

START_TEST(announced_loses_nothing)
{
	uint64_t returns = 0, unwound[DISTANCES] = {0};
	for (int i = 0; i < EVENTS; i++) {
		jump(_i, event_of(i), &announced, INCSTACK_MODE_PATCH);
		ck_assert_int_eq(traced_check(), 0);
		struct incstack_stats stats = traced_stats();
		ck_assert_uint_eq(stats.truncated, 0);
		ck_assert_uint_eq(stats.stale, 0);
		returns += stats.returns;
		unwound[i % DISTANCES] += stats.unwound;
		traced_close();
	}
	ck_assert_uint_gt(returns, EVENTS);
	for (int i = 0; i < DISTANCES - 1; i++)
		ck_assert_uint_gt(unwound[i], 0);
}
END_TEST

START_TEST(unannounced_is_counted)
{
	int truncated = 0;
	for (int i = 0; i < EVENTS; i++) {
		jump(_i, event_of(i), &unannounced, INCSTACK_MODE_PATCH);
		int here = traced_check();
		struct incstack_stats stats = traced_stats();
		ck_assert_int_eq(here > 0, stats.truncated > 0);
		ck_assert(!here || stats.stale > 0);
		truncated += here;
		traced_close();
	}
	ck_assert_int_gt(truncated, 0);
}
END_TEST

/* Without barriers a jump needs no special treatment. */
START_TEST(validate_loses_nothing)
{
	for (int i = 0; i < EVENTS; i += DISTANCES) {
		jump(_i, event_of(i), &unannounced, INCSTACK_MODE_VALIDATE);
		ck_assert_int_eq(traced_check(), 0);
		traced_close();
	}
}
END_TEST

/* A hole in the second activation shows the thunk that the first one left behind,
 * while the frames around it were called from another place. */
#define NOINLINE __attribute__((noinline))
static jmp_buf here;
enum ending { RETRIEVE, ANNOUNCE, SET_MODE };

static NOINLINE void sample_and_leave(int jump)
{
	traced_sample();
	if (jump)
		longjmp(here, 1);
}

static NOINLINE int with_hole(size_t hole, enum ending ending)
{
	char *memory = alloca(hole);
	__asm__ volatile("" : : "r"(memory) : "memory");
	if (hole < 64)
		sample_and_leave(1);
	else if (ending == RETRIEVE)
		return traced_check();
	else if (ending == ANNOUNCE)
		announce(__builtin_frame_address(0));
	else
		ck_assert_int_eq(incstack_stack_set_mode(traced_stack, INCSTACK_MODE_FULL), 0);
	return traced_check();
}

static NOINLINE int call_twice(enum ending ending)
{
	volatile int result = 0;
	if (setjmp(here) == 0)
		result = with_hole(16, ending) + 1;
	else
		result = with_hole(4096, ending);
	return result;
}

START_TEST(dead_frames_are_not_completed)
{
	traced_open(1, INCSTACK_MODE_PATCH);
	sample_and_leave(0); /* all rules are known */
	ck_assert_int_eq(traced_check(), 0);
	ck_assert_int_eq(call_twice((enum ending)_i), 1);
	ck_assert_uint_gt(traced_stats().stale, 0);
	traced_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("longjmp");
	TCase *tc = tcase_create("flavours");
	tcase_add_loop_test(tc, announced_loses_nothing, 0, FLAVOUR_COUNT);
	tcase_add_loop_test(tc, unannounced_is_counted, 0, FLAVOUR_COUNT);
	tcase_add_loop_test(tc, validate_loses_nothing, 0, FLAVOUR_COUNT);
	tcase_add_loop_test(tc, dead_frames_are_not_completed, 0, 3);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
