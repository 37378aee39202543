/* SPDX-License-Identifier: MIT
 *
 * Tests a fork while another thread, or the embedder in another thread, is in the middle of an
 * operation. The child does not have that thread, so the operation never ends there. The child
 * must work all the same.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <incstack/incstack.h>

#include "run_suite.h"

enum { STACK_BYTES = 1 << 16, TABLE_BYTES = 100000 };

static struct incstack_runtime *runtime;
static struct incstack_stack *mine;
static struct incstack_stack *its;
static sem_t inside;
static sem_t may_leave;
static atomic_bool waits;
static uintptr_t my_stack[STACK_BYTES / sizeof(uintptr_t)];
static uintptr_t its_stack[STACK_BYTES / sizeof(uintptr_t)];

/* The table of rules is allocated with its lock held, and is larger than any other block here. */
static void *allocate(void *context, size_t bytes)
{
	(void)context;
	if (bytes > TABLE_BYTES && atomic_load(&waits)) {
		sem_post(&inside);
		while (sem_wait(&may_leave) != 0)
			;
	}
	return malloc(bytes);
}

static void release(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)bytes;
	free(memory);
}

static int find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	(void)address;
	*rule = (struct incstack_rule){.kind = INCSTACK_RULE_END};
	return 0;
}

static const struct incstack_embedder embedder = {
	.size = sizeof(embedder),
	.code.find_rule = find_rule,
	.memory.allocate = allocate,
	.memory.release = release,
};

static int create_stack(uintptr_t *memory, struct incstack_stack **stack)
{
	return incstack_stack_create(runtime, (uintptr_t)memory, (uintptr_t)memory + STACK_BYTES,
				     stack);
}

static void *other(void *argument)
{
	(void)argument;
	ck_assert_int_eq(create_stack(its_stack, &its), 0);
	return NULL;
}

/* The alarm ends it if it waits for the other thread. */
static _Noreturn void be_child(void)
{
	struct incstack_tree *tree = NULL;
	int good;

	alarm(200);
	atomic_store(&waits, false);
	good = incstack_runtime_forked(runtime) == 0 &&
	       incstack_runtime_code_unloading(runtime, NULL, 0, UINTPTR_MAX) == 0 &&
	       create_stack(my_stack, &mine) == 0 && incstack_stack_retrieve(mine, &tree) == 0;
	if (good) {
		incstack_tree_release(tree);
		incstack_stack_destroy(mine);
	}
	_exit(good ? 0 : 1);
}

START_TEST(other_thread_holds_the_table)
{
	const struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	pthread_t thread;
	int status;
	pid_t child;

	ck_assert_int_eq(incstack_runtime_create(&options, &runtime), 0);
	ck_assert_int_eq(sem_init(&inside, 0, 0) | sem_init(&may_leave, 0, 0), 0);
	atomic_store(&waits, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, other, NULL), 0);
	while (sem_wait(&inside) != 0)
		;
	child = fork();
	if (child == 0)
		be_child();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(status == 0, "the child ended with %#x", (unsigned)status);
	sem_post(&may_leave);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(incstack_stack_set_owner(its), 0);
	incstack_stack_destroy(its);
	incstack_runtime_destroy(runtime);
	ck_assert_int_eq(incstack_runtime_forked(NULL), INCSTACK_EINVAL);
}
END_TEST

/* ---- in the middle of making thunks --------------------------------------------------------- */

enum { BARRIERS = 4000 }; /* more than there are before some are made */

static unsigned pools_made;

static int to_caller(void *context, void *identity, struct incstack_frame *frame)
{
	(void)context;
	(void)identity;
	if (frame->sp == 1)
		return 0;
	frame->sp--;
	frame->pc = frame->sp;
	frame->flags = INCSTACK_FRAME_ARMED; /* asked about the youngest that may be */
	return 1;
}

static int arm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	(void)frame;
	return 0;
}

static void disarm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	(void)frame;
}

/* The thread that was making them is not there; the child makes its own. */
static _Noreturn void be_child_that_makes_thunks(void)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	int good;

	alarm(200);
	good = incstack_runtime_forked(runtime) == 0 && create_stack(my_stack, &mine) == 0 &&
	       incstack_stack_reserve(mine, 0) == 0 && incstack_stack_stats(mine, &stats) == 0 &&
	       stats.pools == 1 && pools_made == 2;
	_exit(good ? 0 : 1);
}

static int fork_at_the_first(void *context, const void *info, size_t bytes)
{
	int status;
	pid_t child;

	(void)context;
	(void)info;
	(void)bytes;
	if (++pools_made > 1)
		return 0;
	child = fork();
	if (child == 0)
		be_child_that_makes_thunks();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(status == 0, "the child ended with %#x", (unsigned)status);
	return 0;
}

START_TEST(fork_while_thunks_are_made)
{
	static const struct incstack_stack_walker walker = {sizeof(walker), to_caller, arm, disarm,
							    NULL};
	struct incstack_embedder with_pools = embedder;
	const struct incstack_options options = {
		.size = sizeof(options), .embedder = &with_pools, .distance = 1};

	with_pools.code.register_unwind_info = fork_at_the_first;
	ck_assert_int_eq(incstack_runtime_create(&options, &runtime), 0);
	ck_assert_int_eq(incstack_stack_create_embedder(runtime, &walker, NULL, &its), 0);
	for (uintptr_t depth = 2; depth < BARRIERS && pools_made == 0; depth++) {
		const struct incstack_top top = {.pc = depth, .sp = depth};

		ck_assert_int_eq(incstack_stack_reserve(its, 1 << 12), 0);
		ck_assert_int_eq(incstack_stack_sample(its, 0, 1, &top), 0);
	}
	ck_assert_uint_eq(pools_made, 1);
	incstack_stack_destroy(its);
	incstack_runtime_destroy(runtime);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("fork");
	TCase *fork_case = tcase_create("fork");

	tcase_add_test(fork_case, other_thread_holds_the_table);
	tcase_add_test(fork_case, fork_while_thunks_are_made);
	suite_add_tcase(suite, fork_case);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
