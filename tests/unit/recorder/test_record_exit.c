/* SPDX-License-Identifier: MIT
 *
 * Tests the holding of threads while their events are written, without the rest of the recorder.
 * A thread that is inside the recorder, or in a return through a thunk, is not touched, each thread
 * is written once, and a thread that answers late continues.
 */
#include <time.h>

#include "recorder/threads/exit.c"

#include "exit_alone.h"
#include "run_suite.h"

/* ---- naps ------------------------------------------------------------------------------- */

/* Whether the thread need not run now, or has run since it had made so many steps. */
static int has_run(const struct thread *thread, uint64_t steps)
{
	const int held = atomic_load_explicit(&thread->record.held, memory_order_acquire);

	return !thread->answers || __atomic_load_n(&thread->stops, __ATOMIC_ACQUIRE) ||
	       (held != WANTED && held != RELEASED) || steps_of(thread) != steps;
}

/* The recorder waits for a number of naps. During each nap of the writer, every thread runs that was
 * asked to hold still or to go on. So it answers however busy the machine is. */
void incstack__nap(long ns)
{
	const struct timespec time = {.tv_nsec = ns};
	uint64_t steps[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		steps[i] = steps_of(&threads[i]);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	if (incstack__record_local.mine != &own_record)
		return;
	for (size_t i = 0; i < THREADS; i++)
		while (!has_run(&threads[i], steps[i]))
			clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* ---- threads ---------------------------------------------------------------------------- */

static void set_inside(struct thread *thread, int now)
{
	__atomic_store_n(&thread->inside, now, __ATOMIC_SEQ_CST);
}

/* In an event and out of it again, as often as a program that allocates without pause. */
static void work(struct thread *thread)
{
	incstack__record_local.state = (uintptr_t)__builtin_frame_address(0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	set_inside(thread, 1);
	make_step(thread);
	set_inside(thread, 0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	incstack__record_local.state = 0;
	for (int i = 0; i < 20; i++)
		make_step(thread);
}

static void *run(void *argument)
{
	struct thread *thread = argument;

	incstack__record_local.mine = &thread->record;
	thread->record.tid = gettid();
	__atomic_store_n(&thread->steps, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&thread->stops, __ATOMIC_ACQUIRE))
		work(thread);
	return NULL;
}

/* Never held: its signal stays pending until it ends. */
static void *run_deaf(void *argument)
{
	const uint64_t all = UINT64_MAX;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof(all));
	return run(argument);
}

/* Inside the recorder, or the core, all the time until it stops. */
static int returns;

static void *run_inside(void *argument)
{
	struct thread *thread = argument;

	incstack__record_local.mine = &thread->record;
	incstack__record_local.state = returns ? 0 : INCSTACK__INSIDE;
	in_return = returns;
	thread->record.tid = gettid();
	set_inside(thread, 1);
	__atomic_store_n(&thread->steps, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&thread->stops, __ATOMIC_ACQUIRE))
		nap();
	return NULL;
}

static void start(struct thread *thread, void *(*function)(void *))
{
	thread->answers = function == run;
	ck_assert_int_eq(pthread_create(&thread->thread, NULL, function, thread), 0);
	while (steps_of(thread) == 0)
		nap();
	thread->record.next = incstack__recording.threads;
	incstack__recording.threads = &thread->record;
}

static void stop(struct thread *thread)
{
	__atomic_store_n(&thread->stops, 1, __ATOMIC_RELEASE);
	ck_assert_int_eq(pthread_join(thread->thread, NULL), 0);
}

static void begin_test(void)
{
	incstack__recording.pid = getpid();
	incstack__recording.on = 1;
	incstack__recording.shared_record = &for_all;
	incstack__recording.threads = &own_record;
	incstack__record_local.mine = &own_record;
}

/* Each was written once, or could not be held, which is noted. */
static unsigned busy_times;

static void flush_all(size_t count)
{
	unsigned before[THREADS], written = 0;

	for (size_t i = 0; i < count; i++)
		before[i] = threads[i].flushes;
	incstack__record_flush_all(INCSTACK__TRACEFILE_TALLY_EXEC);
	for (size_t i = 0; i < count; i++) {
		ck_assert_uint_le(threads[i].flushes, before[i] + 1);
		written += threads[i].flushes - before[i];
	}
	busy_times += written < count;
}

static void check_sums(unsigned all)
{
	ck_assert_uint_eq(own_flushes, all);
	ck_assert_uint_eq(shared_flushes, all);
	ck_assert_uint_eq(tallies, all);
	ck_assert_uint_eq(notes, busy_times);
	ck_assert_int_eq(touched_inside, 0);
	ck_assert_int_eq(moved_while_held, 0);
	ck_assert_int_eq(unsettled, 0);
}

/* ---- tests ------------------------------------------------------------------------------ */

/* Before exec, which may fail: all go on, and are held again the next time. */
START_TEST(busy_threads_are_held_between_events)
{
	begin_test();
	for (size_t i = 0; i < THREADS; i++)
		start(&threads[i], run);
	for (unsigned round = 1; round <= 5; round++) {
		flush_all(THREADS);
		check_sums(round);
		for (size_t i = 0; i < THREADS; i++) {
			const uint64_t steps = steps_of(&threads[i]);

			while (steps_of(&threads[i]) == steps)
				nap();
		}
	}
	ck_assert_uint_eq(busy_times, 0);
	for (size_t i = 0; i < THREADS; i++)
		stop(&threads[i]);
}
END_TEST

static unsigned handled;

static void step_in_handler(int number)
{
	(void)number;
	handled++;
	make_step(&threads[0]);
}

/* The program's own handlers wait until the thread goes on: they would change what is being
 * written. */
START_TEST(no_handler_runs_while_held)
{
	begin_test();
	ck_assert(signal(SIGUSR1, step_in_handler) != SIG_ERR);
	start(&threads[0], run);
	signals_while_held = 20;
	flush_all(1);
	check_sums(1);
	stop(&threads[0]);
	ck_assert_uint_eq(busy_times, 0);
	ck_assert_uint_gt(handled, 0);
}
END_TEST

START_TEST(thread_inside_is_not_held)
{
	returns = _i;
	begin_test();
	start(&threads[0], run);
	start(&threads[1], run_inside);
	flush_all(2);
	check_sums(1);
	ck_assert_uint_eq(threads[1].flushes, 0);
	ck_assert_int_eq(threads[1].record.held, FREE);
	stop(&threads[0]);
	stop(&threads[1]);
}
END_TEST

/* Before a sandbox, all threads that were signalled must have left the handler, whether they
 * answered or not. */
START_TEST(sandbox_waits_for_all_handlers)
{
	begin_test();
	incstack__recording.stopping = 1;
	start(&threads[0], run);
	start(&threads[1], run_inside);
	flush_all(2);
	ck_assert_uint_eq(threads[1].flushes, 0);
	ck_assert_int_ge(threads[0].awaited, 1);
	ck_assert_int_ge(threads[1].awaited, 1);
	stop(&threads[0]);
	stop(&threads[1]);
}
END_TEST

/* It was signalled while it had the signal blocked. In the handler it finds that the request is
 * over, and is not held. */
START_TEST(late_answer)
{
	siginfo_t info = {.si_code = SI_QUEUE};

	begin_test();
	start(&threads[0], run_deaf);
	flush_all(1);
	check_sums(1);
	ck_assert_uint_eq(threads[0].flushes, 0);
	ck_assert_int_eq(threads[0].record.held, FREE);
	incstack__record_local.mine = &threads[0].record;
	owned = 0;
	hold(LIBC_SIGNAL, &info, NULL);
	ck_assert_uint_eq(owned, 0); /* it has had its stack all the time */
	ck_assert_int_eq(threads[0].record.held, FREE);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	incstack__record_local.mine = &own_record;
	stop(&threads[0]);
}
END_TEST

static void *run_held(void *argument)
{
	struct thread *thread = argument;
	siginfo_t info = {.si_code = SI_QUEUE};

	incstack__record_local.mine = &thread->record;
	errno = ERANGE;
	hold(LIBC_SIGNAL, &info, NULL);
	ck_assert_int_eq(errno, ERANGE);
	ck_assert_uint_eq(owned, 1); /* again: it belonged to the writer */
	ck_assert_uint_eq(incstack__record_local.state, 0);
	return NULL;
}

START_TEST(held_thread_goes_on)
{
	struct thread *thread = &threads[0];

	begin_test();
	thread->record.held = WANTED;
	ck_assert_int_eq(pthread_create(&thread->thread, NULL, run_held, thread), 0);
	while (atomic_load_explicit(&thread->record.held, memory_order_acquire) != HELD)
		nap();
	write_held(&thread->record, 0);
	ck_assert_int_eq(pthread_join(thread->thread, NULL), 0);
	ck_assert_uint_eq(thread->flushes, 1);
	ck_assert_int_eq(thread->record.held, FREE);
}
END_TEST

/* A thread that ended without notice does not answer. What it recorded is written once. */
START_TEST(thread_that_is_gone)
{
	begin_test();
	start(&threads[0], run);
	start(&threads[1], run);
	stop(&threads[1]);
	threads[1].gone = 1;
	flush_all(2);
	check_sums(1);
	ck_assert_uint_eq(threads[1].flushes, 1);
	ck_assert_int_eq(threads[1].record.held, FREE);
	stop(&threads[0]);
}
END_TEST

/* A thread that stands where no rule describes its frames runs on and is held again, some times. */
START_TEST(undescribed_thread_is_held_again)
{
	struct thread *thread = &threads[0];
	const unsigned in_vain[] = {3, 1000};
	const unsigned looks[] = {3 + 1, HOLD_AGAIN};

	begin_test();
	thread->undescribed = in_vain[_i];
	start(thread, run);
	flush_all(1);
	check_sums(1);
	ck_assert_uint_eq(busy_times, 0);
	ck_assert_uint_eq(thread->looks, looks[_i]);
	/* the next time it has as many tries */
	thread->looks = 0;
	thread->undescribed = in_vain[_i];
	flush_all(1);
	ck_assert_uint_eq(thread->flushes, 2);
	ck_assert_uint_eq(thread->looks, looks[_i]);
	stop(thread);
}
END_TEST

/* One that answers just before it is given up is written. */
START_TEST(answer_at_the_last_moment)
{
	begin_test();
	times = 1;
	threads[0].record.held = HELD;
	threads[1].record.held = WANTED;
	threads[0].record.next = &threads[1].record;
	incstack__recording.threads = &threads[0].record;
	ck_assert_int_eq(take_back(0), 1);
	ck_assert_int_eq(threads[0].record.held, RELEASED);
	ck_assert_uint_eq(threads[0].flushes, 1);
	ck_assert_uint_eq(threads[0].record.written, 1);
	ck_assert_int_eq(threads[1].record.held, FREE);
	ck_assert_uint_eq(threads[1].flushes, 0);
}
END_TEST

/* Signals that libc itself sends are passed to libc. */
static int of_libc_called;

static void libc_handler(int number, siginfo_t *info, void *context)
{
	of_libc_called += number == LIBC_SIGNAL && info != NULL && context == NULL;
}

START_TEST(signal_of_libc)
{
	siginfo_t info = {.si_code = SI_TKILL};

	begin_test();
	of_libc.handler = libc_handler;
	own_record.held = WANTED;
	hold(LIBC_SIGNAL, &info, NULL);
	ck_assert_int_eq(of_libc_called, 1);
	ck_assert_int_eq(own_record.held, WANTED);
}
END_TEST

/* The spool stays if anything could not be written. */
START_TEST(written_or_not)
{
	begin_test();
	ck_assert(all_written());
	threads[0].record.log.used = 8;
	own_record.next = &threads[0].record;
	ck_assert(!all_written());
	own_record.next = NULL;
	incstack__recording.contexts = &threads[0].record;
	ck_assert(!all_written());
	incstack__recording.contexts = NULL;
	for_all.log.used = 8;
	ck_assert(!all_written());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("end of the recorder");
	TCase *threads_held = tcase_create("threads");

	tcase_add_test(threads_held, busy_threads_are_held_between_events);
	tcase_add_test(threads_held, no_handler_runs_while_held);
	tcase_add_loop_test(threads_held, thread_inside_is_not_held, 0, 2);
	tcase_add_test(threads_held, sandbox_waits_for_all_handlers);
	tcase_add_test(threads_held, late_answer);
	tcase_add_test(threads_held, held_thread_goes_on);
	tcase_add_test(threads_held, thread_that_is_gone);
	tcase_add_loop_test(threads_held, undescribed_thread_is_held_again, 0, 2);
	tcase_add_test(threads_held, answer_at_the_last_moment);
	tcase_add_test(threads_held, signal_of_libc);
	tcase_add_test(threads_held, written_or_not);
	suite_add_tcase(suite, threads_held);
	return run_suite(suite);
}
