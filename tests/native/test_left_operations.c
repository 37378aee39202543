/* SPDX-License-Identifier: MIT
 *
 * Tests operations that a jump left in the middle, and how the next operation continues:
 * operations of a handler on a signal stack, above or below the thread's stack; operations that
 * are still in progress, which must not count as left; and one that was left while it moved to
 * another chunk.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "trace/barrier.h"
#include "trace/reset.h"
#include "../unit/hand_made.h"
#include "../unit/run_suite.h"
#include "../unit/sample_native.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))

/* ---- handlers on a signal stack ----------------------------------------------------------- */

enum { STACK_BYTES = 8 << 20, SIGNAL_BYTES = 1 << 18 };

static sigjmp_buf out;
static void (*question)(void); /* what the next look-up of a rule does */
static int error_in_handler;

static int rule_or_question(void *context, uintptr_t address, struct incstack_rule *rule)
{
	void (*now)(void) = question;
	question = NULL;
	if (now)
		now();
	return incstack_native_embedder()->code.find_rule_quickly(context, address, rule);
}

static void leave_handler(void)
{
	siglongjmp(out, 1);
}

static void interrupt(void)
{
	raise(SIGUSR1);
}

static void sample_in_handler(int number)
{
	(void)number;
	error_in_handler = sample_native(traced_stack, 0, 1);
	__asm__ volatile("");
}

static void ask_again(void)
{
	ck_assert_int_eq(incstack_runtime_code_unloading(traced_runtime, NULL, 1, UINTPTR_MAX), 0);
}

static NOINLINE void sample_deeper(int depth)
{
	traced_sample();
	if (depth)
		sample_deeper(depth - 1);
	traced_sample();
	__asm__ volatile(""); /* no tail call */
}

/* The handler's sample is left: the next one, on the thread's stack, may begin. It discards the
 * barriers that the samples before had planted, and counts them. */
static NOINLINE void leave_and_go_on(void)
{
	traced_sample();
	const uint64_t stale = traced_stats().stale;
	ask_again();
	if (sigsetjmp(out, 1) == 0) {
		question = leave_handler;
		raise(SIGUSR1);
		ck_abort_msg("the handler returned");
	}
	traced_sample();
	ck_assert_uint_gt(traced_stats().stale, stale);
	sample_deeper(2);
	__asm__ volatile("");
}

/* The thread's sample goes on below the handler, whose own one is refused and counted. */
static NOINLINE void interrupt_and_go_on(void)
{
	traced_sample();
	ask_again();
	question = interrupt;
	sample_deeper(2);
	ck_assert_int_eq(error_in_handler, INCSTACK_EBUSY);
	ck_assert_uint_eq(traced_stats().lost_busy, 1);
}

static void open_stack(void)
{
	struct incstack_embedder embedder = *incstack_native_embedder();
	const struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	embedder.code.find_rule_quickly = rule_or_question;
	ck_assert_int_eq(incstack_runtime_create(&options, &traced_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &traced_stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 19), 0);
}

struct place {
	char *signals;
	void (*run)(void);
};

static void *run_there(void *argument)
{
	const struct place *place = argument;
	const stack_t signals = {.ss_sp = place->signals, .ss_size = SIGNAL_BYTES};
	const stack_t none = {.ss_flags = SS_DISABLE};
	const struct sigaction action = {.sa_handler = sample_in_handler, .sa_flags = SA_ONSTACK};
	ck_assert_int_eq(sigaltstack(&signals, NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	open_stack();
	place->run();
	sample_deeper(3);
	traced_check();
	sample_deeper(3);
	ck_assert_int_eq(traced_check(), 0);
	ck_assert_uint_eq(incstack__stack_broken(traced_stack), 0);
	traced_close();
	ck_assert_int_eq(sigaltstack(&none, NULL), 0);
	return NULL;
}

static void with_signal_stack(bool above, void (*run)(void))
{
	char *memory = mmap(NULL, STACK_BYTES + SIGNAL_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct place place = {memory + (above ? STACK_BYTES : 0), run};
	pthread_attr_t attributes;
	pthread_t thread;
	ck_assert(memory != MAP_FAILED);
	ck_assert_int_eq(pthread_attr_init(&attributes), 0);
	ck_assert_int_eq(pthread_attr_setstack(&attributes, memory + (above ? 0 : SIGNAL_BYTES),
					       STACK_BYTES),
			 0);
	ck_assert_int_eq(pthread_create(&thread, &attributes, run_there, &place), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attributes);
	munmap(memory, STACK_BYTES + SIGNAL_BYTES);
}

START_TEST(left_by_a_handler)
{
	with_signal_stack(_i, leave_and_go_on);
}
END_TEST

START_TEST(in_progress_below_a_handler)
{
	with_signal_stack(_i, interrupt_and_go_on);
}
END_TEST

/* ---- at one depth ------------------------------------------------------------------------- */

static jmp_buf before_sample;

static NOINLINE void leave_sample(void)
{
	longjmp(before_sample, 1);
}

static NOINLINE int sample_and_leave(void)
{
	volatile int error = 0;

	if (setjmp(before_sample) == 0)
		error = sample_native(traced_stack, 0, 1);
	__asm__ volatile("" ::: "memory");
	return error;
}

/* Each operation of a loop is left by a jump that nobody announces. The next one begins at the same
 * depth, so it cannot be a part of the one that was left, and is not refused. */
START_TEST(left_at_one_depth)
{
	open_stack();
	for (int i = 0; i < 5; i++) {
		ask_again();
		question = leave_sample;
		ck_assert_int_eq(sample_and_leave(), 0);
		ck_assert_ptr_null(question);
		ck_assert(incstack__stack_is_busy(traced_stack));
	}
	ck_assert_int_eq(sample_and_leave(), 0);
	ck_assert(!incstack__stack_is_busy(traced_stack));
	ck_assert_uint_eq(traced_stats().lost_busy, 0);
	traced_close();
}
END_TEST

/* ---- half way to another chunk ------------------------------------------------------------ */

enum { CHUNK = 512, CHUNKS = 48, TOP = 12, SAMPLES = 20 };
enum { OBJECT_IS_OLD = 1, LIMIT_IS_OLD = 2, CURRENT_IS_OLD = 4, HALVES = 8 };

/* Each chunk is followed by as much memory that is not the library's. */
static struct {
	char chunk[CHUNK];
	unsigned char guard[CHUNK];
} region[CHUNKS] __attribute__((aligned(64)));
static unsigned handed_out;
static bool downwards;

static void *allocate_next(void *context, size_t bytes)
{
	(void)context;
	ck_assert_uint_eq(bytes, CHUNK);
	ck_assert_uint_lt(handed_out, CHUNKS);
	const unsigned n = handed_out++;
	return region[downwards ? CHUNKS - 1 - n : n].chunk;
}

static void release_nothing(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)memory;
	(void)bytes;
}

static void guards_are_whole(void)
{
	for (unsigned n = 0; n < CHUNKS; n++)
		for (unsigned i = 0; i < CHUNK; i++)
			ck_assert_uint_eq(region[n].guard[i], 0xa5);
}

/* A jump came between the stores by which a stack changes to its next chunk. */
static void leave_half_way(int half)
{
	struct arena *a = &hand.s->arena;
	const struct arena before = *a;
	ck_assert(incstack__arena_next(&hand.s->arena));
	if (half & OBJECT_IS_OLD)
		a->object = before.object;
	if (half & LIMIT_IS_OLD)
		a->limit = before.limit;
	if (half & CURRENT_IS_OLD)
		a->current = before.current;
}

/* All frames are left, and with them the operation that was in progress. */
static void unwind_to_the_end(void)
{
	hand.s->busy = hand_sp(TOP);
	ck_assert_int_eq(incstack_stack_unwinding_to(hand.s, hand_high()), 0);
	ck_assert(!incstack__stack_is_busy(hand.s));
}

/* Nothing is written outside the chunks, and what was sampled before and after is there. */
START_TEST(half_way_to_a_chunk)
{
	struct incstack_embedder embedder = hand_embedder();
	struct incstack_tree *tree;
	embedder.code.decode = NULL; /* nothing needs more memory at retrieve */
	embedder.memory.allocate_traces = allocate_next;
	embedder.memory.release_traces = release_nothing;
	downwards = _i / HALVES % 2;
	memset(region, 0xa5, sizeof(region));
	hand_open_with((struct incstack_options){.mode = INCSTACK_MODE_FULL, .chunk_bytes = CHUNK},
		       &embedder);
	ck_assert_int_eq(incstack_stack_reserve(hand.s, CHUNK * (CHUNKS / 3 * 2)), 0);
	hand_sample(TOP);
	leave_half_way(_i % HALVES);
	if (_i / HALVES / 2)
		unwind_to_the_end();
	else
		incstack__reset_stack(hand.s, true);
	for (int i = 1; i < SAMPLES; i++)
		hand_sample(TOP);
	guards_are_whole();
	tree = hand_retrieve();
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		unsigned n = TOP;
		for (const struct incstack_frame_object *o = t->top; o; o = o->parent, n--) {
			ck_assert_uint_eq(o->function, hand_pc(n));
			ck_assert_uint_eq(o->address, hand_sp(n));
		}
		ck_assert_uint_eq(n, UINT32_MAX);
	}
	ck_assert_uint_eq(tree->objects, SAMPLES * (TOP + 1));
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* ---- what the next operation finds ---------------------------------------------------------- */

/* The thunks of a stack come in any order: those of stacks that ended go to others. All slots
 * are restored. */
START_TEST(all_slots_are_restored)
{
	enum { OUTER = TOP / 2 };
	hand_open((struct incstack_options){.distance = 1});
	struct incstack_stack *const first = hand.s;
	hand_sample(TOP);
	hand.s = hand_stack();
	hand.samples = 0;
	hand_sample(OUTER);
	incstack_stack_destroy(first);
	hand_sample(TOP);
	const uint32_t low = hand.s->thunks.low, high = hand.s->thunks.high;
	ck_assert_uint_lt(low, high);
	ck_assert_ptr_eq(barrier_of(low)->object, hand.s->newest);
	hand.s->busy = hand_sp(TOP);
	ck_assert_int_eq(incstack_stack_unwinding_to(hand.s, hand_high()), 0);
	for (unsigned n = 1; n <= TOP; n++)
		ck_assert(!hand_patched(n));
	incstack_tree_release(hand_retrieve());
	hand_close();
}
END_TEST

/* Earlier frames say nothing about later ones, so the distance is not chosen by them. */
START_TEST(frames_are_not_compared)
{
	hand_open((struct incstack_options){.distance = 0});
	hand_sample(TOP);
	ck_assert_ptr_nonnull(hand.s->distance.last_first);
	hand.s->busy = hand_sp(TOP);
	ck_assert_int_eq(incstack_stack_unwinding_to(hand.s, hand_high()), 0);
	ck_assert_ptr_null(hand.s->distance.last_first);
	incstack_tree_release(hand_retrieve());
	hand_close();
}
END_TEST

static void *forget_as_another_thread(void *result)
{
	*(int *)result = incstack_stack_forget(hand.s);
	return NULL;
}

START_TEST(only_the_owner_forgets)
{
	pthread_t thread;
	int result = 0;
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(TOP);
	ck_assert_int_eq(incstack_stack_forget(NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(pthread_create(&thread, NULL, forget_as_another_thread, &result), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result, INCSTACK_ETHREAD);
	ck_assert_int_eq(incstack__stack_is_busy(NULL), 0);
	hand.s->busy = hand_sp(TOP);
	ck_assert_int_eq(incstack__stack_is_busy(hand.s), 1);
	hand.s->busy = 0;
	hand_all_complete();
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("left operations");
	TCase *tests = tcase_create("in the middle");
	tcase_add_test(tests, left_at_one_depth);
	tcase_add_loop_test(tests, left_by_a_handler, 0, 2);
	tcase_add_loop_test(tests, in_progress_below_a_handler, 0, 2);
	tcase_add_loop_test(tests, half_way_to_a_chunk, 0, 4 * HALVES);
	tcase_add_test(tests, all_slots_are_restored);
	tcase_add_test(tests, frames_are_not_compared);
	tcase_add_test(tests, only_the_owner_forgets);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
