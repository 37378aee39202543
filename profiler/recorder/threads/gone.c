/* SPDX-License-Identifier: MIT
 *
 * Threads that ended by the bare system call (D57). None of their destructors has run, so another
 * thread writes what they have recorded. Their stacks are not accessed, because the memory may
 * belong to another thread by now.
 */
#include <stdatomic.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/threads/threads.h"

enum { LOOK_FIRST = 16 };

/* Whether the thread of a record has ended. Signal 0 tests this and is not delivered. */
bool incstack__record_is_gone(const struct incstack__record *record)
{
	const pid_t pid = incstack__recording.pid;
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	info.si_pid = pid;
	return incstack__system_call(SYS_rt_tgsigqueueinfo, pid, record->tid, 0, &info) == -ESRCH;
}

/* Writes the record. Its open traces are truncated, and its thunks can be used again. */
void incstack__record_write_gone(struct incstack__record *record)
{
	if (incstack_stack_set_owner(record->stack) != 0)
		return;
	incstack_stack_forget(record->stack);
	incstack__record_flush(record);
}

static void give_up(struct incstack__record *record)
{
	incstack__record_write_gone(record);
	incstack_stack_abandon(record->stack);
	incstack__record_discard(record);
}

/* Releases the records of all threads that are gone. The caller has no record yet, so a record with
 * the caller's thread number belongs to a thread that is gone. Returns how many are left. */
static uint32_t give_up_all(pid_t tid)
{
	struct incstack__record *_Atomic *at = &incstack__recording.threads;
	uint32_t left = 0;

	while (*at) {
		struct incstack__record *record = *at;

		if (record->tid != tid && !incstack__record_is_gone(record)) {
			at = &record->next;
			left++;
			continue;
		}
		/* release: as in create() of thread.c. */
		atomic_store_explicit(at, record->next, memory_order_release);
		give_up(record);
	}
	return left;
}

void incstack__record_release_gone(void)
{
	struct incstack__recording *r = &incstack__recording;
	uint32_t left;

	if (atomic_fetch_add_explicit(&r->threads_new, 1, memory_order_relaxed) + 1 <
	    atomic_load_explicit(&r->threads_look, memory_order_relaxed) + LOOK_FIRST)
		return;
	incstack__record_modules(); /* modules are checked before each batch */
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	left = give_up_all(incstack__kernel_gettid());
	atomic_store_explicit(&r->threads_look, left, memory_order_relaxed);
	atomic_store_explicit(&r->threads_new, 0, memory_order_relaxed);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
}
