/* SPDX-License-Identifier: MIT
 *
 * A process forks while another of its threads is in the middle of an operation: the child,
 * which does not have that thread, goes on.
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

/* The table of rules is allocated with its lock held, and is larger than all else here. */
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
	.find_rule = find_rule,
	.allocate = allocate,
	.release = release,
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

/* Ended by the alarm where it waits for the other thread. */
static _Noreturn void be_child(void)
{
	struct incstack_tree *tree = NULL;
	int good;

	alarm(20);
	atomic_store(&waits, false);
	good = incstack_runtime_forked(runtime) == 0 &&
	       incstack_code_unloading(runtime, NULL, 0, UINTPTR_MAX) == 0 &&
	       create_stack(my_stack, &mine) == 0 && incstack_retrieve(mine, &tree) == 0 &&
	       incstack_tree_release(tree) == 0 && incstack_stack_destroy(mine) == 0;
	_exit(good ? 0 : 1);
}

START_TEST(other_thread_holds_the_table)
{
	const struct incstack_options options = {.size = sizeof(options), .embedder = &embedder};
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
	ck_assert_int_eq(incstack_stack_own(its), 0);
	ck_assert_int_eq(incstack_stack_destroy(its), 0);
	ck_assert_int_eq(incstack_runtime_destroy(runtime), 0);
	ck_assert_int_eq(incstack_runtime_forked(NULL), INCSTACK_EINVAL);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("fork");
	TCase *fork_case = tcase_create("fork");

	tcase_add_test(fork_case, other_thread_holds_the_table);
	tcase_set_timeout(fork_case, 60);
	suite_add_tcase(suite, fork_case);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
