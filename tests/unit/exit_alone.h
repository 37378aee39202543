/* SPDX-License-Identifier: MIT
 *
 * Stands in for the core and for the recorder except its end. It is included after the source of that.
 * It counts what is done with each thread's record, and notes what must not happen.
 */
#ifndef EXIT_ALONE_H
#define EXIT_ALONE_H

enum { THREADS = 4 };

struct thread {
	struct incstack__record record;
	pthread_t thread;
	uint64_t steps; /* what it does when it is not held */
	int answers;    /* when it is asked to hold still, until it stops */
	unsigned flushes, settlings;
	int inside; /* of the recorder: its record must not be touched */
	int stops, gone, awaited;
	unsigned undescribed, looks; /* how often it stands where no rule describes it */
};

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;
static struct thread threads[THREADS];
static struct incstack__record own_record, for_all;
static unsigned notes, own_flushes, shared_flushes, tallies;
static INCSTACK__TLS unsigned owned; /* by the calling thread */
static INCSTACK__TLS int in_return;  /* through a thunk: an operation is in progress */
static int touched_inside, moved_while_held, unsettled;
static int signals_while_held; /* how many of the program's come then */

static struct thread *thread_of(const struct incstack__record *record)
{
	for (size_t i = 0; i < THREADS; i++)
		if (record == &threads[i].record)
			return &threads[i];
	return NULL;
}

static uint64_t steps_of(const struct thread *thread)
{
	return __atomic_load_n(&thread->steps, __ATOMIC_ACQUIRE);
}

static void make_step(struct thread *thread)
{
	__atomic_add_fetch(&thread->steps, 1, __ATOMIC_RELAXED);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* It takes a while, in which a thread that is held does nothing. */
void incstack__record_moment_look(struct incstack__record_moment *moment)
{
	(void)moment;
}

void incstack__record_moment_write(struct incstack__record_moment *moment)
{
	(void)moment;
}

void incstack__record_resident(void)
{
}

void incstack__record_flush(struct incstack__record *record)
{
	struct thread *thread = thread_of(record);

	unsettled += thread != NULL && !thread->gone && thread->settlings != thread->flushes + 1;
	own_flushes += record == &own_record;
	shared_flushes += record == &for_all;
	if (thread == NULL)
		return;
	const uint64_t steps = steps_of(thread);
	thread->flushes++;
	for (int i = 0; i < signals_while_held; i++, nap())
		pthread_kill(thread->thread, SIGUSR1);
	touched_inside += __atomic_load_n(&thread->inside, __ATOMIC_SEQ_CST);
	nap();
	moved_while_held += steps_of(thread) != steps;
}

void incstack__record_note(enum incstack__tracefile_note note)
{
	notes += note == INCSTACK__NOTE_THREAD_BUSY;
}

void incstack__record_tally(struct incstack__record *record, uint32_t flags)
{
	tallies++;
}

int incstack_stack_set_owner(struct incstack_stack *stack)
{
	owned++;
	errno = EIO;
	return 0;
}

bool incstack__stack_is_busy(const struct incstack_stack *stack)
{
	return in_return;
}

struct incstack__record *incstack__record_make(void)
{
	return NULL;
}

void incstack__record_contexts_flush(pid_t tid, uintptr_t at, const struct incstack_top *held,
				     bool last)
{
}

void incstack__record_contexts_flush_rest(bool last)
{
}

void incstack__record_modules(void)
{
}

bool incstack__record_is_gone(const struct incstack__record *record)
{
	return thread_of(record) != NULL && thread_of(record)->gone;
}

void incstack__record_write_gone(struct incstack__record *record)
{
	thread_of(record)->flushes++;
}

void incstack__record_await_thread(pid_t tid, int signal, int steps)
{
	for (size_t i = 0; i < THREADS; i++)
		threads[i].awaited += threads[i].record.tid == tid;
}

#define DOES_NOTHING(name, ...) \
	void name(__VA_ARGS__) \
	{ \
	}
DOES_NOTHING(incstack__record_protect, struct incstack__protection *before)
DOES_NOTHING(incstack__record_unprotect, const struct incstack__protection *before)
DOES_NOTHING(incstack__restart_prepare, pid_t tid, struct incstack__blocked_call *call)
DOES_NOTHING(incstack__restart, const struct incstack__blocked_call *call, void *ucontext)
DOES_NOTHING(incstack__spool_remove, void)
static DOES_NOTHING(stop_kind, void) DOES_NOTHING(incstack__record_note_unwritable, void)
	DOES_NOTHING(incstack__lock_take, enum incstack__lock lock)
		DOES_NOTHING(incstack__lock_give, enum incstack__lock lock)

			const
	struct incstack__kind *incstack__kind = &(const struct incstack__kind){.stop = stop_kind};

struct incstack_top incstack_native_top(const void *ucontext)
{
	return (struct incstack_top){.pc = ucontext != NULL};
}

bool incstack__interrupted_is_settleable(const struct incstack__record *record,
					 const struct incstack_top *top)
{
	struct thread *thread = thread_of(record);

	thread->looks++;
	return thread->undescribed == 0 || thread->undescribed-- == 0;
}

void incstack__interrupted_settle(struct incstack__record *record, const struct incstack_top *top)
{
	thread_of(record)->settlings++;
}

#ifdef INCSTACK_DEBUG
void incstack__lock_stopped(int more)
{
}
#endif

#pragma GCC diagnostic pop

#endif
