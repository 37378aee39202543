/* SPDX-License-Identifier: MIT
 *
 * Ticks that come from the kernel's events, which tick at the interval that was asked for. Each thread keeps
 * its timer. It ticks slowly, to notice when the event has fallen silent: because the thread blocks SIGTRAP, or
 * because the program has taken that signal. Such a thread goes on by its timer alone. Where events do not
 * tick in the kernel, the timer ticks as often as it can, and its ticks in the kernel are sampled.
 *
 * A sample stands for the thread's CPU time since its last one, rounded to whole ticks. So a tick that is
 * missing or late changes no sum. Where events do not tick in the kernel, a sample of the timer there stands for
 * the time since the timer's last tick, and a sample of the event for one tick. What is missing to the thread's CPU
 * time, or too much, is spread over the next samples of the event. If the next one took it all, functions that
 * follow system calls would get the time of these calls (D135).
 */
#include <stdatomic.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "recorder/cpu/ticks.h"
#include "recorder/log/log.h"
#include "recorder/system/kernel.h"
#include "recorder/system/signal.h"

enum {
	SLOW = 16, /* intervals between two ticks of a timer that only watches */
	LATE = 2,  /* ticks without a sample after which such a timer takes one */
	SPREAD = 16,
};

static _Atomic bool given_up; /* for good, and in all children */

static bool is_given_up(void)
{
	return atomic_load_explicit(&given_up, memory_order_relaxed);
}

static void give_up(enum incstack__tracefile_note note)
{
	if (!atomic_exchange_explicit(&given_up, true, memory_order_relaxed))
		incstack__record_note_for_good(note);
}

static bool has_event(const struct incstack__record *record)
{
	return atomic_load_explicit(&record->ticking.event, memory_order_relaxed) != NULL;
}

/* The owner and a thread that ends the recording may call this at the same time. */
static void close_event(struct incstack__record *record)
{
	incstack__event_close(
		atomic_exchange_explicit(&record->ticking.event, NULL, memory_order_relaxed));
}

/* From now on the timer alone ticks in the thread. */
static void leave_event(struct incstack__record *record)
{
	if (!has_event(record))
		return;
	close_event(record);
	incstack__trap_drain();
	incstack__timer_set(record, incstack__recording.interval);
}

static bool blocks_traps(uint64_t mask)
{
	return (mask & INCSTACK__SIGNAL_BIT(SIGTRAP)) != 0;
}

/* The recorder itself never blocks SIGTRAP outside of its handlers. */
static bool blocks_traps_now(void)
{
	uint64_t mask = 0;

	incstack__kernel_call(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	return blocks_traps(mask);
}

static void enter_event(struct incstack__record *record)
{
	struct incstack__ticking *t = &record->ticking;
	bool sees_kernel;
	void *event;

	t->wants_event = false;
	if (record->timer <= 0 || is_given_up() || blocks_traps_now())
		return;
	event = incstack__event_open(&sees_kernel);
	if (!event) {
		incstack__record_note(INCSTACK__NOTE_EVENTS_FEW);
		return;
	}
	t->sees_kernel = sees_kernel;
	atomic_store_explicit(&t->event, event, memory_order_relaxed);
	if (sees_kernel)
		incstack__timer_set(record, SLOW * incstack__recording.interval);
	else
		incstack__record_note(INCSTACK__NOTE_EVENTS_OF_USER);
}

static void start(struct incstack__record *record)
{
	incstack__timer_start(record);
	record->ticking.told = record->ticking.timer_cpu = record->cpu_start;
	enter_event(record);
}

static void stop(struct incstack__record *record)
{
	close_event(record);
	incstack__timer_stop(record);
}

static void serve(struct incstack__record *record)
{
	if (record->ticking.wants_event && !has_event(record))
		enter_event(record);
}

/* Returns the time in ticks, rounded; 0 if it is negative. */
static uint64_t ticks_of(uint64_t until, uint64_t since)
{
	const int64_t interval = (int64_t)incstack__recording.interval;
	const int64_t time = (int64_t)(until - since) + interval / 2;

	return time > 0 ? (uint64_t)(time / interval) : 0;
}

/* Returns for how many ticks a sample of an event stands that does not tick in the kernel. */
static uint64_t ticks_of_user(struct incstack__ticking *t, uint64_t now)
{
	const int64_t interval = (int64_t)incstack__recording.interval;
	const int64_t missing = (int64_t)(now - t->told) - interval;
	int64_t ticks;

	t->credit += (int64_t)incstack__event_period_of_user() + missing / SPREAD;
	ticks = t->credit > 0 ? t->credit / interval : 0;
	t->credit -= ticks * interval;
	return (uint64_t)ticks;
}

/* A sample that stands for no tick is not taken. */
static void sample(struct incstack__record *record, uint64_t ticks, enum incstack__tick others,
		   const void *ucontext)
{
	record->ticking.told += ticks * incstack__recording.interval;
	if (ticks > 0)
		incstack__tick(ticks, others, ucontext);
	else
		incstack__tick_none(ucontext);
}

static bool is_on(void)
{
	return atomic_load_explicit(&incstack__recording.on, memory_order_relaxed);
}

/* A sample may take longer than the interval. Then the next event waits already when the handler returns, and
 * the program would never run again. So the program runs at least as long as the sample took. */
static void rest(struct incstack__record *record, uint64_t began)
{
	const uint64_t now = incstack__timer_clock(record);

	record->ticking.rest_until =
		2 * (now - began) > incstack__recording.interval ? now + (now - began) : 0;
}

/* After events were given up, the program may have a handler, so ours may run with the program's mask.
 * Then it takes no sample. */
static void on_trap(const void *ucontext)
{
	struct incstack__record *record = incstack__record_local.mine;
	struct incstack__ticking *t;
	uint64_t now;

	if (!is_on())
		return;
	if (!record) {
		incstack__tick(1, INCSTACK__TICK_MERGED, ucontext);
		return;
	}
	if (is_given_up()) {
		leave_event(record);
		return;
	}
	t = &record->ticking;
	t->traps++;
	now = incstack__timer_clock(record);
	if (now < t->rest_until) {
		sample(record, 0, INCSTACK__TICK_MERGED, ucontext);
		return;
	}
	sample(record, t->sees_kernel ? ticks_of(now, t->told) : ticks_of_user(t, now),
	       INCSTACK__TICK_MERGED, ucontext);
	rest(record, now);
}

/* Leaves the event if the thread blocks its signal. The next call of the recorder opens an event if
 * the thread blocks the signal no longer. */
static void watch(struct incstack__record *record, bool blocks)
{
	struct incstack__ticking *t = &record->ticking;

	if (!incstack__trap_is_ours())
		give_up(INCSTACK__NOTE_EVENTS_GIVEN_UP);
	if (blocks || is_given_up())
		leave_event(record);
	t->wants_event = !has_event(record) && !is_given_up() && !blocks;
	record->due |= t->wants_event;
}

static uint64_t system_time(void)
{
	struct rusage used = {0};

	incstack__kernel_call(SYS_getrusage, RUSAGE_THREAD, &used);
	return (uint64_t)used.ru_stime.tv_sec * 1000000000 + (uint64_t)used.ru_stime.tv_usec * 1000;
}

/* A tick of the timer where events do not tick in the kernel. The kernel adds the whole time since its last
 * tick to the thread's time in the kernel, or nothing of it. So an increase means that this tick came there. */
static void sample_kernel(struct incstack__record *record, uint64_t now, const void *ucontext)
{
	struct incstack__ticking *t = &record->ticking;
	const uint64_t system = system_time();
	const bool is_there = 2 * (system - t->timer_system) > now - t->timer_cpu;
	const uint64_t ticks = is_there ? ticks_of(now, t->timer_cpu) : 0;

	t->timer_cpu = now;
	t->timer_system = system;
	sample(record, ticks, INCSTACK__TICK_KERNEL, ucontext);
}

static void sample_late(struct incstack__record *record, uint64_t now, const void *ucontext)
{
	struct incstack__ticking *t = &record->ticking;
	const uint64_t ticks = ticks_of(now, t->told);
	const bool is_due = !has_event(record) || (t->traps == 0 && ticks >= LATE);

	sample(record, is_due ? ticks : 0, INCSTACK__TICK_MERGED, ucontext);
}

static void on_timer(uint64_t ticks, const void *ucontext)
{
	struct incstack__record *record = incstack__record_local.mine;
	uint64_t mask;
	uint64_t now;

	if (!record || !is_on()) {
		incstack__tick(ticks, INCSTACK__TICK_MERGED, ucontext);
		return;
	}
	memcpy(&mask, &((const ucontext_t *)ucontext)->uc_sigmask, sizeof(mask));
	watch(record, blocks_traps(mask));
	now = incstack__timer_clock(record);
	if (has_event(record) && !record->ticking.sees_kernel)
		sample_kernel(record, now, ucontext);
	else
		sample_late(record, now, ucontext);
	record->ticking.traps = 0;
}

static void begin(void)
{
	if (!incstack__trap_take(on_trap))
		give_up(INCSTACK__NOTE_EVENTS_GIVEN_UP);
}

/* Leaves the calling thread's event. A child of vfork has none, but the record of its parent's thread. */
static void leave_own(void)
{
	struct incstack__record *record = incstack__record_local.mine;

	if (record && is_on() && incstack__kernel_getpid() == incstack__recording.pid)
		leave_event(record);
}

/* The thread gets its event again if the program cannot be executed. A pending trap would end the new program. */
static void leave(void)
{
	leave_own();
	incstack__trap_leave();
}

static void restricted(void)
{
	give_up(INCSTACK__NOTE_EVENTS_RESTRICTED);
	leave_own();
}

static void trap_wait(void)
{
	give_up(INCSTACK__NOTE_EVENTS_GIVEN_UP);
	leave_own();
}

static bool trap_action(const struct sigaction *new, struct sigaction *old)
{
	if (!incstack__trap_action(new, old))
		return false;
	if (new &&new->sa_handler != SIG_DFL)
		trap_wait();
	return true;
}

const struct incstack__ticker incstack__ticker_events = {
	.on_timer = on_timer,
	.begin = begin,
	.start = start,
	.stop = stop,
	.serve = serve,
	.leave = leave,
	.restricted = restricted,
	.trap_action = trap_action,
	.trap_wait = trap_wait,
};
