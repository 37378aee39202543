/* SPDX-License-Identifier: MIT
 *
 * The records of threads. A record is made at the thread's first event and released in the last
 * round of the thread's TLS destructors. A forked child drops its thread's record.
 */
#include <stdatomic.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "recorder/system/libc.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/threads/threads.h"

static INCSTACK__TLS int ended;
static pthread_key_t key; /* it stays valid in a child */

static void lock(void)
{
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
}

static void unlock(void)
{
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
}

/* Without bounds, the shared record takes the thread's events. */
static int find_stack(struct incstack__record *record)
{
	const int error = incstack_native_stack_range(&record->low, &record->high);

	if (error != 0)
		incstack__record_note(INCSTACK__NOTE_UNKNOWN_STACKS);
	return error;
}

static struct incstack__record *create(void)
{
	struct incstack__recording *r = &incstack__recording;
	struct incstack__record *record;

	incstack__record_release_gone();
	record = incstack__spool_record();
	if (!record)
		return NULL;
	incstack__lock_may_wait(); /* libc locks the thread and allocates for its attributes */
	record->tid = incstack__kernel_gettid();
	incstack__record_name_own(record->live.newest.name);
	if (incstack__record_prepare(record, incstack__record_number()) != 0 ||
	    find_stack(record) != 0 ||
	    incstack_stack_create(r->runtime, record->low, record->high, &record->stack) != 0) {
		incstack__record_discard(record);
		return NULL;
	}
	incstack__stack_is_of_thread(record->stack);
	incstack__stack_remember(record->stack); /* without memory, each sample walks */
	record->slot = incstack__slot_take();
	incstack_stack_reserve(record->stack, INCSTACK__RESERVE_BYTES);
	incstack__record_publish(record);
	lock();
	incstack__kind->begin_thread(record);
	record->next = r->threads;
	/* release: a fork may come at any time, and its child must find a complete record. */
	atomic_store_explicit(&r->threads, record, memory_order_release);
	unlock();
	return record;
}

bool incstack__record_begin_unlisted(void)
{
	struct incstack__recording *r = &incstack__recording;

	/* seq_cst, like the accesses in incstack__record_await_unlisted: either this thread sees
	 * `stopping`, or the waiting thread sees the count. */
	atomic_fetch_add_explicit(&r->unlisted, 1, memory_order_seq_cst);
	if (!atomic_load_explicit(&r->stopping, memory_order_seq_cst))
		return true;
	atomic_fetch_sub_explicit(&r->unlisted, 1, memory_order_seq_cst);
	return false;
}

void incstack__record_end_unlisted(void)
{
	atomic_fetch_sub_explicit(&incstack__recording.unlisted, 1, memory_order_seq_cst);
}

void incstack__record_await_unlisted(void)
{
	enum { NAPS = 20000 };

	for (int i = 0; i < NAPS; i++) {
		if (atomic_load_explicit(&incstack__recording.unlisted, memory_order_seq_cst) <= 0)
			return;
		incstack__nap(50000);
	}
}

static void set_mine(struct incstack__record *record)
{
	incstack__record_local.executable = record ? &record->executable : NULL;
	incstack__record_local.mine = record;
}

static struct incstack__record *make(void)
{
	struct incstack__record *made = create();

	if (!made) {
		set_mine(NULL);
		ended = 1;
		incstack__kind->lack_record();
		return NULL;
	}
	incstack__libc.setspecific(key, made);
	set_mine(made);
	incstack__record_walk_begun(made);
	return made;
}

struct incstack__record *incstack__record_make(void)
{
	struct incstack__protection before;
	struct incstack__record *made = NULL;

	if (ended)
		return NULL;
	incstack__record_protect(&before);
	if (incstack__record_begin_unlisted()) {
		made = make();
		incstack__record_end_unlisted();
	}
	incstack__record_unprotect(&before);
	return made;
}

static void unlink_record(const struct incstack__record *record)
{
	struct incstack__record *_Atomic *at = &incstack__recording.threads;

	lock();
	while (*at && *at != record)
		at = &(*at)->next;
	if (*at)
		*at = record->next;
	unlock();
}

static void release(struct incstack__record *record)
{
	incstack__record_modules();
	incstack__record_flush(record);
	incstack_stack_destroy(record->stack);
	set_mine(NULL);
	ended = 1;
	incstack__record_discard(record);
}

/* The TLS destructor. Destructors that run after it may still allocate, so it registers itself
 * again until the last round. Allocations after that go to the shared record. */
static void ending(void *value)
{
	struct incstack__record *record = value;
	struct incstack__protection before;

	if (!incstack__recording.on)
		return; /* the record may belong to the parent */
	if (++record->destructor_runs < PTHREAD_DESTRUCTOR_ITERATIONS) {
		incstack__libc.setspecific(key, record);
		return;
	}
	incstack__record_protect(&before);
	if (incstack__record_begin_unlisted()) {
		unlink_record(record);
		release(record);
		incstack__record_end_unlisted();
	}
	incstack__record_unprotect(&before);
}

void incstack__record_forked(void)
{
	incstack__record_local = (struct incstack__record_local){0};
	incstack__recording.unlisted = 0;
	ended = 0;
	incstack__libc.setspecific(key, NULL);
}

int incstack__record_keys(void)
{
	return pthread_key_create(&key, ending);
}
