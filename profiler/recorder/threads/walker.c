/* SPDX-License-Identifier: MIT
 *
 * A walk of the program over its own stack. While the walk lasts, no barrier is on the stack.
 */

#include <stdatomic.h>

#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/threads/threads.h"

#define HERE ((uintptr_t)__builtin_frame_address(0))

static bool plants(const struct incstack__record *record)
{
	struct incstack_stats stats = {.size = sizeof(stats)};

	return record != incstack__recording.shared_record &&
	       incstack_stack_stats(record->stack, &stats) == 0 &&
	       stats.mode == INCSTACK_MODE_PATCH;
}

static bool is_inside(const struct incstack__record *record, uintptr_t at)
{
	return at >= record->low && at < record->high;
}

/* Whether the program still walks. If the slot still holds the same word, the slot may still be the
 * walker's, because later calls overwrite a dead slot. If the caller itself walks, or the walk is
 * on a signal stack, the word is 0. Such a walk counts as over at the next flush, which sets the
 * word to 1. */
static bool still_walks(const struct incstack__record *record, uintptr_t at)
{
	const uintptr_t *slot = record->walker;

	if (!slot || record->walker_word == 1)
		return false;
	if (!is_inside(record, (uintptr_t)slot) || !is_inside(record, at))
		return true;
	return (uintptr_t)slot > at && (record->walker_word == 0 || *slot == record->walker_word);
}

void incstack__record_walk_end(struct incstack__record *record)
{
	if (still_walks(record, HERE))
		return;
	record->walker = NULL;
	if (!record->no_barriers)
		incstack_stack_set_mode(record->stack, incstack__recording.mode);
}

static void lift_context(void)
{
	struct incstack__recording *r = &incstack__recording;
	struct incstack__protection before;

	if (!atomic_load_explicit(&r->contexts, memory_order_acquire))
		return;
	incstack__record_protect(&before);
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	incstack__record_context_leave(HERE, 1);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__record_unprotect(&before);
}

/* Completes the open traces and lifts the barriers. If `argument` is a walk, no barrier is planted
 * until the walk has ended, because the walker may call functions that allocate. Of two nested
 * walks the outer walk counts. */
void incstack__walker_lift(struct incstack__record *record, void *argument)
{
	const uint32_t mode = incstack__recording.mode;
	const struct incstack__walker *walk = mode == INCSTACK_MODE_PATCH ? argument : NULL;
	const bool planting = plants(record);

	if (planting) {
		incstack_stack_reserve(record->stack, INCSTACK__RESERVE_BYTES);
		incstack_stack_set_mode(record->stack, walk ? INCSTACK_MODE_VALIDATE : mode);
	}
	if (walk && (planting || (record->walker && !still_walks(record, (uintptr_t)walk->slot)))) {
		record->walker = walk->slot;
		record->walker_word = is_inside(record, (uintptr_t)walk->slot) ? walk->word : 0;
		record->look = record->quick = 0; /* each event checks whether the walk has ended */
	}
	lift_context();
}

INCSTACK__TLS struct incstack__walker incstack__walker_first;

void incstack__record_walk_begun(struct incstack__record *record)
{
	struct incstack__walker walk = incstack__walker_first;

	incstack__walker_first.slot = NULL;
	if (walk.slot)
		incstack__walker_lift(record, &walk);
}
