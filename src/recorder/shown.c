/* SPDX-License-Identifier: MIT
 *
 * Hides the thunks from the program: before it looks at a return address or walks its stack, the
 * return addresses that thunks have replaced are restored.
 */
#define _GNU_SOURCE
#include "recorder.h"

#define HERE ((uintptr_t)__builtin_frame_address(0))

/* The first and the last byte of this object, as the linker names them. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static int plants(const struct incstack__record *record)
{
	struct incstack_stats stats = {.size = sizeof(stats)};

	return record != incstack__recording.late &&
	       incstack_stack_stats(record->stack, &stats) == 0 &&
	       stats.mode == INCSTACK_MODE_PATCH;
}

/* A walk of the program: the walker's return slot, or a slot below it. */
struct walk {
	uintptr_t *slot;
	uintptr_t word; /* the content of the slot; 0: the walker is the caller */
};

static int is_inside(const struct incstack__record *record, uintptr_t at)
{
	return at >= record->low && at < record->high;
}

/* Whether the program still walks. If the slot still holds the same word, it may still be the
 * walker's, because later calls overwrite a dead slot. If the caller walks, or on a signal stack,
 * the word is 0 and the walk counts as over at the next flush, which sets it to 1. */
static int still_walks(const struct incstack__record *record, uintptr_t at)
{
	const uintptr_t *slot = record->walker;

	if (slot == NULL || record->walker_word == 1)
		return 0;
	if (!is_inside(record, (uintptr_t)slot) || !is_inside(record, at))
		return 1;
	return (uintptr_t)slot > at && (record->walker_word == 0 || *slot == record->walker_word);
}

void incstack__record_walk_end(struct incstack__record *record)
{
	if (still_walks(record, HERE))
		return;
	record->walker = NULL;
	if (!record->settled)
		incstack_stack_set_mode(record->stack, incstack__recording.mode);
}

static void lift_context(void)
{
	struct incstack__recording *r = &incstack__recording;
	struct incstack__quiet before;

	if (__atomic_load_n(&r->contexts, __ATOMIC_ACQUIRE) == NULL)
		return;
	incstack__record_quiet(&before);
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	incstack__record_context_leave(HERE, 1);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__record_loud(&before);
}

/* Completes the open traces and lifts the barriers. With a walk, no barrier is planted until the
 * walk has ended, because the walker may call functions that allocate. Of two nested walks the
 * outer one counts. */
static void lift(struct incstack__record *record, void *argument)
{
	const uint32_t mode = incstack__recording.mode;
	const struct walk *walk = mode == INCSTACK_MODE_PATCH ? argument : NULL;
	const int planting = plants(record);

	if (planting) {
		incstack_stack_reserve(record->stack, INCSTACK__RESERVE_BYTES);
		incstack_stack_set_mode(record->stack,
					walk != NULL ? INCSTACK_MODE_VALIDATE : mode);
	}
	if (walk != NULL &&
	    (planting || (record->walker != NULL && !still_walks(record, (uintptr_t)walk->slot)))) {
		record->walker = walk->slot;
		record->walker_word = is_inside(record, (uintptr_t)walk->slot) ? walk->word : 0;
		record->look = record->quick = 0; /* each event checks whether it has ended */
	}
	lift_context();
}

/* A child that is not recorded has no thunks: they were lifted when it was forked. */
static void walked(struct walk *walk)
{
	if (incstack__record_local.mine != NULL &&
	    __atomic_load_n(&incstack__recording.on, __ATOMIC_RELAXED))
		incstack__record_as_event(lift, walk);
}

/* The walk that a thread without a record has begun. No record is made for it: that might allocate,
 * and the walker may be a signal handler that has interrupted the allocator. */
static INCSTACK__TLS struct walk first;

void incstack__record_walk(uintptr_t *slot, int by_caller)
{
	struct walk walk = {.slot = slot, .word = by_caller ? 0 : incstack_slot_read(slot)};

	if (incstack__record_local.mine != NULL)
		walked(&walk);
	else
		first = walk;
}

void incstack__record_walk_begun(struct incstack__record *record)
{
	struct walk walk = first;

	first.slot = NULL;
	if (walk.slot != NULL)
		lift(record, &walk);
}

void incstack__record_shown(uintptr_t *slot)
{
	const uintptr_t real = incstack_slot_read(slot);

	if (__builtin_expect(real == *slot, 1))
		return;
	if (incstack__record_local.mine != NULL)
		walked(NULL);
	if (incstack_slot_read(slot) != *slot) /* the barrier counts as vanished unannounced */
		*slot = real;
}

const void *incstack__record_real_address(const void *address)
{
	return (const void *)incstack_slot_read((const uintptr_t *)&address);
}

/* Called before a possible unwinder looks at a frame. An unwinder whose functions are known will
 * call the thunks' personality routine. Another one, which is linked statically into the program or
 * a library, must meet no thunk. If it is not certain that the caller is an unwinder, it suffices
 * to lift the barriers. */
void incstack__record_lookup(uintptr_t caller, int certain)
{
	static uintptr_t known;
	const uintptr_t from = incstack_slot_read(&caller);

	if (__builtin_expect(from == __atomic_load_n(&known, __ATOMIC_RELAXED), 1) ||
	    from - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start) ||
	    incstack__record_local.state != 0)
		return;
	if (incstack_unwinder_known(from)) {
		if (certain) /* it is libgcc_s; other answers may change later */
			__atomic_store_n(&known, from, __ATOMIC_RELAXED);
		return;
	}
	if (certain)
		incstack__record_fall_back(INCSTACK__NOTE_FOREIGN_UNWINDER);
	if (incstack__record_local.mine != NULL)
		walked(NULL);
}
