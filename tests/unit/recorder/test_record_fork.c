/* SPDX-License-Identifier: MIT
 *
 * Tests the recorder's state in the child of fork, without the rest of the recorder: a child that
 * is recorded begins anew, and one whose parent was in the middle of an event finishes that event
 * first and counts the events that come too early.
 */
#include "recorder/threads/fork.c"
#include "recorder/system/memory.c"

#include "run_suite.h"

/* ---- in place of the core and of the rest of the recorder ------------------------------ */

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;

static struct incstack__record own_record;
static struct incstack__tracefile_slot parent_slots[INCSTACK__TRACEFILE_SLOTS];
static struct incstack__tracefile_slot child_slots[INCSTACK__TRACEFILE_SLOTS];
static unsigned beginnings, lifted, closed;
static int is_busy;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

void incstack__stack_forked(struct incstack_stack *stack)
{
	lifted++;
}

bool incstack__stack_is_busy(const struct incstack_stack *stack)
{
	return is_busy;
}

void incstack__record_protect(struct incstack__protection *before)
{
	before->state = incstack__record_local.state;
	incstack__record_local.state = INCSTACK__INSIDE;
}

void incstack__record_unprotect(const struct incstack__protection *before)
{
	incstack__record_local.state = before->state;
}

void incstack__record_close(void)
{
	closed++;
}

void incstack__record_forked(void)
{
	incstack__record_local.mine = NULL;
}

void incstack__record_modules(void)
{
}

void incstack__record_modules_forked(void)
{
}

void incstack__spool_leave(void)
{
}

void incstack__spool_make_private(void)
{
}

void incstack__lock_fork(void)
{
}

void incstack__lock_forked(void)
{
}

void incstack__lock_take(enum incstack__lock lock)
{
}

void incstack__lock_give(enum incstack__lock lock)
{
}

void incstack__locks_make(void)
{
}

#pragma GCC diagnostic pop

static void begin_in_child(const struct incstack__recording *parent)
{
	ck_assert_int_eq(parent->follow, 1);
	ck_assert_int_eq(incstack__recording.on, 0);
	incstack__recording.on = 1;
	incstack__recording.follow = parent->follow;
	incstack__recording.slots = child_slots;
	incstack__record_local.mine = &own_record;
	beginnings++;
}

/* ---- tests ------------------------------------------------------------------------------ */

static void begin_test(int follow)
{
	memset(parent_slots, 0, sizeof(parent_slots));
	memset(child_slots, 0, sizeof(child_slots));
	incstack__recording =
		(struct incstack__recording){.on = 1, .follow = follow, .slots = parent_slots};
	incstack__record_local.mine = &own_record;
	incstack__record_local.state = 0;
	beginnings = lifted = closed = 0;
	is_busy = 0;
	begin_again = begin_in_child;
}

/* Forks in an event, or in a return. The child begins anew when that is finished. */
static void fork_inside(int in_event)
{
	const uintptr_t state = in_event ? (uintptr_t)__builtin_frame_address(0) : 0;

	is_busy = !in_event;
	incstack__record_local.state = state;
	before_fork();
	ck_assert_uint_eq(incstack__record_local.state, INCSTACK__INSIDE);
	after_fork_child();
	ck_assert_int_eq(incstack__recording.on, 0);
	ck_assert_ptr_null(incstack__recording.slots);
	ck_assert_uint_eq(incstack__record_local.state, state);
}

START_TEST(events_that_come_too_early)
{
	begin_test(1);
	for (unsigned missed = 3; missed > 0; missed--) { /* a child's child counts from 0 */
		fork_inside(_i);
		for (unsigned i = 0; i < missed; i++)
			ck_assert_int_eq(incstack__record_begin_late(), 0);
		is_busy = 0;
		incstack__record_local.state = 0;
		ck_assert_int_eq(incstack__record_begin_late(), 1);
		ck_assert_uint_eq(beginnings, 4 - missed);
		ck_assert_uint_eq(child_slots[0].interrupting, missed);
		ck_assert_uint_eq(incstack__record_local.state, 0);
		ck_assert_int_eq(incstack__record_begin_late(), 0); /* it has begun */
		child_slots[0].interrupting = 0;
	}
	ck_assert_uint_eq(parent_slots[0].interrupting, 0);
}
END_TEST

START_TEST(interrupted_child_that_is_not_recorded)
{
	begin_test(0);
	fork_inside(1);
	incstack__record_local.state = 0;
	ck_assert_int_eq(incstack__record_begin_late(), 0);
	ck_assert_uint_eq(beginnings, 0);
}
END_TEST

START_TEST(child_between_events)
{
	begin_test(_i);
	before_fork();
	ck_assert_uint_eq(incstack__record_local.state, INCSTACK__INSIDE);
	after_fork_child();
	ck_assert_uint_eq(beginnings, (unsigned)_i);
	ck_assert_uint_eq(lifted, 1);
	ck_assert_uint_eq(closed, 1);
	ck_assert_int_eq(incstack__recording.on, _i);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	ck_assert_int_eq(incstack__record_begin_late(), 0);
}
END_TEST

START_TEST(parent_goes_on)
{
	begin_test(1);
	incstack__record_local.state = (uintptr_t)_i;
	before_fork();
	after_fork();
	ck_assert_uint_eq(incstack__record_local.state, (uintptr_t)_i);
	ck_assert_int_eq(incstack__recording.on, 1);
	ck_assert_int_eq(interrupted, 0);
}
END_TEST

/* The recorder was off, for example in a sandbox. */
START_TEST(nothing_is_recorded)
{
	begin_test(1);
	incstack__recording.on = 0;
	before_fork();
	after_fork_child();
	ck_assert_uint_eq(beginnings + closed, 0);
	ck_assert_ptr_null(incstack__recording.slots);
}
END_TEST

/* The list of what a fork wipes loses pieces at its start, in its middle and at its end. */
START_TEST(released_memory)
{
	void *memory[3];

	begin_test(1);
	for (int i = 0; i < 3; i++)
		memory[i] = incstack__wiped_allocate(NULL, 5000);
	for (int i = 0; i < 3; i++) {
		unsigned left = 0;

		incstack__wiped_release(NULL, memory[(_i + i) % 3], 5000);
		for (const struct piece *piece = pieces; piece != NULL; piece = piece->next)
			left++;
		ck_assert_uint_eq(left, (unsigned)(2 - i));
	}
	ck_assert_ptr_null(pieces);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("recorder: fork");
	TCase *forks = tcase_create("forks");

	tcase_add_loop_test(forks, events_that_come_too_early, 0, 2);
	tcase_add_test(forks, interrupted_child_that_is_not_recorded);
	tcase_add_loop_test(forks, child_between_events, 0, 2);
	tcase_add_loop_test(forks, parent_goes_on, 0, 2);
	tcase_add_test(forks, nothing_is_recorded);
	tcase_add_loop_test(forks, released_memory, 0, 3);
	suite_add_tcase(suite, forks);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
