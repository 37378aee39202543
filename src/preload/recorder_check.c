/* SPDX-License-Identifier: MIT
 *
 * --crosscheck: walks the whole stack at every sample and compares the trace with
 * that walk when it is retrieved, frame by frame on (pc, frame address). The walk
 * keeps nothing that it has read of code, which comes and goes.
 */
#define _GNU_SOURCE
#include "../native/native.h"
#include "recorder.h"

enum { WALK_MAX = 1 << 16, STORE_MAX = 1 << 20, TRACES_MAX = 8192 };
enum { FRAMES_BYTES = STORE_MAX * sizeof(uintptr_t[2]) };
enum { WALK_BYTES = WALK_MAX * sizeof(struct incstack_frame) };

int incstack__record_check_create(struct incstack__record *record)
{
	struct incstack__record_check *check = incstack__record_map(sizeof(*check));

	record->check = check;
	if (check == NULL)
		return INCSTACK_ENOMEM;
	check->frames = incstack__record_map(FRAMES_BYTES);
	check->walk = incstack__record_map(WALK_BYTES);
	return check->frames != NULL && check->walk != NULL ? 0 : INCSTACK_ENOMEM;
}

void incstack__record_check_destroy(struct incstack__record *record)
{
	struct incstack__record_check *check = record->check;

	if (check == NULL)
		return;
	incstack__record_unmap(check->frames, FRAMES_BYTES);
	incstack__record_unmap(check->walk, WALK_BYTES);
	incstack__record_unmap(check, sizeof(*check));
}

/* Whether one more walk fits whatever its depth. */
int incstack__record_check_room(const struct incstack__record *record)
{
	return record->traces < TRACES_MAX && record->check->used <= STORE_MAX - WALK_MAX;
}

/* Makes what libunwind needs memory for. */
void incstack__record_check_start(void)
{
	struct incstack_frame frames[4];

	if (incstack__recording.crosscheck)
		incstack_native_walk(frames, 4);
}

/* libunwind masks signals through libc, which would unblock libc's own: in libc's threads,
 * and while the process forks, there is no walk. */
static int walk(const struct incstack__record_check *check, const struct incstack__quiet *before)
{
	int count;

	if (incstack__record_blocks_libc(before) ||
	    incstack__lock_take_unless_forking(INCSTACK__LOCK_WALK) != 0)
		return 0;
	count = incstack_native_walk(check->walk, WALK_MAX);
	incstack__lock_give(INCSTACK__LOCK_WALK);
	return count;
}

/* The walk starts in the recorder: frames younger than the sample's top go. The trace was
 * marked as one without a walk before its sample. */
void incstack__record_check_walk(struct incstack__record *record, uint64_t index,
				 const struct incstack_top *top)
{
	struct incstack__record_check *check = record->check;
	struct incstack__quiet before;
	const uintptr_t pc = incstack_slot_read(&top->pc);
	int count;
	int i = 0;

	incstack__record_quiet(&before);
	count = walk(check, &before);
	if (count == 0) {
		incstack__record_loud(&before);
		return;
	}
	while (i < count && (check->walk[i].sp != top->sp || check->walk[i].pc != pc))
		i++;
	check->used = check->first[index];
	for (; i < count; i++, check->used++) {
		check->frames[check->used][0] = check->walk[i].pc;
		check->frames[check->used][1] = check->walk[i].sp;
	}
	check->first[index + 1] = check->used;
	incstack__record_loud(&before);
}

/* There is no walk, and none will come where a jump ends the event: a frame without a pc. */
void incstack__record_check_skip(struct incstack__record *record, uint64_t index)
{
	struct incstack__record_check *check = record->check;

	check->used = check->first[index]; /* which is where the trace before it ends */
	check->frames[check->used][0] = 0;
	check->first[index + 1] = ++check->used;
}

static int skipped(const struct incstack__record_check *check, uint64_t index)
{
	const size_t at = check->first[index];

	return at < check->first[index + 1] && check->frames[at][0] == 0;
}

static int same(const struct incstack__record_check *check, uint64_t index,
		const struct incstack_frame_object *object)
{
	size_t at = check->first[index];
	const size_t end = check->first[index + 1];

	for (; object != NULL; object = object->parent, at++) {
		if (at == end || check->frames[at][0] != object->method ||
		    check->frames[at][1] != object->address)
			return 0;
		if (object->flags & INCSTACK_OBJECT_TRUNCATED)
			return 1;
	}
	return at == end;
}

void incstack__record_check_tree(struct incstack__record *record, const struct incstack_tree *tree)
{
	struct incstack__record_check *check = record->check;
	uint64_t index = 0;

	for (const struct incstack_trace *trace = tree->traces; trace != NULL;
	     trace = trace->next) {
		check->compared += !skipped(check, index);
		check->mismatches += !skipped(check, index) && !same(check, index, trace->top);
		index++;
	}
	check->used = 0;
}
