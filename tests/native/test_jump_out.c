/* SPDX-License-Identifier: MIT
 *
 * Tests a jump out of a signal handler at each instruction of samples, of intercepted returns
 * and of the code between them (invariant I8). Traces taken before and after the jump are
 * compared with those of a second stack of the same frames in mode full.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <incstack/native.h>

#include "trace/hooks.h"
#include "../unit/run_suite.h"
#include "../unit/sample_native.h"

/* Traps are slow: where there are more instructions than this, not each is tested. */
#if defined(__SANITIZE_ADDRESS__)
enum { STRIDE = 97 }; /* every instruction of the sanitizer, too */
#elif !defined(__OPTIMIZE__)
enum { STRIDE = 23 };
#elif defined(INCSTACK_HOSTILE)
enum { STRIDE = 3 };
#else
enum { STRIDE = 1 };
#endif
enum { LEVELS = 3, TRAP_FLAG = 0x100 };

static struct incstack_runtime *runtimes[2];
static struct incstack_stack *patched, *full;
static sigjmp_buf out;
static volatile int chosen; /* the level that is stepped through, none: -1 */
static volatile long stops, target;
static uint64_t next_id, refused;

static void on_trap(int number)
{
	(void)number;
	if (stops++ == target)
		siglongjmp(out, 1); /* and the trap flag stays off */
}

/* Below the red zone. */
static void trap_flag(unsigned long on)
{
	unsigned long flags;
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tpopq %0\n\t"
			 "leaq 128(%%rsp), %%rsp"
			 : "=r"(flags));
	flags = (flags & ~(unsigned long)TRAP_FLAG) | on;
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushq %0\n\tpopfq\n\t"
			 "leaq 128(%%rsp), %%rsp"
			 :
			 : "r"(flags)
			 : "cc");
}

/* The sample is stepped through, and the return up to the caller's first line. */
__attribute__((noinline)) static int nest(int level)
{
	int result = level > 0 ? nest(level - 1) + 1 : 0;
	trap_flag(0);
	const uint64_t id = next_id++;
	ck_assert_int_eq(incstack_stack_reserve(patched, 2000), 0);
	ck_assert_int_eq(incstack_stack_reserve(full, 2000), 0);
	ck_assert_int_eq(sample_native(full, id, 1), 0);
	if (level == chosen)
		trap_flag(TRAP_FLAG);
	if (sample_native(patched, id, 1))
		refused++;
	__asm__ volatile("" : "+r"(result));
	return result;
}

/* Compares the callers from o on. The reference may go further where ours was cut. */
static void compare(const struct incstack_frame_object *o,
		    const struct incstack_frame_object *truth)
{
	for (; o; o = o->parent, truth = truth->parent) {
		ck_assert_ptr_nonnull(truth);
		ck_assert(o->function == truth->function && o->address == truth->address);
		if (o->flags & INCSTACK_OBJECT_TRUNCATED)
			return;
	}
	ck_assert_ptr_null(truth);
}

static void compare_all(void)
{
	struct incstack_tree *ours, *theirs;
	const struct incstack_trace *t = NULL;
	ck_assert_int_eq(incstack__stack_verify(patched), 0);
	ck_assert_int_eq(incstack_stack_retrieve(patched, &ours), 0);
	ck_assert_int_eq(incstack_stack_retrieve(full, &theirs), 0);
	t = theirs->traces;
	for (const struct incstack_trace *o = ours->traces; o; o = o->next) {
		while (t && t->id != o->id)
			t = t->next;
		ck_assert_ptr_nonnull(t);
		if (!(o->top->flags & INCSTACK_OBJECT_TRUNCATED))
			compare(o->top->parent, t->top->parent);
	}
	ck_assert_uint_ge(ours->count + 1, theirs->count); /* one may have been left */
	incstack_tree_release(ours);
	incstack_tree_release(theirs);
}

/* Returns false if the level ended before its stop came. */
__attribute__((noinline)) static bool jump_at(int level, long stop)
{
	volatile bool jumped = true;
	stops = 0;
	target = stop;
	next_id = 1;
	if (sigsetjmp(out, 1) == 0) {
		chosen = level;
		nest(LEVELS);
		trap_flag(0);
		jumped = false;
	}
	chosen = -1;
	ck_assert_int_eq(
		incstack_stack_unwinding_to(patched, (uintptr_t)__builtin_frame_address(0)), 0);
	nest(LEVELS);
	compare_all();
	return jumped;
}

/* Chunks are small: a new one at nearly every sample. */
static void begin(uint32_t chunk_bytes, uint32_t distance)
{
	const enum incstack_mode modes[2] = {INCSTACK_MODE_PATCH, INCSTACK_MODE_FULL};
	for (int i = 0; i < 2; i++) {
		const struct incstack_options options = {.size = sizeof(options),
							 .mode = modes[i],
							 .chunk_bytes = chunk_bytes,
							 .distance = distance};
		ck_assert_int_eq(incstack_runtime_create_native(&options, &runtimes[i]), 0);
		ck_assert_int_eq(incstack_stack_create_native(runtimes[i], i ? &full : &patched),
				 0);
	}
	next_id = 1;
	chosen = -1;
	nest(LEVELS); /* the rules are learned */
	compare_all();
}

static void end(void)
{
	incstack_stack_destroy(patched);
	incstack_stack_destroy(full);
	for (int i = 0; i < 2; i++)
		incstack_runtime_destroy(runtimes[i]);
}

START_TEST(at_the_instructions)
{
	const struct sigaction action = {.sa_handler = on_trap};
	struct incstack_stats stats = {.size = sizeof(stats)};
	long jumps = 0;
	ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
	begin(512, (unsigned)_i + 1);
	for (int level = 0; level <= LEVELS; level++)
		for (long stop = _i; jump_at(level, stop); stop += STRIDE)
			jumps++;
	ck_assert_int_gt(jumps, 1000 / STRIDE);
	ck_assert_uint_eq(refused, 0);
	ck_assert_int_eq(incstack_stack_stats(patched, &stats), 0);
	ck_assert_uint_gt(stats.returns, (uint64_t)jumps);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jump_out");
	TCase *tests = tcase_create("all");
	tcase_add_loop_test(tests, at_the_instructions, 0, 2);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
