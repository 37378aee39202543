/* SPDX-License-Identifier: MIT
 *
 * Tests for how many ticks a sample stands, when a thread leaves its event and gets it again, without the kernel's
 * events and the rest of the recorder.
 */
#include <check.h>
#include <ucontext.h>

#include "recorder/cpu/ticker_events.c"

#include "run_suite.h"

enum { MS = 1000000 };

struct incstack__recording incstack__recording = {.interval = MS};
INCSTACK__TLS struct incstack__record_local incstack__record_local;
static struct incstack__record thread = {.timer = 1};
static ucontext_t context;
static char page[1];
static uint64_t now, notes, ticks, samples, between, timer_interval;
static enum incstack__tick others;
static bool no_event, kernel_too, not_ours;
static unsigned closed, drained;

void *incstack__event_open(bool *sees_kernel)
{
	*sees_kernel = kernel_too;
	return no_event ? NULL : page;
}

void incstack__event_close(void *event)
{
	closed += event != NULL;
}

uint64_t incstack__event_period_of_user(void)
{
	return incstack__recording.interval / 2;
}

bool incstack__trap_take(void (*tick)(const void *ucontext))
{
	ck_assert(tick == on_trap);
	return true;
}

bool incstack__trap_is_ours(void)
{
	return !not_ours;
}

bool incstack__trap_action(const struct sigaction *new, struct sigaction *old)
{
	(void)new;
	(void)old;
	return true;
}

void incstack__trap_drain(void)
{
	drained++;
}

void incstack__trap_leave(void)
{
}

void incstack__record_note(enum incstack__tracefile_note note)
{
	notes |= UINT64_C(1) << note;
}

void incstack__record_note_for_good(enum incstack__tracefile_note note)
{
	incstack__record_note(note);
}

void incstack__timer_start(struct incstack__record *record)
{
	record->cpu_start = now;
}

void incstack__timer_stop(struct incstack__record *record)
{
	(void)record;
}

void incstack__timer_set(const struct incstack__record *record, uint64_t interval)
{
	(void)record;
	timer_interval = interval;
}

uint64_t incstack__timer_clock(const struct incstack__record *record)
{
	(void)record;
	return now;
}

void incstack__tick(uint64_t count, enum incstack__tick kind, const void *ucontext)
{
	(void)ucontext;
	ticks += count;
	samples++;
	others = kind;
}

void incstack__tick_none(const void *ucontext)
{
	(void)ucontext;
	between++;
}

static bool is_noted(enum incstack__tracefile_note note)
{
	return (notes >> note & 1) != 0;
}

static void begin_at(uint64_t time, bool sees_kernel)
{
	kernel_too = sees_kernel;
	now = time;
	incstack__recording.on = true;
	incstack__recording.pid = incstack__kernel_getpid();
	incstack__record_local.mine = &thread;
	start(&thread);
}

static void trap_after(uint64_t time)
{
	now += time;
	on_trap(&context);
}

static void timer_after(uint64_t time)
{
	now += time;
	on_timer(1, &context);
}

/* Late and early traps change no sum. */
START_TEST(samples_add_up)
{
	begin_at(5 * MS, true);
	ck_assert_uint_eq(timer_interval, SLOW * MS);
	for (int i = 0; i < 100; i++)
		trap_after(MS + MS / 50);
	ck_assert_uint_eq(ticks, 102);
	ck_assert_uint_eq(samples, 100);
	ck_assert_int_eq(others, INCSTACK__TICK_MERGED);
	trap_after(20 * MS); /* a long system call */
	ck_assert_uint_eq(ticks, 122);
	trap_after(MS / 10);
	ck_assert_uint_eq(samples, 101);
	ck_assert_uint_eq(between, 1);
	ck_assert_uint_eq(notes, 0);
}
END_TEST

/* The timer takes a sample only if the event is silent. */
START_TEST(timer_watches)
{
	begin_at(0, true);
	trap_after(MS);
	timer_after(MS);
	ck_assert_uint_eq(samples, 1);
	timer_after(16 * MS);
	ck_assert_uint_eq(samples, 2);
	ck_assert_uint_eq(ticks, 18);
	ck_assert(has_event(&thread));
}
END_TEST

/* Without the kernel's time, sums follow the clock, and no sample stands for much more than a tick. */
START_TEST(what_is_missing_is_spread)
{
	begin_at(0, false);
	ck_assert(is_noted(INCSTACK__NOTE_EVENTS_OF_USER));
	ck_assert_uint_eq(timer_interval, 0); /* as it was */
	for (int i = 0; i < 1000; i++) {
		const uint64_t before = ticks;

		trap_after(i % 4 == 0 ? MS : MS / 2); /* a trap in the kernel is left out */
		ck_assert_uint_le(ticks - before, 2);
	}
	ck_assert_uint_ge(ticks, now / MS - 8);
	ck_assert_uint_le(ticks, now / MS);
	ck_assert_uint_ge(samples * 100, ticks * 98);
}
END_TEST

START_TEST(blocked_thread)
{
	begin_at(0, true);
	sigaddset(&context.uc_sigmask, SIGTRAP);
	timer_after(16 * MS);
	ck_assert_uint_eq(closed, 1);
	ck_assert_uint_eq(drained, 1);
	ck_assert_uint_eq(timer_interval, MS);
	ck_assert_uint_eq(ticks, 16);
	ck_assert(!thread.due);
	timer_after(4 * MS);
	ck_assert_uint_eq(ticks, 20);
	sigemptyset(&context.uc_sigmask);
	timer_after(4 * MS);
	ck_assert(thread.due);
	serve(&thread);
	ck_assert(has_event(&thread));
	ck_assert_uint_eq(notes, 0);
}
END_TEST

START_TEST(taken_signal)
{
	const struct sigaction none = {.sa_handler = SIG_DFL};
	const struct sigaction own = {.sa_handler = SIG_IGN};

	begin_at(0, true);
	trap_action(&none, NULL);
	trap_action(NULL, NULL);
	ck_assert(has_event(&thread) && notes == 0);
	trap_action(&own, NULL);
	ck_assert(!has_event(&thread) && is_noted(INCSTACK__NOTE_EVENTS_GIVEN_UP));
	trap_after(MS); /* a late one */
	ck_assert_uint_eq(samples, 0);
	timer_after(4 * MS);
	ck_assert_uint_eq(ticks, 5);
	serve(&thread);
	ck_assert(!has_event(&thread));
}
END_TEST

START_TEST(replaced_action)
{
	begin_at(0, true);
	not_ours = true;
	timer_after(16 * MS);
	ck_assert(!has_event(&thread) && is_noted(INCSTACK__NOTE_EVENTS_GIVEN_UP));
}
END_TEST

START_TEST(filter)
{
	begin_at(0, true);
	restricted();
	ck_assert(!has_event(&thread) && is_noted(INCSTACK__NOTE_EVENTS_RESTRICTED));
}
END_TEST

/* A thread without an event has its timer. */
START_TEST(no_event_left)
{
	no_event = true;
	begin_at(0, true);
	ck_assert(is_noted(INCSTACK__NOTE_EVENTS_FEW));
	timer_after(4 * MS);
	ck_assert_uint_eq(ticks, 4);
}
END_TEST

/* A thread that has just begun, and one whose recording has ended. */
START_TEST(no_record)
{
	begin_at(0, true);
	incstack__record_local.mine = NULL;
	trap_after(MS);
	ck_assert_uint_eq(ticks, 1);
	incstack__recording.on = false;
	trap_after(MS);
	ck_assert_uint_eq(ticks, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ticks of events");
	TCase *events = tcase_create("events");

	tcase_add_test(events, samples_add_up);
	tcase_add_test(events, timer_watches);
	tcase_add_test(events, what_is_missing_is_spread);
	tcase_add_test(events, blocked_thread);
	tcase_add_test(events, taken_signal);
	tcase_add_test(events, replaced_action);
	tcase_add_test(events, filter);
	tcase_add_test(events, no_event_left);
	tcase_add_test(events, no_record);
	suite_add_tcase(suite, events);
	return run_suite(suite);
}
