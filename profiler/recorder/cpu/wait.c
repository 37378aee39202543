/* SPDX-License-Identifier: MIT
 *
 * Measures the waits of a thread around its calls of libc's functions. A call reads the clock before and after it.
 * Short calls do not wait, and count as running. What a long call has used of the processor is taken from its time.
 * The sample is taken at the end of the call, at the frame that made it; so a thread that waits costs nothing. A thread
 * that still waits when the process ends is sampled by the thread that ends it.
 */
#include <errno.h>
#include <stdatomic.h>

#include "recorder/cpu/ticks.h"
#include "recorder/events/events.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

enum { LEAST_NS = 5000 }; /* a switch to another thread and back takes about as long */

/* A part of a wait that becomes ticks. */
struct waited {
	const struct incstack__wait *wait;
	uint64_t ticks;
};

/* Returns how much of the wait's time up to `end` the thread has used the processor. Since its last long wait it has run
 * up to this wait, or has been preempted; then the result is too small. */
static uint64_t used_in(struct incstack__record *record, const struct incstack__wait *wait,
			uint64_t end)
{
	const uint64_t ns = end - wait->begin;
	const uint64_t cpu = incstack__timer_clock(record);
	const uint64_t before = wait->begin > record->wait_end ? wait->begin - record->wait_end : 0;
	const uint64_t used = cpu > record->wait_cpu ? cpu - record->wait_cpu : 0;

	record->wait_end = end;
	record->wait_cpu = cpu;
	if (used <= before)
		return 0;
	return used - before < ns ? used - before : ns;
}

static uint64_t ticks_of(struct incstack__record *record, const struct incstack__wait *wait,
			 uint64_t end)
{
	const uint64_t used = used_in(record, wait, end);

	return incstack__parts_ticks(&record->parts, (enum incstack__state)wait->state,
				     end - wait->begin - used, incstack__recording.interval);
}

static void put(struct incstack__record *record, const struct waited *waited)
{
	const uintptr_t *slot = waited->wait->slot;
	const struct incstack_top top = {.pc = *slot, .sp = (uintptr_t)(slot + 1), .fp = slot[-1]};

	incstack__tick_at_call(record, &top, waited->ticks,
			       (enum incstack__state)waited->wait->state);
}

static void put_as_event(struct incstack__record *record, void *argument)
{
	if (record == incstack__recording.shared_record)
		return;
	if (incstack__tick_must_be_served(record))
		incstack__serve(record, NULL);
	put(record, argument);
}

/* A clock that the program has forbidden tells no time. */
void incstack__wait_begin(struct incstack__wait *wait, struct incstack__wait *outer)
{
	struct incstack__record *record;

	wait->begin = 0;
	if (incstack__record_local.state != 0)
		return;
	incstack__serve_thread();
	record = incstack__record_local.mine;
	if (!record || !atomic_load_explicit(&incstack__recording.on, memory_order_relaxed) ||
	    atomic_load_explicit(&incstack__recording.counter, memory_order_relaxed) != 0)
		return;
	*outer = record->wait;
	record->wait.begin = 0; /* while the other members change */
	atomic_signal_fence(memory_order_seq_cst);
	record->wait.slot = wait->slot;
	record->wait.state = wait->state;
	incstack__record_local.call_failed = false;
	atomic_signal_fence(memory_order_seq_cst);
	wait->begin = record->wait.begin = incstack__tick_stamp();
}

/* A child of a fork may have no record, or a new one. */
static bool is_ours(const struct incstack__record *record, const struct incstack__wait *wait)
{
	return record && record->wait.begin != 0 && record->wait.slot == wait->slot;
}

bool incstack__wait_end(const struct incstack__wait *wait, const struct incstack__wait *outer)
{
	const int saved = errno;
	const bool must_repeat = incstack__record_local.call_failed;
	struct incstack__record *record = incstack__record_local.mine;
	struct incstack__wait now = *wait;
	struct waited waited = {&now, 0};
	uint64_t end;

	if (wait->begin == 0 || incstack__record_local.state != 0 || !is_ours(record, wait))
		return false;
	now.begin = record->wait.begin; /* later, if the wait was written in between */
	end = incstack__tick_stamp();
	record->wait = *outer;
	if (outer->begin != 0)
		record->wait.begin +=
			end - wait->begin; /* the outer wait does not have the time of this one */
	incstack__record_local.call_failed = false;
	if (end - now.begin >= LEAST_NS)
		waited.ticks = ticks_of(record, &now, end);
	if (waited.ticks > 0)
		incstack__record_as_event(put_as_event, &waited);
	errno = saved;
	return must_repeat;
}

/* What was left by a jump lies below the stack pointer. */
void incstack__wait_held(struct incstack__record *record)
{
	const struct incstack__wait wait = record->wait;
	const uint64_t end = incstack__tick_stamp();
	struct waited waited = {&wait, 0};

	if (wait.begin == 0 || end < wait.begin + LEAST_NS ||
	    (uintptr_t)wait.slot <= record->held_at)
		return;
	record->wait.begin = end;
	waited.ticks = ticks_of(record, &wait, end);
	if (waited.ticks > 0)
		put(record, &waited);
}
