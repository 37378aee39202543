/* SPDX-License-Identifier: MIT
 *
 * Tests a polling page as virtual machines have it. A poll is a load from a page, protecting
 * that page arms all threads at once, and the fault handler calls the slow path that an inline
 * poll calls. The threads' words tell which threads were really asked.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <incstack/safepoint.h>

#include "run_suite.h"

#define MUTATORS 4
#define PAGE 4096

static struct incstack_safepoint *safepoint;
static char *page;
static pthread_t tids[MUTATORS];
static atomic_bool leave_loop;
static atomic_uint attached, samples, ended, strangers;
static unsigned long work[MUTATORS]; /* plain: a stop orders it */
static _Thread_local struct incstack_thread *self;
static _Thread_local bool in_fault;

/* The load, and the address where the program continues. A handler cannot make the page readable
 * for one thread only, so it steps over the load. */
extern const char poll_load[], poll_passed[];
__attribute__((noinline)) static void poll_page(void)
{
	__asm__ volatile(".globl poll_load, poll_passed\n"
			 "poll_load: testb %%al, (%0)\n"
			 "poll_passed:"
			 :
			 : "r"(page)
			 : "cc", "memory");
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	if (*pc != (greg_t)(uintptr_t)poll_load || info->si_addr != page) {
		sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
		return; /* faults again, for good */
	}
	*pc = (greg_t)(uintptr_t)poll_passed;
	in_fault = true;
	incstack_thread_poll(self);
	in_fault = false;
}

static void protect(int protection)
{
	ck_assert_int_eq(mprotect(page, PAGE, protection), 0);
}

static void *mutator(void *counter)
{
	if (incstack_safepoint_attach(safepoint, &self))
		return NULL;
	atomic_fetch_add(&attached, 1);
	while (!atomic_load(&leave_loop)) {
		(*(volatile unsigned long *)counter)++;
		poll_page();
	}
	incstack_thread_detach(self);
	return NULL;
}

static void begin(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
	ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
	page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	for (int i = 0; i < MUTATORS; i++)
		pthread_create(&tids[i], NULL, mutator, &work[i]);
	while (atomic_load(&attached) < MUTATORS)
		sched_yield();
}

static void end(void)
{
	atomic_store(&leave_loop, true);
	for (int i = 0; i < MUTATORS; i++)
		pthread_join(tids[i], NULL);
	incstack_safepoint_destroy(safepoint);
	munmap(page, PAGE);
}

/* Each thread samples itself, in a fault. */
static void operation(const struct incstack_ticket *ticket, void *argument)
{
	(void)argument;
	atomic_fetch_add(&strangers, ticket->thread != self || !in_fault);
	atomic_fetch_add(&samples, 1);
}

/* The thread that ends the request disarms the page. */
static void completed(struct incstack_request *request,
		      const struct incstack_request_result *result, void *argument)
{
	(void)request, (void)result, (void)argument;
	mprotect(page, PAGE, PROT_READ);
	atomic_fetch_add(&ended, 1);
}

START_TEST(tickets_by_page)
{
	const struct incstack_request_options options = {
		.size = sizeof(options), .n = 2, .operation = operation, .completed = completed};
	struct incstack_request *request;
	begin();
	for (unsigned round = 1; round <= 50; round++) {
		/* Before the words are armed: once the request is over, the page must not be
		 * armed. */
		protect(PROT_NONE);
		ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), 0);
		while (atomic_load(&ended) < round)
			sched_yield();
		ck_assert_uint_eq(atomic_load(&samples), 2 * round);
		incstack_request_release(request);
	}
	ck_assert_uint_eq(atomic_load(&strangers), 0);
	end();
}
END_TEST

START_TEST(full_stop_by_page)
{
	begin();
	for (int round = 0; round < 20; round++) {
		unsigned long before = 0, after = 0;
		protect(PROT_NONE);
		ck_assert_int_eq(incstack_safepoint_stop(safepoint, NULL, 0, NULL), 0);
		protect(PROT_READ);
		for (int i = 0; i < MUTATORS; i++)
			before += work[i];
		sched_yield();
		for (int i = 0; i < MUTATORS; i++)
			after += work[i];
		ck_assert_uint_eq(before, after);
		ck_assert_int_eq(incstack_safepoint_resume(safepoint, NULL), 0);
	}
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("polling_page");
	TCase *tests = tcase_create("all");
	tcase_add_test(tests, tickets_by_page);
	tcase_add_test(tests, full_stop_by_page);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
