/* SPDX-License-Identifier: MIT
 *
 * Tests the native embedder except its rules: the full walk, the stack of a thread, the table,
 * and the tops of samples and walks. The core is replaced by functions that write down their arguments.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <incstack/native.h>

#include "trace/shared.h"
#include "../unit/run_suite.h"

#define OPAQUE __attribute__((noinline))
#define FRAMES 64

/* ---- in place of the core ------------------------------------------------------ */

static uintptr_t thunk; /* the one return address that passes for a thunk */
static struct incstack_options created;
static uintptr_t created_low;
static uintptr_t created_high;

/* The pretended thunk stands for its own address. */
bool incstack__frame_pass_trampoline(struct incstack_frame *frame)
{
	return thunk != 0 && frame->pc == thunk;
}

bool incstack__page_readable(uintptr_t page);

bool incstack__page_readable(uintptr_t page)
{
	(void)page;
	return true;
}

uintptr_t incstack_slot_read(const uintptr_t *slot)
{
	return *slot;
}

int incstack__trampoline_contains(uintptr_t pc);

int incstack__trampoline_contains(uintptr_t pc)
{
	(void)pc;
	return 0;
}

int incstack_runtime_create(const struct incstack_options *options,
			    struct incstack_runtime **runtime)
{
	created = *options;
	*runtime = (struct incstack_runtime *)&created;
	return 0;
}

void incstack__stack_is_of_thread(struct incstack_stack *s)
{
	(void)s;
}

int incstack_stack_create(struct incstack_runtime *runtime, uintptr_t low, uintptr_t high,
			  struct incstack_stack **stack)
{
	created_low = low;
	created_high = high;
	*stack = (struct incstack_stack *)runtime;
	return 0;
}

/* ---- walk ------------------------------------------------------------------------ */

static struct incstack_frame frames[FRAMES];
static int frame_count;

static OPAQUE int walk_here(int max)
{
	frame_count = incstack_native_walk(frames, max);
	return frame_count;
}

START_TEST(walk_is_that_of_the_caller)
{
	uintptr_t code = (uintptr_t)walk_here;
	uintptr_t sp;

	walk_here(FRAMES);
	ck_assert_int_gt(frame_count, 3);
	ck_assert(frames[0].pc > code && frames[0].pc < code + 200);
	ck_assert_uint_lt((uintptr_t)__builtin_frame_address(0) - frames[0].sp, 4096);
	sp = frames[0].sp;
	for (int i = 1; i < frame_count; i++) {
		ck_assert_uint_gt(frames[i].sp, sp);
		ck_assert_uint_eq(frames[i].flags, 0);
		sp = frames[i].sp;
	}
}
END_TEST

START_TEST(walk_stops_at_max)
{
	struct incstack_frame guard = {.pc = 77};

	frames[2] = guard;
	ck_assert_int_eq(walk_here(2), 2);
	ck_assert_uint_eq(frames[2].pc, 77);
	ck_assert_int_eq(walk_here(0), INCSTACK_EINVAL);
	ck_assert_int_eq(walk_here(-1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_native_walk(NULL, 5), INCSTACK_EINVAL);
}
END_TEST

START_TEST(walk_passes_thunks)
{
	struct incstack_frame all[FRAMES];
	int count = incstack_native_walk(all, FRAMES);

	thunk = all[1].pc;
	ck_assert_int_eq(incstack_native_walk(frames, FRAMES), count);
	for (int i = 1; i < count; i++) {
		ck_assert_uint_eq(frames[i].pc, all[i].pc);
		ck_assert_uint_eq(frames[i].sp, all[i].sp);
	}
	thunk = 0;
}
END_TEST

/* A function whose last instruction, as its table says, is a call. */
void ends_with_call(void (*callee)(void));
__asm__(".text\n"
	".type ends_with_call, @function\n"
	"ends_with_call:\n"
	"	.cfi_startproc\n"
	"	subq $8, %rsp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	call *%rdi\n"
	"	.cfi_endproc\n"
	"	addq $8, %rsp\n"
	"	ret\n"
	".size ends_with_call, . - ends_with_call\n");

static OPAQUE void walk_with_thunk_at_end(void)
{
	struct incstack_frame all[FRAMES];
	int count = incstack_native_walk(all, FRAMES);

	ck_assert_int_gt(count, 3);
	ck_assert_uint_eq(all[1].pc, (uintptr_t)ends_with_call + 6);
	thunk = all[1].pc;
	ck_assert_int_eq(incstack_native_walk(frames, FRAMES), count);
	for (int i = 1; i < count; i++) {
		ck_assert_uint_eq(frames[i].pc, all[i].pc);
		ck_assert_uint_eq(frames[i].sp, all[i].sp);
	}
	thunk = 0;
}

START_TEST(walk_passes_thunks_to_the_end_of_a_function)
{
	ends_with_call(walk_with_thunk_at_end);
}
END_TEST

/* What a handler interrupted, and what the walk says of it. */
static struct incstack_top sampled, interrupted;
static int interrupted_result;

static void handler(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	walk_here(FRAMES);
	interrupted = incstack_native_top(context);
	interrupted_result = incstack_native_embedder()->signals.interrupted(
		NULL, &(struct incstack_interruption){.ucontext = context}, &sampled);
}

START_TEST(walk_tells_signal_frames)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	int signals = 0;

	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	for (int i = 0; i < frame_count - 1; i++) {
		bool signal = frames[i].flags & INCSTACK_FRAME_SIGNAL;
		bool exact = frames[i + 1].flags & INCSTACK_FRAME_EXACT;

		ck_assert(signal == exact);
		if (!signal)
			continue;
		signals++;
		ck_assert_uint_eq(frames[i + 1].pc, sampled.pc);
		ck_assert_uint_eq(frames[i + 1].sp, sampled.sp);
		ck_assert_uint_eq(frames[i + 1].fp, sampled.fp);
	}
	ck_assert_int_eq(signals, 1);
}
END_TEST

/* ---- tops ---------------------------------------------------------------------------- */

START_TEST(top_of_the_caller)
{
	const struct incstack_top top = incstack_native_top(NULL);

	walk_here(FRAMES);
	/* This function's frame, at another call in it. */
	ck_assert_uint_eq(top.sp, frames[1].sp);
	ck_assert_uint_eq(top.fp, frames[1].fp);
	ck_assert_uint_lt(frames[1].pc - top.pc, 400);
	ck_assert_uint_eq(top.flags, 0);
	ck_assert_uint_eq(top.slot, 0);
}
END_TEST

START_TEST(what_was_interrupted)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	struct incstack_interruption none = {0};

	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	ck_assert_int_eq(interrupted_result, 1);
	ck_assert_uint_eq(sampled.flags, INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED);
	ck_assert_uint_eq(sampled.slot, 0);
	ck_assert_mem_eq(&sampled, &interrupted, sizeof(sampled));
	ck_assert_int_eq(incstack_native_embedder()->signals.interrupted(NULL, &none, &sampled),
			 INCSTACK_EINVAL);
}
END_TEST

/* ---- the stack of a thread ------------------------------------------------------------- */

START_TEST(range_of_the_main_thread)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct rlimit limit;
	uintptr_t low;
	uintptr_t high;

	ck_assert_int_eq(incstack_native_stack_range(&low, &high), 0);
	ck_assert_uint_lt(low, here);
	ck_assert_uint_lt(here, high);
	/* Not what it occupies now, but as far as it may grow. */
	ck_assert_int_eq(getrlimit(RLIMIT_STACK, &limit), 0);
	if (limit.rlim_cur != RLIM_INFINITY)
		ck_assert_uint_ge(high - low, limit.rlim_cur / 2);
	/* The outermost frame, and the arguments above it. */
	walk_here(FRAMES);
	ck_assert_uint_lt(frames[frame_count - 1].sp, high);
	ck_assert_int_eq(incstack_native_stack_range(NULL, &high), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_native_stack_range(&low, NULL), INCSTACK_EINVAL);
}
END_TEST

static void *thread_main(void *argument)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct incstack_stack *stack = NULL;

	(void)argument;
	ck_assert_int_eq(incstack_stack_create_native((struct incstack_runtime *)&created, &stack),
			 0);
	ck_assert_ptr_eq(stack, &created);
	ck_assert_uint_lt(created_low, here);
	ck_assert_uint_lt(here, created_high);
	ck_assert_uint_le(created_high - created_low, 1 << 20);
	ck_assert_uint_ge(created_high - created_low, 1 << 19);
	return NULL;
}

START_TEST(stack_of_a_thread)
{
	struct incstack_stack *stack;
	pthread_attr_t attributes;
	pthread_t thread;

	ck_assert_int_eq(pthread_attr_init(&attributes), 0);
	ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
	ck_assert_int_eq(pthread_create(&thread, &attributes, thread_main, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attributes);
	ck_assert_uint_ne(created_high, 0);
	ck_assert_int_eq(incstack_stack_create_native(NULL, &stack), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_create_native((struct incstack_runtime *)&created, NULL),
			 INCSTACK_EINVAL);
}
END_TEST

/* ---- the table ---------------------------------------------------------------------------- */

START_TEST(table)
{
	const struct incstack_embedder *embedder = incstack_native_embedder();
	char *memory = embedder->memory.allocate(NULL, 100000);

	ck_assert_uint_eq(embedder->size, sizeof(*embedder));
	ck_assert_ptr_nonnull((void *)(uintptr_t)embedder->code.find_rule);
	ck_assert_ptr_null((void *)(uintptr_t)embedder->code.decode);
	ck_assert_ptr_nonnull(memory);
	memset(memory, 1, 100000);
	embedder->memory.release(NULL, memory, 100000);
	ck_assert_ptr_null(embedder->memory.allocate(NULL, SIZE_MAX / 2));
}
END_TEST

START_TEST(runtime_options)
{
	struct incstack_options options = {.size = sizeof(options), .distance = 6};
	struct incstack_embedder other = {.size = sizeof(other)};
	struct incstack_runtime *runtime = NULL;

	ck_assert_int_eq(incstack_runtime_create_native(NULL, &runtime), 0);
	ck_assert_ptr_nonnull(runtime);
	ck_assert_uint_eq(created.size, sizeof(created));
	ck_assert_ptr_eq(created.embedder, incstack_native_embedder());
	ck_assert_uint_eq(created.distance, 0);
	ck_assert_int_eq(incstack_runtime_create_native(&options, &runtime), 0);
	ck_assert_uint_eq(created.distance, 6);
	ck_assert_ptr_eq(created.embedder, incstack_native_embedder());
	ck_assert_ptr_null(options.embedder);
	ck_assert_int_eq(incstack_runtime_create_native(NULL, NULL), INCSTACK_EINVAL);
	options.embedder = &other;
	ck_assert_int_eq(incstack_runtime_create_native(&options, &runtime), INCSTACK_EINVAL);
	options.embedder = NULL;
	options.size = 1;
	ck_assert_int_eq(incstack_runtime_create_native(&options, &runtime), INCSTACK_EINVAL);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("native walk");
	TCase *all = tcase_create("all");

	tcase_add_test(all, walk_is_that_of_the_caller);
	tcase_add_test(all, walk_stops_at_max);
	tcase_add_test(all, walk_passes_thunks);
	tcase_add_test(all, walk_passes_thunks_to_the_end_of_a_function);
	tcase_add_test(all, walk_tells_signal_frames);
	tcase_add_test(all, top_of_the_caller);
	tcase_add_test(all, what_was_interrupted);
	tcase_add_test(all, range_of_the_main_thread);
	tcase_add_test(all, stack_of_a_thread);
	tcase_add_test(all, table);
	tcase_add_test(all, runtime_options);
	suite_add_tcase(suite, all);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
