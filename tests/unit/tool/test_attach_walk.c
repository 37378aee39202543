/* SPDX-License-Identifier: MIT
 *
 * Walks over copies of stacks with any words, by frame pointers: no byte outside of the copy is read, and each frame
 * is one that a frame pointer or the kernel's chain leads to. The rules are made by hand.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "native/frame_pointer.h"
#include "run_suite.h"
#include "tool/attach/process/walk.h"

#define must(expr) ((expr) ? (void)0 : ck_abort_msg("%s", #expr))

#define CODE UINT64_C(0x400000)
#define STACK UINT64_C(0x7ff000001000)
enum { CODE_BYTES = 4096, WORDS = 700, CHAIN = 300, STEPS = 256 };

/* Every eighth address is one to which a call returns. */
static bool is_return(uint64_t pc)
{
	return pc - CODE < CODE_BYTES && pc % 8 == 5;
}

enum tool_attach_code tool_attach_space_rule(struct tool_attach_space *space, uint64_t pc,
					     bool is_exact, struct incstack_rule *rule)
{
	(void)space;
	if (pc - CODE >= CODE_BYTES)
		return TOOL_ATTACH_NO_CODE;
	*rule = incstack__native_pointer_rule();
	return is_exact || is_return(pc) ? TOOL_ATTACH_RULE : TOOL_ATTACH_NO_CALL;
}

struct incstack_rule tool_attach_space_guess(struct tool_attach_space *space,
					     const struct cursor *at, incstack__read_word *word,
					     const void *stack)
{
	uintptr_t any;

	(void)space;
	(void)word(stack, at, at->sp, &any);
	return incstack__native_pointer_rule();
}

void tool_attach_space_begin(struct tool_attach_space *space)
{
	(void)space;
}

static uint64_t state = 88172645463325252u;

static uint64_t random_word(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t return_address(void)
{
	return CODE + random_word() % (CODE_BYTES / 8) * 8 + 5;
}

static uint64_t any_word(void)
{
	const uint64_t random = random_word();

	switch (random % 6) {
	case 0:
		return random;
	case 1:
		return 0;
	case 2:
		return CODE + random / 8 % CODE_BYTES;
	case 3:
		return STACK + random / 8 % (WORDS * 8 + 64);
	case 4:
		return return_address();
	default:
		return STACK + random / 8 % (WORDS + 8) * 8;
	}
}

static void fill(uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = any_word();
	for (size_t i = random_word() % 8; i + 1 < count; i += 2 + random_word() % 8) {
		words[i] = STACK + (i + 2 + random_word() % 8) * 8;
		words[i + 1] = return_address();
	}
}

/* Whether a frame is the caller of another by the copy: its return address is below its stack pointer. */
static bool is_caller(const struct tool_attach_stack *stack, const struct tool_attach_frame *frame,
		      const struct tool_attach_frame *callee)
{
	uint64_t word;

	if (frame->address <= callee->address || frame->address - stack->sp < 16 ||
	    frame->address - stack->sp > stack->bytes || frame->address % 8 != 0)
		return false;
	memcpy(&word, stack->copy + (frame->address - 8 - stack->sp), sizeof(word));
	return word == frame->pc;
}

static bool is_of_chain(const struct tool_attach_stack *stack, uint64_t pc)
{
	for (size_t i = 0; i < stack->chain_count; i++)
		if (stack->chain[i] == pc)
			return true;
	return false;
}

static void check(const struct tool_attach_stack *stack, const struct tool_attach_frame *frames,
		  size_t count)
{
	must(count >= 1 && count <= STEPS + 1);
	must(frames[0].pc == stack->pc && frames[0].address == stack->sp);
	for (size_t i = 1; i < count; i++) {
		must(is_return(frames[i].pc));
		must(frames[i].flags & INCSTACK_OBJECT_POINTER);
		must(is_caller(stack, &frames[i], &frames[i - 1]) ||
		     (frames[i].address == 0 && is_of_chain(stack, frames[i].pc)));
		must(!(frames[i - 1].flags & (INCSTACK_OBJECT_BASE | INCSTACK_OBJECT_TRUNCATED)));
	}
	must(frames[count - 1].flags & (INCSTACK_OBJECT_BASE | INCSTACK_OBJECT_TRUNCATED));
}

START_TEST(any_stack)
{
	static struct tool_attach_frame frames[TOOL_ATTACH_FRAMES];
	static uint64_t chain[CHAIN];
	size_t longest = 0;

	for (int i = 0; i < 200000; i++) {
		const size_t count = random_word() % 64 == 0 ? WORDS : random_word() % 60;
		uint64_t *words = malloc(count * 8 + 1); /* so that a sanitizer knows the end */
		struct tool_attach_stack stack = {
			.pc = CODE + random_word() % CODE_BYTES,
			.sp = STACK,
			.fp = any_word(),
			.is_native = true,
			.copy = (const unsigned char *)words,
			.bytes = count * 8,
			.chain = chain,
			.chain_count = random_word() % CHAIN,
		};
		size_t found;

		fill(words, count);
		for (size_t j = 0; j < stack.chain_count; j++)
			chain[j] = random_word() % 8 == 0 ? any_word() : return_address();
		if (i % 4 == 0)
			stack.fp = STACK;
		must(tool_attach_walk(NULL, &stack, frames, &found) == INCSTACK__TICK_TAKEN);
		check(&stack, frames, found);
		longest = found > longest ? found : longest;
		free(words);
	}
	ck_assert_uint_gt(longest, 50);
}
END_TEST

/* A chain of frame pointers of so many frames. */
static void make_frames(uint64_t *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		words[2 * i] = i + 1 < count ? STACK + 16 * (uint64_t)(i + 1) : 0;
		words[2 * i + 1] = return_address();
	}
}

START_TEST(long_chains_are_cut)
{
	enum { FRAMES = 20000 };
	static struct tool_attach_frame frames[TOOL_ATTACH_FRAMES];
	static uint64_t words[2 * FRAMES];
	const struct tool_attach_stack stack = {.pc = CODE,
						.sp = STACK,
						.fp = STACK,
						.is_native = true,
						.copy = (const unsigned char *)words,
						.bytes = sizeof(words)};
	size_t count;

	make_frames(words, FRAMES);
	ck_assert_int_eq(tool_attach_walk(NULL, &stack, frames, &count), INCSTACK__TICK_TAKEN);
	ck_assert_uint_eq(count, STEPS + 1);
	ck_assert(frames[STEPS].flags & INCSTACK_OBJECT_TRUNCATED);
	make_frames(words, 3);
	ck_assert_int_eq(tool_attach_walk(NULL, &stack, frames, &count), INCSTACK__TICK_TAKEN);
	ck_assert_uint_eq(count, 4);
	ck_assert(frames[3].flags & INCSTACK_OBJECT_BASE);
}
END_TEST

/* The oldest frame of the copy points to another stack. */
START_TEST(callers_on_another_stack)
{
	static struct tool_attach_frame frames[TOOL_ATTACH_FRAMES];
	uint64_t words[4];
	uint64_t chain[4];
	struct tool_attach_stack stack = {.pc = CODE,
					  .sp = STACK,
					  .fp = STACK,
					  .is_native = true,
					  .copy = (const unsigned char *)words,
					  .bytes = sizeof(words),
					  .chain = chain,
					  .chain_count = 4};
	size_t count;

	make_frames(words, 1);
	words[0] = UINT64_C(0xc000012340);
	chain[0] = stack.pc;
	chain[1] = words[1];
	chain[2] = return_address();
	chain[3] =
		CODE +
		1; /* the outermost frame of a goroutine returns to an address that follows no call */
	ck_assert_int_eq(tool_attach_walk(NULL, &stack, frames, &count), INCSTACK__TICK_TAKEN);
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(frames[2].pc, chain[2]);
	ck_assert(frames[2].flags & INCSTACK_OBJECT_BASE);
	/* The kernel's chain is another one. */
	chain[1] ^= 8;
	ck_assert_int_eq(tool_attach_walk(NULL, &stack, frames, &count), INCSTACK__TICK_TAKEN);
	ck_assert_uint_eq(count, 2);
	ck_assert(frames[1].flags & INCSTACK_OBJECT_TRUNCATED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("attach walk");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, any_stack);
	tcase_add_test(tests, long_chains_are_cut);
	tcase_add_test(tests, callers_on_another_stack);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
