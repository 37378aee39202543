/* SPDX-License-Identifier: MIT
 *
 * Samples the code that the signal of a timer or of a kernel's event has interrupted. The handler may have interrupted
 * anything: libc with its locks held, the recorder, a return through a thunk. So it only reads and
 * stores. Memory, rules of new code and writing are left to the next call of the program that the
 * stub interposes (serve.c), or are done here if that needs no memory from the kernel and
 * no waiting.
 *
 * Each tick is counted as taken, as failed with the reason, or as lost if no signal came for it.
 */
#include <stdatomic.h>
#include <time.h>
#include <ucontext.h>

#include "recorder/log/own_stack.h"
#include "recorder/system/libc.h"
#include "recorder/threads/interrupted.h"
#include "recorder/code/modules.h"
#include "recorder/code/code.h"
#include "recorder/cpu/ticks.h"
#include "recorder/events/events.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

enum {
	EVENT_BYTES = INCSTACK__TRACEFILE_WIDE_BYTES + INCSTACK__TRACEFILE_WORD_BYTES,
	ROOM_BYTES = 8 << 10,
	SERVE_AFTER_TICKS = 25,
	COMPLETE_AFTER_TICKS = 8,
	SHALLOW_BYTES = 64 << 10,
	STACK_TO_UNWIND = 24 << 10, /* by libunwind */
};

struct tick {
	struct incstack__record *record;
	uint64_t ticks;
	enum incstack__tick others; /* what all ticks but one count as */
	struct incstack_top top;
	bool is_elsewhere; /* on the stack of a fiber */
	bool may_serve;
};

/* Whether the open batch cannot take another event, because code was unloaded since it began, it is
 * full, or the mode of the recording has changed. */
static bool must_be_served(const struct incstack__record *record)
{
	return incstack__record_is_full(record) ||
	       record->log.size - record->log.used < EVENT_BYTES ||
	       incstack__stack_sample_room(record->stack) < ROOM_BYTES ||
	       incstack__record_must_follow_mode(record);
}

/* Whether a module may be gone although its rules are still known. */
static bool is_unloading(void)
{
	return incstack__record_is_unloading() && !incstack__record_modules_unchanged();
}

/* Whether the batch should be written after a sample. That is earlier than necessary, so there is
 * still room if the write fails. */
static bool should_be_served(const struct incstack__record *record)
{
	return must_be_served(record) || record->log.used > record->log.size / 2 ||
	       incstack__stack_sample_room(record->stack) < INCSTACK__RESERVE_BYTES / 2;
}

static enum incstack__tick is_described(const struct incstack__record *record,
					const struct incstack_top *top)
{
	switch (incstack__interrupted_is_described(record, top)) {
	case INCSTACK__NATIVE_NO_RULE:
		return INCSTACK__TICK_NO_RULE;
	case INCSTACK__NATIVE_INEXACT:
		return INCSTACK__TICK_INEXACT;
	default:
		return INCSTACK__TICK_TAKEN;
	}
}

/* Writes the batch if that must be done before the next sample. The traces are completed by a walk
 * through the interrupted frames, so the rules must describe these. */
static void serve_if_due(const struct tick *tick)
{
	struct incstack__record *record = tick->record;

	if (must_be_served(record) && !incstack__stack_is_busy(record->stack) && !is_unloading() &&
	    !incstack__trampoline_contains(tick->top.pc) &&
	    is_described(record, &tick->top) == INCSTACK__TICK_TAKEN)
		incstack__renew_in_handler(record);
}

/* Whether a sample can be taken. */
static enum incstack__tick check(const struct tick *tick)
{
	const struct incstack__record *record = tick->record;
	enum incstack__tick what = INCSTACK__TICK_TAKEN;

	if (incstack__stack_is_busy(record->stack))
		return INCSTACK__TICK_RECORDER;
	if (is_unloading())
		return INCSTACK__TICK_UNLOADING;
	if (!incstack__trampoline_contains(tick->top.pc))
		what = is_described(record, &tick->top);
	if (what != INCSTACK__TICK_TAKEN || !must_be_served(record))
		return what;
	return tick->may_serve ? INCSTACK__TICK_NO_ROOM : INCSTACK__TICK_NO_STACK;
}

/* Takes the sample. In the trampoline the pc is not that of the trace's top, so there is no walk to
 * compare. */
static enum incstack__tick take(struct incstack__record *record, const struct incstack_top *top)
{
	_Atomic uint64_t *started = &record->slot->samples_started;
	int error;

	if (record->check)
		incstack__record_check_skip(record, record->traces);
	atomic_fetch_add_explicit(started, 1, memory_order_relaxed);
	error = incstack_stack_sample(record->stack, record->traces, 0, top);
	if (error != 0) {
		atomic_fetch_sub_explicit(started, 1, memory_order_relaxed);
		if (error == INCSTACK_EUNWIND)
			return INCSTACK__TICK_NO_RULE;
		return error == INCSTACK_EBUSY ? INCSTACK__TICK_RECORDER : INCSTACK__TICK_NO_ROOM;
	}
	if (record->check && !incstack__trampoline_contains(top->pc))
		incstack__record_check_walk(record, record->traces, top);
	record->traces++;
	return INCSTACK__TICK_TAKEN;
}

uint64_t incstack__tick_stamp(void)
{
	struct timespec now;

	if (atomic_load_explicit(&incstack__recording.counter, memory_order_relaxed) != 0)
		return atomic_fetch_add_explicit(&incstack__recording.counter, 1,
						 memory_order_seq_cst) +
		       1;
	incstack__clock(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void count(struct incstack__record *record, enum incstack__tick what, uint64_t ticks)
{
	atomic_fetch_add_explicit(&record->live.ticks[what], ticks, memory_order_relaxed);
}

static uint64_t truncated(const struct incstack__record *record)
{
	struct incstack_stats stats = {.size = sizeof(stats)};

	incstack_stack_stats(record->stack, &stats);
	return stats.truncated;
}

/* Adds the event of ticks, with the newest trace if they were taken. */
static void put(struct incstack__record *record, enum incstack__tick what, uint64_t ticks,
		enum incstack__state state)
{
	const uint64_t trace =
		what == INCSTACK__TICK_TAKEN ? record->traces - 1 : INCSTACK__TRACEFILE_NO_TRACE;

	if (incstack__tracefile_put_alloc(&record->log, incstack__tick_stamp(),
					  incstack__state_pointer(state), ticks, trace) != 0)
		record->live.dropped++;
}

/* Stores an event and counts the tick. The event also stands for earlier ticks for which no signal
 * came. Time that is spent in the recorder gets no event, so all its ticks count as failed. */
static void store(const struct tick *tick, enum incstack__tick what)
{
	struct incstack__record *record = tick->record;
	const uint64_t ticks = tick->ticks;

	if (what == INCSTACK__TICK_RECORDER) {
		count(record, what, ticks);
		return;
	}
	count(record, what, 1);
	count(record, tick->others, ticks - 1);
	put(record, what, ticks, INCSTACK__STATE_RUNNING);
}

/* Whether the objects of all callers fit into the memory that was set aside, and leave `rest` bytes
 * of it. A frame takes at least 16 bytes of the stack, and its object 32. */
static bool fits(const struct incstack__record *record, const struct incstack_top *top, size_t rest)
{
	const size_t room = incstack__stack_sample_room(record->stack);

	return top->sp >= record->low && top->sp < record->high && room >= rest &&
	       record->high - top->sp <= (room - rest) / 2;
}

/* Makes room for the objects of all callers, which a sample captures at once, or which are captured
 * when they return. Without room the callers would stay unknown. It takes only memory that was set
 * aside; if that does not suffice, it asks for more and returns false. */
static bool make_room(struct incstack__record *record, const struct incstack_top *top)
{
	struct incstack__protection before;
	const size_t bytes = 2 * (record->high - top->sp) + 2 * ROOM_BYTES;
	int error;

	if (top->sp < record->low || top->sp >= record->high || fits(record, top, ROOM_BYTES))
		return true;
	incstack__record_protect(&before);
	error = incstack_stack_reserve(record->stack, bytes);
	incstack__record_unprotect(&before);
	if (error != 0)
		incstack__spool_want(bytes);
	return error == 0;
}

/* Walks the callers that samples have left open. On the record's own stack the core cannot see
 * which frames are gone. So a batch that is written there would leave these callers unknown, as a
 * kill would. The rules of a module that was loaded since the last look are not known in a handler,
 * so callers stay open then. */
static void complete(const struct incstack__record *record, const struct incstack_top *top,
		     size_t rest)
{
	if (incstack__stack_has_gaps(record->stack) && fits(record, top, rest) &&
	    incstack__record_modules_unchanged())
		incstack__stack_complete_at(record->stack, top);
}

/* Whether the open callers are walked after each sample. An exception or a jump that has begun
 * before the tick pops frames, and the core does not know that they are popped, so their callers
 * would stay unknown. The walk of a small stack takes little of a tick's time. */
static bool is_shallow(const struct incstack__record *record, const struct incstack_top *top)
{
	return record->high - top->sp <= SHALLOW_BYTES;
}

bool incstack__tick_must_be_served(const struct incstack__record *record)
{
	return must_be_served(record);
}

void incstack__tick_at_call(struct incstack__record *record, const struct incstack_top *top,
			    uint64_t ticks, enum incstack__state state)
{
	enum incstack__tick what = INCSTACK__TICK_NO_ROOM;

	if (!must_be_served(record)) {
		make_room(record, top);
		what = take(record, top);
		put(record, what, ticks, state);
	}
	count(record, what, ticks);
	record->due |= should_be_served(record);
}

/* Called after a sample. Writes the batch if it is time, or if the next sample needs its memory.
 * Otherwise walks the open callers, on a large stack only now and then. */
static void serve_after(struct incstack__record *record, const struct incstack_top *top)
{
	if (should_be_served(record) ||
	    (!make_room(record, top) && !incstack__stack_has_gaps(record->stack))) {
		complete(record, top, 0);
		incstack__renew_in_handler(record);
	} else if (is_shallow(record, top) || record->since % COMPLETE_AFTER_TICKS == 0) {
		complete(record, top, INCSTACK__RESERVE_BYTES / 2);
	}
}

/* Mostly called on the record's own stack. */
static void sample(void *argument)
{
	const struct tick *tick = argument;
	struct incstack__record *record = tick->record;
	const uint64_t cut = truncated(record);
	enum incstack__tick what;

	if (tick->is_elsewhere)
		serve_if_due(tick);
	what = check(tick);
	if (what == INCSTACK__TICK_TAKEN && !incstack__trampoline_contains(tick->top.pc))
		make_room(record, &tick->top);
	if (what == INCSTACK__TICK_TAKEN)
		what = take(record, &tick->top);
	store(tick, what);
	if (what == INCSTACK__TICK_TAKEN && !incstack__trampoline_contains(tick->top.pc))
		serve_after(record, &tick->top);
	if (++record->since % SERVE_AFTER_TICKS == 0 || what != INCSTACK__TICK_TAKEN ||
	    truncated(record) != cut)
		record->due = 1;
}

/* The program's stack may be too small for a sample. But a batch that must be written before the
 * sample is written on the program's stack, because the core can find out there which frames are
 * gone. A handler on a signal stack stays there if it can, because otherwise the kernel would
 * consider that stack unused. */
static void handle(struct incstack__record *record, uint64_t ticks, enum incstack__tick others,
		   const ucontext_t *context)
{
	const struct incstack__place place = incstack__place_of_caller(record, &context->uc_stack);
	const bool suffices = place.left >= INCSTACK__STACK_TO_SERVE;
	struct tick tick = {
		.record = record,
		.ticks = ticks,
		.others = others,
		.top = incstack_native_top(context),
		.is_elsewhere = place.where == INCSTACK__ON_OTHER_STACK,
		.may_serve = suffices || place.where == INCSTACK__ON_OTHER_STACK,
	};

	incstack__record_local.interrupted = tick.top.pc;
	incstack__record_local.interrupted_sp = tick.top.sp;
	if (suffices)
		serve_if_due(&tick);
	incstack__record_local.no_second_tick =
		place.where == INCSTACK__ON_SIGNAL_STACK && place.left < STACK_TO_UNWIND;
	if (suffices && place.where == INCSTACK__ON_SIGNAL_STACK)
		sample(&tick);
	else
		incstack__own_stack_run(record, sample, &tick);
}

static void count_failed_call(const struct incstack__record *record, const void *ucontext)
{
	const struct incstack__record *counting =
		record ? record : incstack__recording.shared_record;

	if (!incstack__restart_failed_call(ucontext))
		return;
	if (record && record->wait.begin != 0)
		incstack__record_local.call_failed = true;
	else
		atomic_fetch_add_explicit(&counting->slot->failed_calls, 1, memory_order_relaxed);
}

void incstack__tick_none(const void *ucontext)
{
	if (atomic_load_explicit(&incstack__recording.on, memory_order_relaxed) &&
	    incstack__record_local.state == 0)
		count_failed_call(incstack__record_local.mine, ucontext);
}

/* Whether the tick came in the recorder: in an event, or while the last tick was handled. In the
 * second case the program has not run since then, and it would never run if a sample were taken
 * here and each sample took longer than the interval. */
static bool came_in_recorder(void)
{
	const bool due = incstack__record_local.tick_is_due;

	if (incstack__record_local.state != 0)
		return true;
	incstack__record_local.tick_is_due = 0;
	return due;
}

/* A thread that is cancelled during the handler ends after it. libc's handler of a cancellation
 * does not respect PTHREAD_CANCEL_DISABLE if the thread sleeps in a cancellation point, so the
 * thread would end with a lock of the recorder. And only pthread_setcanceltype() gives such a
 * thread its result. */
void incstack__tick(uint64_t ticks, enum incstack__tick others, const void *ucontext)
{
	struct incstack__record *record = incstack__record_local.mine;
	int cancel_type;

	if (!atomic_load_explicit(&incstack__recording.on, memory_order_relaxed))
		return;
	if (incstack__record_local.state == 0)
		count_failed_call(record, ucontext);
	if (!record) {
		count(incstack__recording.shared_record, INCSTACK__TICK_NO_RECORD, ticks);
	} else if (came_in_recorder()) {
		count(record, INCSTACK__TICK_RECORDER, ticks);
		incstack__timer_let_run(record);
	} else {
		incstack__libc.setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
		incstack__record_local.state = (uintptr_t)__builtin_frame_address(0);
		incstack__record_local.handling = 1;
		handle(record, ticks, others, ucontext);
		incstack__record_local.tick_is_due = incstack__timer_is_due();
		incstack__record_local.handling = 0;
		incstack__record_local.interrupted = 0;
		incstack__record_local.state = 0;
		incstack__libc.setcanceltype(cancel_type, NULL);
	}
}
