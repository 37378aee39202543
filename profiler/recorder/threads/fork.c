/* SPDX-License-Identifier: MIT
 *
 * The recorder's state in the child of fork. The kernel wipes the recording and all memory of the
 * core except that of the traces. A stack that reads as zero belongs to no thread, so it is not
 * used. The memory of the traces is shared with the parent, so the child gives it up. If
 * children are recorded, the child starts a new recording.
 *
 * A signal handler that forks may have interrupted an event, or a return through a thunk. The
 * child finishes it when its handler returns. For such a fork nothing is wiped, and the child
 * gets private copies of what it shares with the parent, which it may change without harm. If
 * children are recorded, the new recording starts at the thread's next event after that.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "recorder/system/kernel.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/threads/threads.h"

/* The header of each piece of memory that a fork wipes. */
struct piece {
	struct piece *next;
	struct piece **link;
	size_t bytes;
} __attribute__((aligned(64)));

static struct piece *pieces; /* under LOCK_PIECES; no signal handler runs while it is held */

/* A copy of the parent's recording for the child, whose own recording is wiped. */
static struct incstack__recording forked_from;
static int interrupted; /* whether the forking thread is in the middle of an event or a return */
static INCSTACK__TLS uintptr_t state_before;
/* In a child that was forked in the middle of an event or a return, until it starts a new
 * recording: the record of its thread, and how many events came too early to be recorded. */
static struct incstack__record *_Atomic unfinished;
static _Atomic uint64_t events_missed;

void *incstack__wiped_allocate(void *context, size_t bytes)
{
	struct piece *piece = NULL;

	(void)context;
	if (!incstack__record_local.handling)
		piece = incstack__record_map(sizeof(*piece) + bytes);
	if (!piece)
		return NULL;
	piece->bytes = sizeof(*piece) + bytes;
	incstack__kernel_madvise(piece, piece->bytes, MADV_WIPEONFORK);
	incstack__lock_take(INCSTACK__LOCK_PIECES);
	piece->next = pieces;
	piece->link = &pieces;
	if (pieces)
		pieces->link = &piece->next;
	pieces = piece;
	incstack__lock_give(INCSTACK__LOCK_PIECES);
	return piece + 1;
}

void incstack__wiped_release(void *context, void *memory, size_t bytes)
{
	struct piece *piece = (struct piece *)memory - 1;

	(void)context;
	(void)bytes;
	incstack__lock_take(INCSTACK__LOCK_PIECES);
	*piece->link = piece->next;
	if (piece->next)
		piece->next->link = piece->link;
	incstack__lock_give(INCSTACK__LOCK_PIECES);
	incstack__record_unmap(piece, piece->bytes);
}

static void advise_all(int advice)
{
	incstack__kernel_madvise(&incstack__recording, sizeof(incstack__recording), advice);
	incstack__lock_take(INCSTACK__LOCK_PIECES);
	for (const struct piece *i = pieces; i; i = i->next)
		incstack__kernel_madvise((void *)(uintptr_t)i, i->bytes, advice);
	incstack__lock_give(INCSTACK__LOCK_PIECES);
}

static bool is_interrupted(void)
{
	const struct incstack__record *mine = incstack__record_local.mine;

	return mine && ((state_before != 0 && state_before != INCSTACK__INSIDE) ||
			incstack__stack_is_busy(mine->stack));
}

static void before_fork(void)
{
	if (incstack__recording.on)
		incstack__record_modules();
	state_before = incstack__record_local.state;
	incstack__record_local.state = INCSTACK__INSIDE;
	incstack__lock_fork();
	forked_from = incstack__recording;
	interrupted = forked_from.on && is_interrupted();
	if (!interrupted)
		return;
	advise_all(MADV_KEEPONFORK);
}

static void after_fork(void)
{
	if (interrupted)
		advise_all(MADV_WIPEONFORK);
	interrupted = 0;
	incstack__lock_forked();
	incstack__record_local.state = state_before;
}

/* Restores the return addresses of the stack on which this thread, the only thread, runs. In a
 * child whose fork was not announced, thunks stay on the stack. They still lead to the right return
 * addresses and do nothing else, because the stack object that they belong to is wiped. */
static void lift_thunks(uintptr_t at)
{
	const struct incstack__record *record = incstack__record_local.mine;

	if (record)
		incstack__stack_forked(record->stack);
	for (record = forked_from.contexts; record; record = record->next)
		if (at >= record->low && at < record->high)
			incstack__stack_forked(record->stack);
}

/* Lets the child finish the interrupted event or return as the parent would, on private copies. */
static void finish_privately(void)
{
	struct incstack__recording *r = &incstack__recording;

	r->on = 0;
	r->changes = 0;
	incstack__record_make_private(r->slots, INCSTACK__TRACEFILE_COUNTERS_BYTES);
	r->slots = NULL; /* a record may still point to them, so they stay mapped */
	incstack__spool_make_private();
	incstack__record_close();
	incstack__record_local.state = state_before;
	forked_from.on = 0;
	forked_from.fd = -1;
	events_missed = 0;
	unfinished = forked_from.follow ? incstack__record_local.mine : NULL;
}

static void (*begin_again)(const struct incstack__recording *);

static void begin_anew(void)
{
	lift_thunks((uintptr_t)__builtin_frame_address(0));
	incstack__recording = forked_from;
	incstack__record_close();
	memset(&incstack__recording, 0, sizeof(incstack__recording));
	incstack__record_forked();
	incstack__spool_leave();
	if (forked_from.follow)
		begin_again(&forked_from);
}

/* Wipes the memory that the fork has not wiped. */
static void wipe_all(void)
{
	struct piece *next;

	for (struct piece *i = pieces; i; i = next) {
		next = i->next;
		incstack__kernel_madvise(i, i->bytes, MADV_DONTNEED);
	}
	pieces = NULL;
}

static bool is_finished(void)
{
	return incstack__record_local.mine == unfinished && incstack__record_local.state == 0 &&
	       !incstack__stack_is_busy(unfinished->stack);
}

bool incstack__record_begin_late(void)
{
	struct incstack__protection before;

	if (!atomic_load_explicit(&unfinished, memory_order_relaxed))
		return false;
	if (!is_finished()) {
		atomic_fetch_add_explicit(&events_missed, 1, memory_order_relaxed);
		return false;
	}
	incstack__record_protect(&before);
	unfinished = NULL;
	wipe_all();
	begin_anew();
	incstack__record_modules_forked();
	if (incstack__recording.slots)
		incstack__recording.slots[0].interrupting = events_missed;
	before.state = 0;
	incstack__record_unprotect(&before);
	return incstack__recording.on;
}

static void after_fork_child(void)
{
	struct incstack__protection before;

	incstack__locks_make();
	if (!forked_from.on) { /* nothing more: in a sandbox, even close may be forbidden */
		memset(&incstack__recording, 0, sizeof(incstack__recording));
		incstack__record_forked();
		incstack__record_modules_forked();
		return;
	}
	incstack__record_protect(&before);
	if (interrupted) {
		finish_privately();
	} else {
		pieces = NULL;
		begin_anew();
	}
	incstack__record_modules_forked();
	before.state = interrupted ? state_before : 0;
	interrupted = 0;
	incstack__record_unprotect(&before);
}

int incstack__record_watch_forks(void (*function)(const struct incstack__recording *))
{
	begin_again = function;
	return pthread_atfork(before_fork, after_fork, after_fork_child);
}
