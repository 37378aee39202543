/* SPDX-License-Identifier: MIT
 *
 * Tests the safepoint coordinator and its sampler while the Nth allocation fails, for every N.
 * The operation is refused, nothing is left half made, and the next try succeeds.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <incstack/safepoint.h>
#include <incstack/sampler.h>

#include "failing.h"
#include "run_suite.h"

void __real_free(void *block);
void __wrap_free(void *block);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*function)(void *), void *argument);

void __wrap_free(void *block)
{
	blocks -= block != NULL;
	__real_free(block);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

void *__wrap_mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
	return fails() ? MAP_FAILED : __real_mmap(at, bytes, access, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*function)(void *), void *argument)
{
	return fails() ? EAGAIN : __real_pthread_create(thread, attributes, function, argument);
}

enum { THREADS = 40 }; /* more than fit into the first list of threads and the first block */

static struct incstack_safepoint *safepoint;
static struct incstack_thread *threads[THREADS];
static unsigned attached, operations;

static void operation(const struct incstack_ticket *ticket, void *argument)
{
	(void)ticket;
	(void)argument;
	operations++;
}

static int attach_all(void)
{
	for (attached = 0; attached < THREADS; attached++) {
		const int error = incstack_safepoint_attach(safepoint, &threads[attached]);
		if (error)
			return error;
	}
	return 0;
}

/* A request to as many threads as there are, whose handle is released. An assertion would
 * allocate. */
static int sample_all(void)
{
	const struct incstack_request_options options = {
		.size = sizeof(options), .n = attached, .operation = operation};
	struct incstack_request *request;
	int error = incstack_request_start(safepoint, &options, &request);
	if (error)
		return error;
	for (unsigned i = 0; i < attached; i++)
		incstack_thread_poll(threads[i]);
	incstack_request_release(request);
	return 0;
}

static void end(void)
{
	while (attached)
		ck_assert_int_eq(incstack_thread_detach(threads[--attached]), 0);
	incstack_safepoint_destroy(safepoint);
}

static int use_coordinator(long n, bool for_ever, bool *something_failed)
{
	const long before = blocks; /* an assertion frees blocks of libc's */
	arm(n, for_ever);
	int error = incstack_safepoint_create(NULL, &safepoint);
	if (error) {
		*something_failed = disarm();
		ck_assert_int_eq(blocks, before);
		return error;
	}
	error = attach_all();
	const unsigned made = attached;
	operations = 0;
	if (!error)
		error = sample_all();
	*something_failed = disarm();
	ck_assert_uint_eq(operations, error ? 0 : THREADS);
	ck_assert(made == THREADS || error);
	if (made) {
		operations = 0;
		ck_assert_int_eq(sample_all(), 0);
		ck_assert_uint_eq(operations, made);
	}
	end();
	return error;
}

START_TEST(coordinator)
{
	fail_each_allocation(use_coordinator, 5);
}
END_TEST

/* What the first request allocated serves the later ones, also those to fewer threads. */
START_TEST(later_requests_need_no_memory)
{
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	ck_assert_int_eq(attach_all(), 0);
	ck_assert_int_eq(sample_all(), 0);
	for (unsigned n = THREADS; n > THREADS - 3; n--) {
		arm(0, true);
		operations = 0;
		const int error = sample_all();
		disarm();
		ck_assert_int_eq(error, 0);
		ck_assert_uint_eq(operations, n);
		ck_assert_int_eq(incstack_thread_detach(threads[--attached]), 0);
	}
	end();
}
END_TEST

static int use_sampler(long n, bool for_ever, bool *something_failed)
{
	struct incstack_sampler_options options = {.size = sizeof(options),
						   .interval_ns = INCSTACK_SAMPLER_INTERVAL_MIN,
						   .operation = operation};
	struct incstack_sampler *sampler;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	options.safepoint = safepoint;
	arm(n, for_ever);
	int error = incstack_sampler_create(&options, &sampler);
	*something_failed = disarm();
	if (!error)
		incstack_sampler_destroy(sampler, NULL);
	attached = 0;
	end();
	return error;
}

START_TEST(sampler)
{
	fail_each_allocation(use_sampler, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory of safepoints");
	TCase *tests = tcase_create("each allocation fails");
	tcase_add_test(tests, coordinator);
	tcase_add_test(tests, later_requests_need_no_memory);
	tcase_add_test(tests, sampler);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
