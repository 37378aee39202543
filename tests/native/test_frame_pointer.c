/* SPDX-License-Identifier: MIT
 *
 * Steps by frame pointers in this process: by which rule interrupted code is left, how far a chain is followed,
 * and that stacks and registers with any words lead nowhere but to what a second walk, written here, finds.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <incstack/incstack.h>

#include "native/frame_pointer.h"
#include "native/native.h"
#include "run_suite.h"

/* Check makes a system call for each assertion that holds. */
#define must(expr) ((expr) ? (void)0 : ck_abort_msg("%s", #expr))

enum { PAGE = 4096, WORDS = PAGE / 8, STEPS = 256, LONG = 2 * PAGE };

static unsigned char *code;  /* a page: calls of 5 bytes at each multiple of 16 */
static uintptr_t *words;     /* a stack, between pages that cannot be read */
static uintptr_t rule_of_pc; /* the interrupted pc */

static void *guarded(size_t bytes)
{
	char *memory = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(memory != MAP_FAILED);
	ck_assert_int_eq(mprotect(memory + PAGE, bytes, PROT_READ | PROT_WRITE), 0);
	return memory + PAGE;
}

static void make_code(void)
{
	code = guarded(PAGE);
	memset(code, 0x90, PAGE);
	for (int at = 0; at < PAGE; at += 16)
		code[at] = 0xe8;
}

/* Behind the call of the number. */
static uintptr_t after_call(unsigned number)
{
	return (uintptr_t)code + 16 * (uintptr_t)(number % (PAGE / 16 - 1) + 1) + 5;
}

static bool is_in_code(uintptr_t pc)
{
	return pc - (uintptr_t)code < PAGE;
}

static bool returns_into(void *context, uintptr_t pc)
{
	(void)context;
	return is_in_code(pc - 1) && incstack__native_copied_follows_call(pc);
}

static int find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	if (!is_in_code(address))
		return INCSTACK_EUNWIND;
	*rule = incstack__native_pointer_rule();
	return 0;
}

static const struct incstack_embedder embedder = {
	.size = sizeof(embedder), .code.find_rule = find_rule, .code.returns_into = returns_into};

static struct incstack_runtime *runtime;
static struct incstack_stack *stack;

static void open_stack(size_t bytes)
{
	const struct incstack_options options = {
		.size = sizeof(options), .embedder = &embedder, .distance = 1};

	make_code();
	words = guarded(bytes);
	ck_assert_int_eq(incstack_runtime_create(&options, &runtime), 0);
	ck_assert_int_eq(
		incstack_stack_create(runtime, (uintptr_t)words, (uintptr_t)words + bytes, &stack),
		0);
}

static void close_stack(void)
{
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(runtime);
}

static struct incstack_tree *sample(const struct incstack_top *top)
{
	struct incstack_tree *tree;

	must(incstack_stack_sample(stack, 0, 0, top) == 0);
	must(incstack_stack_retrieve(stack, &tree) == 0);
	must(tree->count == 1);
	return tree;
}

/* ---- any words ---------------------------------------------------------------------- */

static uint64_t state = 88172645463325252u;

static uint64_t random_word(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uintptr_t any_word(void)
{
	const uint64_t random = random_word();

	switch (random % 8) {
	case 0:
		return random;
	case 1:
		return 0;
	case 2:
		return (uintptr_t)code + random / 8 % PAGE;
	case 3:
		return (uintptr_t)words + random / 8 % PAGE; /* any alignment */
	case 4:
		return (uintptr_t)words + PAGE + random / 8 % 64 - 32; /* at the border */
	case 5:
		return after_call((unsigned)(random >> 8));
	default:
		return (uintptr_t)words + random / 8 % WORDS * 8;
	}
}

/* Any words, and frames among them: a frame pointer that mostly leads to the next one, and a return address. Returns
 * the first. */
static uintptr_t fill(void)
{
	const int first = (int)(random_word() % 64);
	int step;

	for (int i = 0; i < WORDS; i++)
		words[i] = any_word();
	for (int i = first; i + 1 < WORDS; i += step) {
		step = 2 + (int)(random_word() % 16);
		words[i] = random_word() % 32 ? (uintptr_t)&words[i + step] : any_word();
		words[i + 1] = after_call((unsigned)random_word());
	}
	return (uintptr_t)&words[first];
}

/* Where the second walk ends. */
struct expected {
	uintptr_t pcs[WORDS];
	unsigned count;
	bool is_base;
};

static bool behind_call(uintptr_t pc)
{
	return is_in_code(pc - 7) && is_in_code(pc - 1) && (pc - (uintptr_t)code) % 16 == 5;
}

static void walk_again(const struct incstack_top *top, struct expected *e)
{
	uintptr_t sp = top->sp;
	uintptr_t fp = top->fp;

	e->count = 0;
	e->pcs[e->count++] = top->pc;
	e->is_base = false;
	while (fp != 0) {
		const uintptr_t at = (fp - (uintptr_t)words) / 8;

		if (fp % 8 != 0 || fp + 8 < sp || fp < sp || fp < (uintptr_t)words ||
		    at + 2 > WORDS)
			return;
		if (!behind_call(words[at + 1])) {
			e->is_base = words[at] == 0;
			return;
		}
		e->pcs[e->count++] = words[at + 1];
		sp = fp + 16;
		fp = words[at];
	}
	e->is_base = true;
}

static void compare(const struct incstack_frame_object *o, const struct expected *e)
{
	for (unsigned i = 0; i < e->count; i++, o = o->parent) {
		must(o != NULL);
		must(o->function == e->pcs[i]);
		must(o->flags & INCSTACK_OBJECT_POINTER);
		must((i + 1 == e->count) == (o->parent == NULL));
		must(((o->flags & INCSTACK_OBJECT_BASE) != 0) == (i + 1 == e->count && e->is_base));
		must(((o->flags & INCSTACK_OBJECT_TRUNCATED) != 0) ==
		     (i + 1 == e->count && !e->is_base));
	}
}

START_TEST(any_stack)
{
	enum { STACKS = 200000, FILL_EACH = 16 };
	static uintptr_t before[WORDS];
	static struct expected expected;
	uintptr_t first = 0;
	uint64_t longest = 0;

	open_stack(PAGE);
	for (int i = 0; i < STACKS; i++) {
		struct incstack_top top = {
			.pc = (uintptr_t)code + random_word() % PAGE,
			.sp = (uintptr_t)words + random_word() % (WORDS / 2) * 8,
			.fp = any_word(),
			.flags = INCSTACK_TOP_EXACT,
		};
		struct incstack_tree *tree;

		if (i % FILL_EACH == 0)
			first = fill();
		if (i % 4 == 0) {
			top.sp = (uintptr_t)words;
			top.fp = first;
		}
		memcpy(before, words, sizeof(before));
		walk_again(&top, &expected);
		tree = sample(&top);
		compare(tree->traces->top, &expected);
		longest = expected.count > longest ? expected.count : longest;
		incstack_tree_release(tree);
		must(memcmp(before, words, sizeof(before)) == 0);
	}
	ck_assert_uint_gt(longest, 20);
	close_stack();
}
END_TEST

/* ---- the limit ---------------------------------------------------------------------- */

START_TEST(long_chains_are_cut)
{
	enum { FRAMES = LONG / 16 };
	const struct incstack_frame_object *o;
	struct incstack_tree *tree;
	struct incstack_top top;
	unsigned count = 1;

	open_stack(LONG);
	for (unsigned i = 0; i < FRAMES; i++) {
		words[2 * i] = i + 1 < FRAMES ? (uintptr_t)&words[2 * i + 2] : 0;
		words[2 * i + 1] = after_call(i);
	}
	top = (struct incstack_top){
		.pc = after_call(1), .sp = (uintptr_t)words, .fp = (uintptr_t)words};
	tree = sample(&top);
	for (o = tree->traces->top; o->parent; o = o->parent)
		count++;
	ck_assert_uint_eq(count, STEPS + 1);
	ck_assert(o->flags & INCSTACK_OBJECT_TRUNCATED && o->flags & INCSTACK_OBJECT_POINTER);
	incstack_tree_release(tree);
	close_stack();
}
END_TEST

/* ---- the rule of interrupted code --------------------------------------------------- */

/* function: push %rbp; mov %rsp,%rbp; nop; pop %rbp; ret, then a function without a frame. */
static const unsigned char function[] = {0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xc3};
enum { FUNCTION = 512, LEAF = 1024, CALL = 2048 };

static struct incstack_rule rule_at(size_t offset, uintptr_t *sp)
{
	rule_of_pc = (uintptr_t)code + offset;
	return incstack__native_pointer_rule_here(rule_of_pc, (uintptr_t)sp);
}

/* Writes a call, and returns its return address. */
static uintptr_t call_to(size_t target)
{
	const int32_t distance = (int32_t)target - (CALL + 5);

	code[CALL] = 0xe8;
	memcpy(code + CALL + 1, &distance, sizeof(distance));
	return (uintptr_t)code + CALL + 5;
}

START_TEST(interrupted_code)
{
	uintptr_t slot = 1;
	struct incstack_rule rule;

	make_code();
	memset(code, 0x90, PAGE);
	memcpy(code + FUNCTION, function, sizeof(function));
	rule = rule_at(FUNCTION, &slot);
	ck_assert_uint_eq(rule.kind, INCSTACK_RULE_SP);
	ck_assert_int_eq(rule.cfa_offset, 8);
	rule = rule_at(FUNCTION + 1, &slot);
	ck_assert_uint_eq(rule.kind, INCSTACK_RULE_SP);
	ck_assert_int_eq(rule.cfa_offset, 16);
	ck_assert_uint_eq(rule.fp_offset, 16);
	ck_assert_uint_eq(rule_at(FUNCTION + 4, &slot).kind, INCSTACK_RULE_FP);
	ck_assert_uint_eq(rule_at(FUNCTION + 6, &slot).kind, INCSTACK_RULE_SP);
	/* Without a frame, a call to the function shows where the return address is. */
	ck_assert_uint_eq(rule_at(LEAF + 8, &slot).kind, INCSTACK_RULE_FP);
	slot = call_to(LEAF);
	ck_assert_uint_eq(rule_at(LEAF + 8, &slot).kind, INCSTACK_RULE_SP);
	/* An old word on the stack is none: another function with a frame lies in between. */
	slot = call_to(FUNCTION);
	ck_assert_uint_eq(rule_at(FUNCTION + 4, &slot).kind, INCSTACK_RULE_FP);
	ck_assert_uint_eq(rule_at(LEAF + 8, &slot).kind, INCSTACK_RULE_FP);
	slot = call_to(LEAF + 16);
	ck_assert_uint_eq(rule_at(LEAF + 8, &slot).kind, INCSTACK_RULE_FP);
}
END_TEST

/* ---- code that another thread unmaps ------------------------------------------------ */

static atomic_bool stop;

static void *unmap_again_and_again(void *page)
{
	while (!atomic_load(&stop)) {
		ck_assert_int_eq(mprotect(page, PAGE, PROT_NONE), 0);
		ck_assert_int_eq(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	}
	return NULL;
}

START_TEST(unmapped_meanwhile)
{
	pthread_t thread;
	unsigned found = 0;
	uintptr_t word = 0;

	make_code();
	ck_assert_int_eq(pthread_create(&thread, NULL, unmap_again_and_again, code), 0);
	for (unsigned i = 0; i < 100000; i++) {
		found += incstack__native_copied_follows_call(after_call(i));
		(void)incstack__native_pointer_rule_here(after_call(i), (uintptr_t)&word);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert(incstack__native_copied_follows_call(after_call(1)));
	ck_assert(!incstack__native_copied_follows_call((uintptr_t)code));
	ck_assert(!incstack__native_copied_follows_call(8));
	ck_assert_uint_le(found, 100000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frame pointers");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, any_stack);
	tcase_add_test(tests, long_chains_are_cut);
	tcase_add_test(tests, interrupted_code);
	tcase_add_test(tests, unmapped_meanwhile);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
