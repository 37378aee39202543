/* SPDX-License-Identifier: MIT
 *
 * --crosscheck: walks the whole stack at every sample. When the trace is retrieved, it compares
 * each frame's pc and frame address with that walk. libunwind makes the walk; it forgets what it
 * has cached about code when modules are loaded or unloaded. With --crosscheck=own, the core makes
 * the walk (full_walk.c), and libunwind only now and then.
 */
#include <stdatomic.h>
#include <string.h>

#include "own_stack.h"
#include "tracefile/walks.h"
#include "native/native.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/code/modules.h"

/* A walk by libunwind begins in the recorder, and has a few frames more. */
enum { WALK_MAX = INCSTACK__WALK_FRAMES_MOST + 64 };
enum { WORDS_MAX = INCSTACK__SPOOL_WALK_BYTES_MOST / sizeof(uint64_t) };
enum { WALK_BYTES = WALK_MAX * sizeof(struct incstack_frame) };

/* A prime number, because the loops of a program often have round lengths. */
enum { UNWIND_EVERY = 997 };

/* Returns where the walk of a trace begins: behind the walk of the previous trace. */
static size_t first(const struct incstack__record_check *check, uint64_t index)
{
	const uint64_t word = index > 0 ? check->words[check->first[index - 1]] : 0;

	if (index == 0)
		return 0;
	return check->first[index - 1] + incstack__walk_words(word != 0 ? word - 1 : 0);
}

static size_t used(const struct incstack__record *record)
{
	return first(record->check, record->live.walk_count);
}

/* Moves the walks to a larger room in the spool. A kill between the stores to `walks` and
 * `walk_bytes` leaves the larger room with the size of the smaller room, which is readable.
 * Returns non-zero if there is no memory. */
static int move(struct incstack__record *record, size_t size)
{
	struct incstack__record_check *check = record->check;
	uint64_t *before = check->words;
	const size_t bytes_before = check->size * sizeof(*before);
	uint64_t *words = incstack__spool_room(size * sizeof(*words));

	if (!words)
		return INCSTACK_ENOMEM;
	if (before)
		memcpy(words, before, used(record) * sizeof(*words));
	check->words = words;
	check->size = size;
	atomic_signal_fence(memory_order_seq_cst);
	record->live.walks = (uintptr_t)words;
	atomic_signal_fence(memory_order_seq_cst);
	record->live.walk_bytes = size * sizeof(*words);
	incstack__spool_room_release(before, bytes_before);
	return 0;
}

/* Makes room for so many more words. Returns non-zero if there is no room. */
static int make_room(struct incstack__record *record, size_t words)
{
	size_t size = record->check->size;
	struct incstack__protection before;
	int error;

	words += used(record);
	if (words <= size)
		return 0;
	if (size == 0)
		size = INCSTACK__SPOOL_ROOM_LEAST / sizeof(*record->check->words);
	while (size < words)
		size *= 2;
	if (size > WORDS_MAX)
		return INCSTACK_ENOMEM;
	incstack__record_protect(&before);
	error = move(record, size);
	incstack__record_unprotect(&before);
	return error;
}

int incstack__record_check_create(struct incstack__record *record)
{
	struct incstack__record_check *check = incstack__record_map(sizeof(*check));

	record->check = check;
	if (!check)
		return INCSTACK_ENOMEM;
	check->walk = incstack__record_map(WALK_BYTES);
	return check->walk ? make_room(record, 1) : INCSTACK_ENOMEM;
}

void incstack__record_check_destroy(struct incstack__record *record)
{
	struct incstack__record_check *check = record->check;

	if (!check)
		return;
	record->live.walks = 0;
	atomic_signal_fence(memory_order_seq_cst);
	incstack__spool_room_release(check->words, check->size * sizeof(*check->words));
	incstack__record_unmap(check->walk, WALK_BYTES);
	incstack__record_unmap(check, sizeof(*check));
}

/* Whether one more walk fits, whatever its depth is. */
bool incstack__record_check_room(const struct incstack__record *record)
{
	return record->traces < INCSTACK__WALKS_MAX &&
	       used(record) + incstack__walk_words(WALK_MAX) < WORDS_MAX;
}

/* Makes a first walk of each kind, so that libunwind allocates its memory now. A later walk may be
 * made in a signal handler, which may have interrupted the allocator. */
void incstack__record_check_start(void)
{
	struct incstack_frame frames[4];

	if (incstack__recording.crosscheck == INCSTACK__CHECK_NONE)
		return;
	incstack_native_walk(frames, 4);
	incstack__native_walk_remembering(frames, 4, true);
}

/* Stores a walk. The word that says that there is no walk is replaced last, because a jump may
 * end this function at any place. */
static void put_walk(struct incstack__record *record, uint64_t index,
		     const struct incstack_frame *frames, size_t count)
{
	struct incstack__record_check *check = record->check;
	uint64_t *at;

	if (count > INCSTACK__WALK_FRAMES_MOST)
		count = INCSTACK__WALK_FRAMES_MOST;
	if (make_room(record, incstack__walk_words(count)) != 0)
		return;
	at = check->words + check->first[index];
	for (size_t i = 0; i < count; i++) {
		at[1 + 2 * i] = frames[i].pc;
		at[2 + 2 * i] = frames[i].sp;
	}
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit((_Atomic uint64_t *)at, count + 1, memory_order_relaxed);
}

/* Walks with libunwind. libunwind masks signals through libc, which would unblock libc's internal
 * signals, so there is no walk in libc's own threads. There is also no walk while a fork takes too
 * long. */
static int unwind(const struct incstack__record_check *check,
		  const struct incstack__protection *before)
{
	static struct incstack__record_counts modules; /* under the lock of walks */
	int count;

	if (incstack__record_blocks_libc(before) ||
	    !incstack__lock_take_after_fork(INCSTACK__LOCK_WALK))
		return 0;
	count = incstack__native_walk_remembering(check->walk, WALK_MAX,
						  !incstack__record_modules_are(&modules));
	incstack__lock_give(INCSTACK__LOCK_WALK);
	return count;
}

struct wanted_walk {
	struct incstack__record *record;
	const struct incstack_top *top;
	uint64_t index; /* of the trace */
	struct incstack__protection before;
};

/* Walks with libunwind and stores the walk. The walk begins in the recorder, so frames younger than
 * the sample's top are dropped. Returns non-zero if there is no walk. */
static int walk_with_libunwind(const struct wanted_walk *wanted)
{
	struct incstack__record *record = wanted->record;
	const struct incstack_frame *frames = record->check->walk;
	const uintptr_t pc = incstack_slot_read(&wanted->top->pc);
	const int count = unwind(record->check, &wanted->before);
	int i = 0;

	if (count == 0)
		return -1;
	while (i < count && (frames[i].sp != wanted->top->sp || frames[i].pc != pc))
		i++;
	put_walk(record, wanted->index, frames + i, (size_t)(count - i));
	atomic_fetch_add_explicit(&record->slot->unwound, 1, memory_order_relaxed);
	return 0;
}

/* Whether the walk ended because the handler of a tick may not look up the rules of a new module. A
 * trace may be longer, because its callers are walked later. */
static bool is_cut_short(const struct incstack_frame *last)
{
	return incstack__record_local.handling && !incstack__record_host_knows(last->pc - 1);
}

/* Walks with the core, which takes no lock. */
static void walk_by_ourselves(const struct wanted_walk *wanted)
{
	struct incstack__record *record = wanted->record;
	struct incstack_frame *frames = record->check->walk;
	const int count = incstack__full_walk(record->stack, wanted->top, frames, WALK_MAX);

	if (count > 0 && !is_cut_short(&frames[count - 1]))
		put_walk(record, wanted->index, frames, (size_t)count);
}

/* Whether libunwind walks for this trace. It walks for every trace or, with --crosscheck=own, for
 * the first trace of a thread and every UNWIND_EVERY-th trace after it. */
static bool is_for_libunwind(struct incstack__record_check *check)
{
	if (incstack__recording.crosscheck == INCSTACK__CHECK_LIBUNWIND)
		return true;
	if (check->until_unwound > 0)
		return check->until_unwound--, false;
	check->until_unwound = UNWIND_EVERY - 1;
	return true;
}

static void walk(void *argument)
{
	const struct wanted_walk *wanted = argument;

	if (is_for_libunwind(wanted->record->check) && walk_with_libunwind(wanted) == 0)
		return;
	if (incstack__recording.crosscheck == INCSTACK__CHECK_OWN)
		walk_by_ourselves(wanted);
}

/* Adds the walk of a trace. The walk is made on a stack of the recorder, because libunwind needs
 * more than the stacks of some threads and signal handlers have. The handler of a tick is on a
 * stack with enough room already; if that is a signal stack, it must stay there, because the next
 * tick would overwrite it. Before the sample, incstack__record_check_skip has marked the trace as a
 * trace without a walk. */
void incstack__record_check_walk(struct incstack__record *record, uint64_t index,
				 const struct incstack_top *top)
{
	struct wanted_walk wanted = {.record = record, .top = top, .index = index};

	if (record->live.walk_count != index + 1)
		return;
	incstack__record_protect(&wanted.before);
	if (incstack__record_local.handling)
		walk(&wanted);
	else
		incstack__own_stack_run(record, walk, &wanted);
	incstack__record_unprotect(&wanted.before);
}

/* Marks the next trace as a trace without a walk. The mark stays if a jump ends the event. If the
 * sample is refused, the mark applies to the trace after it. A jump may also end this function, at
 * any place. */
void incstack__record_check_skip(struct incstack__record *record, uint64_t index)
{
	struct incstack__record_check *check = record->check;
	struct incstack__spool_live *live = &record->live;

	if (index > live->walk_count || index >= INCSTACK__WALKS_MAX || make_room(record, 1) != 0)
		return;
	check->first[index] = (uint32_t)first(check, index);
	check->words[check->first[index]] = 0;
	atomic_signal_fence(memory_order_seq_cst);
	live->walk_count = index + 1;
}

void incstack__record_check_tree(struct incstack__record *record, const struct incstack_tree *tree)
{
	struct incstack__record_check *check = record->check;
	const struct incstack__walks walks = {check->words, check->size, record->live.walk_count};

	incstack__walks_compare(&walks, tree, &check->compared, &check->mismatches);
}

void incstack__record_check_clear(struct incstack__record *record)
{
	record->live.walk_count = 0;
}
