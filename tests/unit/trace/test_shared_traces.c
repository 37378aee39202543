/* SPDX-License-Identifier: MIT
 *
 * Tests traces in memory that the embedder shares with another process, while all other memory
 * is wiped by a fork. The reader finds what was sampled, and a child that does not know the
 * library disturbs nothing.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/shared.h"
#include "real_stack.h"
#include "run_suite.h"

#define NOINLINE __attribute__((noinline))

enum { SHARED_BYTES = 1 << 20 };

static unsigned char *shared;
static size_t shared_used, shared_released;
static uint64_t gaps_seen;
static pid_t child = -1;

static void *allocate(void *context, size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)context;
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(madvise(memory, bytes, MADV_WIPEONFORK), 0);
	return memory;
}

static void release(void *context, void *memory, size_t bytes)
{
	(void)context;
	munmap(memory, bytes);
}

static void *allocate_traces(void *context, size_t bytes)
{
	(void)context;
	if (shared_used + bytes > SHARED_BYTES)
		return NULL;
	shared_used += bytes;
	return shared + shared_used - bytes;
}

static void release_traces(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)memory;
	shared_released += bytes;
}

static void open_all(unsigned distance)
{
	struct incstack_embedder embedder = {.size = sizeof(embedder),
					     .code.frame_pointers = 1,
					     .memory.allocate = allocate,
					     .memory.release = release,
					     .memory.allocate_traces = allocate_traces,
					     .memory.release_traces = release_traces};
	const struct incstack_options options = {.size = sizeof(options),
						 .embedder = &embedder,
						 .chunk_bytes = 4096,
						 .distance = distance};

	shared =
		mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	shared_used = shared_released = 0;
	samples = 0;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	s = open_stack();
}

static void expect_shared(const void *memory)
{
	ck_assert_uint_lt((uintptr_t)memory - (uintptr_t)shared, SHARED_BYTES);
}

/* Counts what the open tree has, all of which is in the shared memory. */
static uint64_t count_open(uint64_t *gaps)
{
	uint64_t count = 0;

	*gaps = 0;
	for (const struct incstack_trace *t = incstack_stack_tree(s)->traces; t; t = t->next) {
		expect_shared(t);
		ck_assert_uint_eq(t->id, count++);
		for (const struct incstack_frame_object *o = t->top; o; o = o->parent) {
			expect_shared(o);
			*gaps += (o->flags & INCSTACK_OBJECT_GAP) != 0;
		}
	}
	return count;
}

static NOINLINE void nest(int depth, void (*then)(void))
{
	if (depth > 0)
		nest(depth - 1, then);
	else
		then();
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void look_at_open(void)
{
	uint64_t gaps;

	ck_assert_uint_eq(count_open(&gaps), samples);
	ck_assert_int_eq(incstack_stack_reserve(s, 1 << 10), 0);
	take_sample();
	ck_assert_uint_eq(count_open(&gaps), samples);
	gaps_seen += gaps;
	ck_assert_int_eq(incstack__stack_has_gaps(s), gaps > 0);
	ck_assert_int_eq(incstack__stack_complete(s), 0);
	ck_assert_int_eq(incstack__stack_has_gaps(s), 0);
	ck_assert_uint_eq(count_open(&gaps), samples);
	ck_assert_uint_eq(gaps, 0);
}

START_TEST(open_traces_are_in_the_shared_memory)
{
	struct incstack_tree *tree;
	uint64_t gaps;

	open_all(3);
	expect_shared(incstack_stack_tree(s));
	for (int i = 0; i < 200; i++)
		nest(4 + i % 7, look_at_open);
	ck_assert_uint_ge(gaps_seen, 1);
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, 200);
	ck_assert_uint_eq(tree->truncated, 0);
	expect_shared(tree);
	ck_assert_uint_eq(count_open(&gaps), 0); /* the next one */
	incstack_tree_release(tree);
	close_all();
	ck_assert_uint_eq(shared_released, shared_used);
}
END_TEST

static NOINLINE void fork_raw(void)
{
	take_sample();
	child = (pid_t)syscall(SYS_fork);
}

static NOINLINE void expect_refused(void)
{
	const uintptr_t *fp = (const uintptr_t *)__builtin_frame_address(0);
	const struct incstack_top top = {.pc = fp[1], .sp = (uintptr_t)(fp + 2), .fp = fp[0]};
	struct incstack_tree *tree;

	if (incstack_stack_sample(s, 0, 1, &top) != INCSTACK_ETHREAD ||
	    incstack_stack_retrieve(s, &tree) != INCSTACK_ETHREAD ||
	    incstack_stack_unwinding_to(s, top.sp) != INCSTACK_ETHREAD)
		_exit(2);
}

/* The child returns through the thunks of its parent, and samples in vain. */
START_TEST(a_child_that_was_not_told_of_changes_nothing)
{
	struct incstack_tree *tree;
	uint64_t gaps, open;
	int status;

	open_all(1);
	nest(5, take_sample);
	nest(12, fork_raw);
	if (child == 0) {
		nest(5, expect_refused);
		_exit(memcmp(&samples, &(uint64_t){2}, sizeof(samples)) == 0 ? 7 : 3);
	}
	open = count_open(&gaps);
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 7 << 8);
	ck_assert_uint_eq(count_open(&gaps), open);
	nest(5, take_sample);
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, 3);
	ck_assert_uint_eq(tree->truncated, 0);
	incstack_tree_release(tree);
	close_all();
}
END_TEST

static NOINLINE int shows_thunks(void)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	int count = 0;

	for (int i = 0; i < 8; i++, frame = (const uintptr_t *)frame[0])
		count += incstack_slot_read(frame + 1) != frame[1];
	return count;
}

static NOINLINE void fork_told(void)
{
	take_sample();
	if (shows_thunks() == 0)
		return;
	child = fork();
	if (child == 0) {
		incstack__stack_forked(s);
		_exit(shows_thunks() == 0 ? 7 : 2);
	}
}

/* A child that calls incstack__stack_forked gets its return addresses back, although the stack is
 * wiped. */
START_TEST(a_child_that_was_told_of_has_no_thunks)
{
	int status;

	open_all(1);
	nest(12, fork_told);
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 7 << 8);
	close_all();
}
END_TEST

START_TEST(a_lone_half_of_the_pair_is_refused)
{
	struct incstack_embedder embedder = {.size = sizeof(embedder),
					     .memory.allocate_traces = allocate_traces};
	const struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	struct incstack_runtime *none;

	ck_assert_int_eq(incstack_runtime_create(&options, &none), INCSTACK_EINVAL);
	ck_assert_ptr_null(incstack_stack_tree(NULL));
	ck_assert_int_eq(incstack__stack_has_gaps(NULL), 0);
	incstack__stack_forked(NULL);
	ck_assert_int_eq(incstack__stack_complete(NULL), INCSTACK_EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shared traces");
	TCase *tests = tcase_create("shared traces");

	tcase_add_test(tests, open_traces_are_in_the_shared_memory);
	tcase_add_test(tests, a_child_that_was_not_told_of_changes_nothing);
	tcase_add_test(tests, a_child_that_was_told_of_has_no_thunks);
	tcase_add_test(tests, a_lone_half_of_the_pair_is_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
