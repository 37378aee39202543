/* SPDX-License-Identifier: MIT
 *
 * Writes what every thread has recorded, before the process ends or executes another program.
 * The other threads are held in the handler of a directed signal while their traces are
 * completed. If a thread does not answer in time, its traces are not written; the spool stays
 * then, and the reader finds them there (spool.c).
 *
 * The states of `held` hand a record over and back. WANTED: a signal was sent. HELD: the
 * handler's exchange releases the record, and the acquire load in write_all_held takes it over.
 * RELEASED: the store in write_held gives it back, and the acquire load in the handler's loop
 * pairs with it. FREE: the handler's store ends the exchange; it pairs with the acquire loads in
 * wait_for_released and change().
 */
#include <stdatomic.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "interrupted.h"
#include "native/native.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/threads/threads.h"

enum { FREE = 0, WANTED, HELD, RELEASED };

/* A step takes 50 us or somewhat more. So the wait for a thread takes some 100 to 200 ms at
 * most. */
enum { WAIT_STEPS = 200, ASK_AGAIN = 20, ROUNDS = 10, HOLD_AGAIN = 8 };

/* The signal with which libc changes the user IDs of all threads. No thread blocks it or waits for
 * it, because libc removes it from every mask. Every other signal is blocked in many threads. */
enum { LIBC_SIGNAL = 33 };

/* The kernel's struct sigaction, because libc's sigaction refuses that signal. */
struct action {
	void (*handler)(int number, siginfo_t *info, void *context);
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

static struct action of_libc;

static int set_action(const struct action *new, struct action *old)
{
	return (int)incstack__kernel_call(SYS_rt_sigaction, LIBC_SIGNAL, new, old,
					  sizeof(new->mask));
}

static void nap(void)
{
	incstack__nap(50000);
}

/* Waits until the thread is released. Thousands of threads may be held at once. If each of them looked again and again,
 * they would take all processors from the thread that writes them. */
static void wait_while_held(struct incstack__record *record)
{
	const struct timespec most = {.tv_nsec = 100000000};

	incstack__system_call(SYS_futex, &record->held, FUTEX_WAIT_PRIVATE, HELD, &most);
}

static bool change(struct incstack__record *record, int from, int to)
{
	return atomic_compare_exchange_strong_explicit(&record->held, &from, to,
						       memory_order_acq_rel, memory_order_acquire);
}

/* The signal handler. A thread inside the recorder, or in a return through a thunk, does not hold
 * still; it is asked again. */
static void hold(int number, siginfo_t *info, void *context)
{
	struct incstack__record *record = incstack__record_local.mine;
	const int saved = errno;

	if (info->si_code != SI_QUEUE) {
		of_libc.handler(number, info, context);
		return;
	}
	if (record)
		incstack__restart(&record->held_call, context);
	if (incstack__record_local.state != 0 || !record || incstack__stack_is_busy(record->stack))
		return;
	record->held_at = (uintptr_t)__builtin_frame_address(0);
	record->held_top = incstack_native_top(context);
	if (!change(record, WANTED, HELD))
		return;
	incstack__record_local.state = INCSTACK__INSIDE;
	while (atomic_load_explicit(&record->held, memory_order_acquire) == HELD)
		wait_while_held(record);
	incstack_stack_set_owner(record->stack);
	atomic_store_explicit(&record->held, FREE, memory_order_release);
	incstack__record_local.state = 0;
	errno = saved;
}

/* Puts our handler in front of libc's, which exists since the first pthread_create. Returns
 * non-zero if no thread can be held. */
static int take_signal(void)
{
	struct action mine;

	if (set_action(NULL, &of_libc) != 0 || (uintptr_t)of_libc.handler <= (uintptr_t)SIG_IGN ||
	    !(of_libc.flags & SA_SIGINFO) || of_libc.handler == hold)
		return -1;
	mine = of_libc;
	mine.handler = hold;
	mine.mask = UINT64_MAX;
	return set_action(&mine, NULL);
}

/* Sends the signal. libc's handler ignores a signal that was queued. */
static int ask(struct incstack__record *record)
{
	siginfo_t info;

	incstack__restart_prepare(record->tid, &record->held_call);
	memset(&info, 0, sizeof(info));
	info.si_signo = LIBC_SIGNAL;
	info.si_code = SI_QUEUE;
	info.si_pid = incstack__recording.pid;
	return (int)incstack__kernel_call(SYS_rt_tgsigqueueinfo, incstack__recording.pid,
					  record->tid, LIBC_SIGNAL, &info);
}

/* ---- all at once ------------------------------------------------------------------- */

/* Counts calls of incstack__record_flush_all, each of which writes each thread once. */
static uint32_t times;

static bool is_left(const struct incstack__record *record)
{
	return record != incstack__record_local.mine && record->written != times;
}

static void release(struct incstack__record *record)
{
	atomic_store_explicit(&record->held, RELEASED, memory_order_release);
	incstack__system_call(SYS_futex, &record->held, FUTEX_WAKE_PRIVATE, 1);
}

static void write_held(struct incstack__record *record, bool last)
{
	if (incstack_stack_set_owner(record->stack) == 0) {
		if (incstack__kind->held)
			incstack__kind->held(record);
		incstack__interrupted_settle(record, &record->held_top);
		incstack__record_flush(record);
	}
	incstack__record_contexts_flush(record->tid, record->held_at, &record->held_top, last);
	record->written = times;
	record->held_in_vain = 0;
	release(record);
}

/* Whether the thread should run for a moment and then be held again. The rules do not describe the
 * place where it stands, so they do not show which frames are left. Its open traces would be
 * truncated. */
static bool is_held_in_vain(struct incstack__record *record)
{
	if (record->held_in_vain == HOLD_AGAIN ||
	    incstack__interrupted_is_settleable(record, &record->held_top))
		return false;
	record->held_in_vain++;
	return true;
}

static void write_gone(struct incstack__record *record, bool last)
{
	incstack__record_write_gone(record);
	incstack__record_contexts_flush(record->tid, 0, NULL, last);
	record->written = times;
	atomic_store_explicit(&record->held, FREE, memory_order_release);
}

/* Sends the signal to all threads that are left. A thread that was asked before may have been in
 * the recorder, or be gone. */
static void ask_all(bool last)
{
	for (struct incstack__record *i = incstack__recording.threads; i; i = i->next) {
		if (!is_left(i))
			continue;
		change(i, FREE, WANTED);
		if (atomic_load_explicit(&i->held, memory_order_acquire) == WANTED && ask(i) != 0 &&
		    incstack__record_is_gone(i))
			write_gone(i, last);
	}
}

/* Writes the threads that are held. Returns how many are left. */
static int write_all_held(bool last)
{
	int left = 0;

	for (struct incstack__record *i = incstack__recording.threads; i; i = i->next) {
		if (!is_left(i))
			continue;
		if (atomic_load_explicit(&i->held, memory_order_acquire) != HELD) {
			left++;
		} else if (is_held_in_vain(i)) {
			left++;
			release(i);
		} else {
			write_held(i, last);
		}
	}
	return left;
}

/* Withdraws the requests that were not answered, so that a thread that answers later is not held.
 * Returns how many are left. */
static int take_back(bool last)
{
	for (struct incstack__record *i = incstack__recording.threads; i; i = i->next)
		if (is_left(i))
			change(i, WANTED, FREE);
	return write_all_held(last);
}

/* A thread that was asked may be in the handler or enter it later, even if it did not answer in
 * time. A sandbox that begins now may forbid the return from the handler. A thread that did not
 * answer may have the signal blocked for ever, so the wait for it is short. */
static void wait_for_handlers(void)
{
	enum { STEPS_OF_ANSWERED = 20000, STEPS_OF_OTHERS = 1000 }; /* a second, 50 ms */

	for (const struct incstack__record *i = incstack__recording.threads; i; i = i->next)
		if (i != incstack__record_local.mine)
			incstack__record_await_thread(i->tid, LIBC_SIGNAL,
						      i->written == times ? STEPS_OF_ANSWERED
									  : STEPS_OF_OTHERS);
}

/* Waits until the released threads have taken their stacks back. Before that, they would answer
 * another request late. */
static void wait_for_released(void)
{
	for (int step = 0; step < WAIT_STEPS; step++, nap()) {
		const struct incstack__record *i = incstack__recording.threads;

		while (i && atomic_load_explicit(&i->held, memory_order_acquire) != RELEASED)
			i = i->next;
		if (!i)
			break;
	}
	if (incstack__recording.stopping)
		wait_for_handlers();
}

/* Writes the other threads. Returns how many did not hold still. While threads are held, no call
 * may wait for a lock that one of them may have. */
static int flush_others(bool last)
{
	int left = write_all_held(last);

	if (left == 0 || take_signal() != 0)
		return left;
	incstack__lock_stopped(1);
	for (int step = 0; left != 0 && step < WAIT_STEPS; step++) {
		if (step % ASK_AGAIN == 0)
			ask_all(last);
		nap();
		left = write_all_held(last);
	}
	if (left != 0)
		left = take_back(last);
	if (!last || incstack__recording.stopping)
		wait_for_released();
	incstack__lock_stopped(-1);
	set_action(&of_libc, NULL);
	return left;
}

static void flush_shared_record(uint32_t flags)
{
	struct incstack__record *shared = incstack__recording.shared_record;

	if (incstack_stack_set_owner(shared->stack) != 0)
		return;
	incstack__record_flush(shared);
	incstack__record_tally(shared, flags);
}

/* Writes all records. A thread in the recorder does not hold still. It may be waiting for the lock,
 * so the lock is released between the rounds. */
void incstack__record_flush_all(uint32_t flags)
{
	struct incstack__record *self = incstack__record_self();
	const bool last = (flags & INCSTACK__TRACEFILE_TALLY_PROCESS) != 0;
	int left = 0;

	/* Modules are checked before any thread is held, because a held thread may have the dynamic
	 * linker's lock. */
	incstack__record_modules();
	if (self)
		incstack__record_flush(self);
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	times++;
	incstack__record_contexts_flush(incstack__kernel_gettid(),
					(uintptr_t)__builtin_frame_address(0), NULL, last);
	for (int round = 0; round < ROUNDS && (left = flush_others(last)) != 0; round++) {
		incstack__lock_give(INCSTACK__LOCK_RECORDING);
		nap();
		incstack__lock_take(INCSTACK__LOCK_RECORDING);
	}
	if (left != 0)
		incstack__record_note(INCSTACK__NOTE_THREAD_BUSY);
	incstack__record_contexts_flush_rest(last);
	flush_shared_record(flags);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
}

/* Whether the caller must not write the records. A child of vfork runs in its parent's memory, so
 * the records do not belong to it. */
static bool not_ours(void)
{
	return incstack__record_local.state != 0 || !incstack__recording.on ||
	       incstack__kernel_getpid() != incstack__recording.pid;
}

void incstack__record_exec(void)
{
	struct incstack__protection before;

	if (not_ours())
		return;
	incstack__record_protect(&before);
	incstack__record_note_unwritable();
	incstack__record_flush_all(INCSTACK__TRACEFILE_TALLY_EXEC);
	incstack__record_unprotect(&before);
}

static bool are_written(const struct incstack__record *list)
{
	while (list && list->log.used == 0)
		list = list->next;
	return !list;
}

/* Whether every record is written. If a thread could not be held, the reader finds in the spool
 * what it recorded. */
static bool all_written(void)
{
	struct incstack__recording *r = &incstack__recording;
	bool written;

	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	written = are_written(r->threads) && are_written(r->contexts) &&
		  are_written(r->shared_record);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	return written;
}

void incstack__record_exit(void)
{
	struct incstack__record_moment moment = {.memory = NULL};
	struct incstack__protection before;

	if (not_ours())
		return;
	incstack__record_protect(&before);
	atomic_store_explicit(&incstack__recording.on, 0, memory_order_seq_cst);
	atomic_fetch_add_explicit(&incstack__recording.changes, 1, memory_order_seq_cst);
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	incstack__kind->stop();
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	if (!incstack__recording.stopping) { /* else it goes on */
		incstack__record_resident();
		incstack__record_moment_look(&moment);
	}
	incstack__record_flush_all(INCSTACK__TRACEFILE_TALLY_PROCESS);
	incstack__record_moment_write(&moment);
	if (all_written())
		incstack__spool_remove();
	incstack__record_unprotect(&before);
}
