/* SPDX-License-Identifier: MIT
 *
 * Stands in for the core and for the recorder except its events. It is included after the
 * sources of the events. Samples are refused, and batches fail, when a test says so.
 */
#ifndef RECORD_ALONE_H
#define RECORD_ALONE_H

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;

static int sample_errors[4]; /* what the next calls return, in this order */
static unsigned samples, reserves, notes, flushes, rooms;
static unsigned unloads; /* of code, each right after a batch was written */
static int reserve_error;
static bool batch_fails;
static bool core_is_busy;

static int own_error, mode_error;
static unsigned owned, unwindings, full_modes, skips, locked, lifts, left_by_jump, entered;
static uintptr_t unwound_to;
static struct incstack_stack *unwound_stack;
static struct incstack__record *contexts[2]; /* whose stacks are what lies around them */
static struct incstack__record *made;

static struct incstack__tracefile_slot slots[INCSTACK__TRACEFILE_SLOTS];

static bool little_room;           /* refuses the next sample of the fast path */
static struct incstack_top newest; /* where the last sample began */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

int incstack_stack_sample(struct incstack_stack *stack, uint64_t id, uint64_t weight,
			  const struct incstack_top *top)
{
	const unsigned at = __atomic_fetch_add(&samples, 1, __ATOMIC_RELAXED);
	newest = *top;
	return at < 4 ? sample_errors[at] : 0;
}

int incstack__sample_caller(struct incstack_stack *stack, uint64_t id, uintptr_t pc, uintptr_t sp,
			    uintptr_t fp, size_t least)
{
	const struct incstack_top top = {.pc = pc, .sp = sp, .fp = fp};

	if (little_room)
		return little_room = false, INCSTACK_EROOM;
	return incstack_stack_sample(stack, id, 0, &top);
}

bool incstack__stack_is_busy(const struct incstack_stack *stack)
{
	return core_is_busy;
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

int incstack_stack_set_owner(struct incstack_stack *stack)
{
	owned++;
	return own_error;
}

int incstack_stack_unwinding_to(struct incstack_stack *stack, uintptr_t sp)
{
	unwindings++;
	unwound_to = sp;
	unwound_stack = stack;
	return 0;
}

int incstack_stack_stats(const struct incstack_stack *stack, struct incstack_stats *stats)
{
	stats->samples = samples;
	return 0;
}

int incstack_stack_set_mode(struct incstack_stack *stack, uint32_t mode)
{
	full_modes += mode == INCSTACK_MODE_FULL;
	return mode_error;
}

bool incstack__stack_has_gaps(const struct incstack_stack *stack)
{
	return false;
}

int incstack__stack_complete(struct incstack_stack *stack)
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

bool incstack__record_begin_unlisted(void)
{
	return 1;
}

void incstack__record_end_unlisted(void)
{
}

void incstack__record_note(enum incstack__tracefile_note note)
{
	notes += note == INCSTACK__NOTE_NO_MEMORY;
}

/* The batch is written, or its events wait for memory. */
void incstack__record_flush(struct incstack__record *record)
{
	static struct incstack_tree waiting;

	flushes++;
	record->look = record->quick = 0;
	record->written_ns = INT64_MAX; /* it is not too old any more */
	record->tree = batch_fails ? &waiting : NULL;
	if (batch_fails)
		return;
	incstack__tracefile_log_clear(&record->log);
	record->retrieved += record->traces;
	record->traces = 0;
	record->epoch = incstack__recording.epoch;
	if (unloads > 0) {
		unloads--;
		incstack__recording.epoch++;
	}
}

/* The slow path of every event begins with a check for unloads. */
int incstack__clock(clockid_t clock, struct timespec *now)
{
	return clock_gettime(clock, now);
}

void incstack__record_modules(void)
{
	rooms++;
}

bool incstack__record_is_sampled(struct incstack__record *record, size_t bytes)
{
	rooms++;
	return 1;
}

bool incstack__record_is_marked(const void *block)
{
	rooms++;
	return 1;
}

void incstack__record_protect(struct incstack__protection *before)
{
}

void incstack__record_unprotect(const struct incstack__protection *before)
{
}

struct incstack__record *incstack__record_make(void)
{
	return made;
}

struct incstack__record *incstack__record_context(uintptr_t at)
{
	for (size_t i = 0; i < 2; i++)
		if (contexts[i] != NULL && at >= contexts[i]->low && at < contexts[i]->high)
			return contexts[i];
	return NULL;
}

void incstack__record_context_leave(uintptr_t at, bool by_jump)
{
	ck_assert_uint_eq(locked, 1);
	lifts++;
	left_by_jump += by_jump != 0;
}

void incstack__record_context_enter(const void *ucontext)
{
	ck_assert_uint_eq(locked, 1);
	entered += ucontext != NULL;
}

void incstack__record_modules_unload(enum incstack__unload what, const void *address)
{
}

/* Functions that none of these events needs. */
#define UNUSED(name, ...) \
	void name(__VA_ARGS__) \
	{ \
		ck_abort_msg(#name); \
	}
UNUSED(incstack__record_check_walk, struct incstack__record *record, uint64_t index,
       const struct incstack_top *top)
UNUSED(incstack__record_follow_mode, struct incstack__record *record)
UNUSED(incstack__record_walk_end, struct incstack__record *record)

void incstack__record_check_skip(struct incstack__record *record, uint64_t index)
{
	ck_assert_uint_eq(index, record->traces);
	skips++;
}

void incstack__record_share(void)
{
	ck_assert_uint_eq(locked, 1);
}

void incstack__lock_take(enum incstack__lock lock)
{
	ck_assert_uint_eq(locked++, 0);
}

void incstack__lock_give(enum incstack__lock lock)
{
	ck_assert_uint_eq(--locked, 0);
}

bool incstack__record_check_room(const struct incstack__record *record)
{
	return 0;
}

void incstack__record_mark(const void *block)
{
}

bool incstack__record_begin_late(void)
{
	return 0;
}

bool incstack__slot_is_shared(const struct incstack__tracefile_slot *slot)
{
	return slot == &slots[INCSTACK__TRACEFILE_SLOTS - 1];
}

#pragma GCC diagnostic pop

/* ---- a thread with a record ------------------------------------------------------------- */

enum { LOG_BYTES = 4096 };

static struct incstack__record the_record;
static uint64_t events_of_it[LOG_BYTES / 8];

/* A record of the calling thread. Its stack is the memory around this frame. */
static struct incstack__record *begin_record(void)
{
	struct incstack__record *record = &the_record;

	memset(record, 0, sizeof(*record));
	incstack__tracefile_log_init(&record->log, events_of_it, LOG_BYTES);
	record->slot = &slots[1];
	record->number = 1;
	record->high = HERE + LOG_BYTES;
	record->written_ns = INT64_MAX;
	incstack__record_local.mine = record;
	incstack__record_local.state = 0;
	return record;
}

static struct incstack__record *begin_test(void)
{
	memset(&incstack__recording, 0, sizeof(incstack__recording));
	memset(slots, 0, sizeof(slots));
	memset(sample_errors, 0, sizeof(sample_errors));
	samples = reserves = notes = flushes = rooms = 0;
	reserve_error = 0;
	batch_fails = false;
	incstack__recording.slots = slots;
	incstack__recording.interval = 1;
	incstack__recording.changes = 1;
	incstack__recording.on = 1;
	return begin_record();
}

static void put(void)
{
	static const char block[16];
	const uintptr_t frame[2] = {7, (uintptr_t)block}; /* the saved frame pointer, the slot */

	incstack__heap_on_alloc(block, sizeof(block), (struct incstack__caller){&frame[1], 7});
}

#endif
