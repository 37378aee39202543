/* SPDX-License-Identifier: MIT
 *
 * In place of the core and of all of the recorder but its events, behind whose sources it is
 * included. The core refuses, and batches fail, as a test says.
 */
#ifndef RECORD_ALONE_H
#define RECORD_ALONE_H

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;

static int sample_errors[4]; /* what the next calls return, the first first */
static unsigned samples, reserves, notes, flushes, rooms;
static int reserve_error;
static bool batch_fails;

static struct incstack__trace_slot slots[INCSTACK__TRACE_SLOTS];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

int incstack_sample(struct incstack_stack *stack, uint64_t id, uint64_t weight,
		    const struct incstack_top *top)
{
	const unsigned at = __atomic_fetch_add(&samples, 1, __ATOMIC_RELAXED);
	return at < 4 ? sample_errors[at] : 0;
}

size_t incstack_stack_room(const struct incstack_stack *stack)
{
	return SIZE_MAX;
}

int incstack_stack_reserve(struct incstack_stack *stack, size_t bytes)
{
	reserves++;
	return reserve_error;
}

int incstack_stack_own(struct incstack_stack *stack)
{
	return 0;
}

int incstack_stack_unwinding_to(struct incstack_stack *stack, uintptr_t sp)
{
	return 0;
}

int incstack_stack_stats(const struct incstack_stack *stack, struct incstack_stats *stats)
{
	stats->samples = samples;
	return 0;
}

int incstack_stack_set_mode(struct incstack_stack *stack, uint32_t mode)
{
	return 0;
}

int incstack_stack_has_gaps(const struct incstack_stack *stack)
{
	return 0;
}

int incstack_stack_complete(struct incstack_stack *stack)
{
	return 0;
}

bool incstack__pools_needed(void)
{
	return false;
}

void incstack__record_make_thunks(struct incstack__record *record, struct incstack__caller caller)
{
}

void incstack__record_note(enum incstack__trace_note note)
{
	notes += note == INCSTACK__NOTE_NO_MEMORY;
}

/* The batch goes, or its events wait for memory. */
void incstack__record_flush(struct incstack__record *record)
{
	static struct incstack_tree waiting;

	flushes++;
	record->look = record->quick = 0;
	record->written_ns = INT64_MAX; /* it is not too old any more */
	record->tree = batch_fails ? &waiting : NULL;
	if (batch_fails)
		return;
	incstack__trace_log_clear(&record->log);
	record->retrieved += record->traces;
	record->traces = 0;
	record->epoch = incstack__recording.epoch;
}

/* Every look, of an event that is not quick, begins with one at the unloading. */
void incstack__record_modules(void)
{
	rooms++;
}

int incstack__record_is_sampled(struct incstack__record *record, size_t bytes)
{
	rooms++;
	return 1;
}

int incstack__record_is_marked(const void *block)
{
	rooms++;
	return 1;
}

void incstack__record_quiet(struct incstack__quiet *before)
{
}

void incstack__record_loud(const struct incstack__quiet *before)
{
}

struct incstack__record *incstack__record_make(void)
{
	return NULL;
}

struct incstack__record *incstack__record_context(uintptr_t at)
{
	return NULL;
}

void incstack__record_context_leave(uintptr_t at, int by_jump)
{
}

void incstack__record_context_enter(const void *ucontext)
{
}

void incstack__record_modules_unload(enum incstack__unload what, const void *address)
{
}

/* What none of these events needs. */
#define UNUSED(name, ...) \
	void name(__VA_ARGS__) \
	{ \
		ck_abort_msg(#name); \
	}
UNUSED(incstack__record_check_skip, struct incstack__record *record, uint64_t index)
UNUSED(incstack__record_check_walk, struct incstack__record *record, uint64_t index,
       const struct incstack_top *top)
UNUSED(incstack__record_follow_mode, struct incstack__record *record)
UNUSED(incstack__record_walk_end, struct incstack__record *record)
UNUSED(incstack__record_share, void)
UNUSED(incstack__lock_take, enum incstack__lock lock)
UNUSED(incstack__lock_give, enum incstack__lock lock)

int incstack__record_check_room(const struct incstack__record *record)
{
	return 0;
}

void incstack__record_mark(const void *block)
{
}

int incstack__record_begin_late(void)
{
	return 0;
}

int incstack__slot_is_shared(const struct incstack__trace_slot *slot)
{
	return slot == &slots[INCSTACK__TRACE_SLOTS - 1];
}

#pragma GCC diagnostic pop

#endif
