/* SPDX-License-Identifier: MIT
 *
 * Tests the frame iterator where walks go wrong: stacks of any depth, chains that loop or lead
 * down, and memory that cannot be read. Each case is tried with and without known bounds.
 */
#include <sys/mman.h>

#include <incstack/frames.h>

#include "hand_made.h"
#include "run_suite.h"

enum { SIZE = sizeof(uintptr_t), PAGE = 4096, BAD = 20, TOP = 40, KERNEL = 50 };
enum { RBP = 15, RSP = 20, RIP = 21 }; /* words of a ucontext */

static struct incstack_frames frames;
static bool bounded;

/* Begins at the top, on a stack that occupies [low, high). Without `bounded` that is not known. */
static void begin_in(struct incstack_runtime *rt, uintptr_t low, uintptr_t high,
		     const struct incstack_top *top)
{
	struct incstack_frames_place place = {.runtime = rt};
	if (bounded) {
		place.low = low;
		place.high = high;
	}
	ck_assert_int_eq(incstack_frames_begin(&frames, &place, top), 0);
}

/* Begins at the top of the hand-made stack. */
static void begin_at(unsigned n)
{
	const struct incstack_top top = hand_top(n, 0);
	begin_in(hand.rt, (uintptr_t)hand.words, hand_high(), &top);
}

/* Begins on a stack of unknown bounds. */
static void begin_anywhere(const struct incstack_top *top)
{
	const struct incstack_frames_place place = {.runtime = hand.rt};
	ck_assert_int_eq(incstack_frames_begin(&frames, &place, top), 0);
}

/* Returns how many frames there are, and in *result how the walk ended. */
static unsigned walk(int *result)
{
	unsigned count = 0;
	while ((*result = incstack_frames_next(&frames)) > 0)
		ck_assert_uint_lt(++count, 100000000);
	ck_assert_int_eq(incstack_frames_next(&frames), *result);
	return count;
}

/* ---- depth --------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 100000, FRAME_WORDS = 3 };
#define DEEP_CODE ((uintptr_t)0x4000000)

static int deep_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	*rule = (struct incstack_rule){INCSTACK_RULE_SP, FRAME_WORDS * SIZE, 8, 0, 0};
	if (address == DEEP_CODE - 1)
		rule->kind = INCSTACK_RULE_END;
	return 0;
}

static uintptr_t deep[FRAME_WORDS * DEPTH_MAX + 1];

/* Frame 0 is the outermost. There are eight other positions. */
static uintptr_t deep_pc(unsigned n)
{
	return DEEP_CODE + (n ? 8 + n % 8 : 0);
}

static uintptr_t deep_sp(unsigned n)
{
	return (uintptr_t)(deep + FRAME_WORDS * (DEPTH_MAX - n));
}

static void walk_deep(struct incstack_runtime *rt, unsigned depth)
{
	const struct incstack_top top = {.pc = deep_pc(depth - 1), .sp = deep_sp(depth - 1)};
	const uintptr_t low = (uintptr_t)deep, high = low + sizeof(deep);
	unsigned n = depth;
	begin_in(rt, low, high, &top);
	while (incstack_frames_next(&frames) > 0) {
		n--;
		if (frames.frame.pc != deep_pc(n) || frames.frame.sp != deep_sp(n))
			ck_abort_msg("frame %u of %u", n, depth);
	}
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(incstack_frames_next(&frames), 0);
}

START_TEST(any_depth)
{
	const struct incstack_embedder embedder = {.size = sizeof(embedder),
						   .code.find_rule = deep_rule};
	const struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	struct incstack_runtime *rt;
	bounded = _i;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	for (unsigned n = 0; n + 1 < DEPTH_MAX; n++)
		((uintptr_t *)deep_sp(n))[-1] = deep_pc(n);
	for (unsigned depth = 1; depth <= DEPTH_MAX; depth = depth < 10 ? depth + 1 : depth * 10)
		walk_deep(rt, depth);
	incstack_runtime_destroy(rt);
}
END_TEST

/* ---- chains that do not lead to a base ------------------------------------------------------- */

static void open_hostile(bool with_bounds)
{
	hand_open((struct incstack_options){.distance = 1});
	bounded = with_bounds;
}

/* A frame pointer that leads nowhere, back, or down. No caller is found by it, so the walk ends
 * at the caller of BAD. */
START_TEST(bad_frame_pointers)
{
	open_hostile(_i);
	const uintptr_t words[] = {0,
				   1,
				   hand_fp(BAD),
				   hand_fp(BAD + 1),
				   hand_fp(TOP),
				   hand_fp(BAD - 1) + 4,
				   hand_fp(BAD) + SIZE,
				   (uintptr_t)1 << 63,
				   UINTPTR_MAX - 7};
	for (unsigned i = 0; i < sizeof(words) / SIZE; i++) {
		int result;
		*(uintptr_t *)hand_fp(BAD) = words[i];
		begin_at(TOP);
		ck_assert_uint_eq(walk(&result), TOP - BAD + 2);
	}
	hand_close();
}
END_TEST

/* Rules that lead to the same place, or down. Frames of one size follow each other, so each rule
 * would find a word that is a return address. */
START_TEST(bad_rules)
{
	static const struct incstack_rule rules[] = {{INCSTACK_RULE_SP, 0, 0, 0, 0},
						     {INCSTACK_RULE_SP, 0, 8, 0, 0},
						     {INCSTACK_RULE_SP, -8, 8, 0, 0},
						     {INCSTACK_RULE_SP, -64, 8, 0, 0},
						     {INCSTACK_RULE_FP, -64, 8, 16, 0},
						     {INCSTACK_RULE_FP, INT32_MIN, 8, 16, 0},
						     {INCSTACK_RULE_SP, INT32_MAX - 7, 8, 0, 0},
						     {INCSTACK_RULE_SP, 16, 2040, 0, 0},
						     {INCSTACK_RULE_FP_DEREF, -8, 8, 0, 0},
						     {INCSTACK_RULE_FP_DEREF, 4, 8, 0, 0},
						     {INCSTACK_RULE_FP_DEREF, -800, 8, 0, 0},
						     {INCSTACK_RULE_NONE, 0, 0, 0, 0},
						     {77, 16, 8, 16, 0}};
	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		int result;
		open_hostile(_i);
		hand.rules[BAD] = rules[i];
		*(uintptr_t *)hand_sp(BAD) = hand_pc(BAD);
		((uintptr_t *)hand_fp(BAD))[-1] = hand_sp(BAD);
		begin_at(TOP);
		ck_assert_uint_eq(walk(&result), TOP - BAD + 1);
		ck_assert_int_eq(result, INCSTACK_EUNWIND);
		hand_close();
	}
}
END_TEST

/* The kernel's frame of a handler: the words from `at` on are a ucontext. */
static void put_signal(uintptr_t *at, unsigned pc, uintptr_t sp, uintptr_t fp)
{
	at[RIP] = hand_pc(pc);
	at[RSP] = sp;
	at[RBP] = fp;
}

/* Signal frames that lead to each other, or to themselves. */
START_TEST(signal_frames_in_a_loop)
{
	int result;
	open_hostile(_i);
	uintptr_t *one = hand_slot(BAD) + 1, *two = one + 2 * (RIP + 1);
	hand.rules[KERNEL] = (struct incstack_rule){.kind = INCSTACK_RULE_SIGNAL};
	*hand_slot(BAD) = hand_pc(KERNEL);
	put_signal(one, KERNEL, (uintptr_t)two, 0);
	put_signal(two, KERNEL, (uintptr_t)one, 0);
	begin_at(TOP);
	ck_assert_uint_lt(walk(&result), 1000);
	ck_assert_int_eq(result, INCSTACK_EUNWIND);
	put_signal(one, KERNEL, (uintptr_t)one, 0);
	begin_at(TOP);
	ck_assert_uint_lt(walk(&result), 1000);
	ck_assert_int_eq(result, INCSTACK_EUNWIND);
	hand_close();
}
END_TEST

/* Handlers on stacks above those that they interrupt. */
START_TEST(signal_frames_that_lead_down)
{
	int result;
	open_hostile(_i);
	hand.rules[KERNEL] = (struct incstack_rule){.kind = INCSTACK_RULE_SIGNAL};
	*hand_slot(5) = hand_pc(KERNEL);
	put_signal(hand_slot(5) + 1, 30, hand_sp(30), hand_fp(30));
	*hand_slot(25) = hand_pc(KERNEL);
	put_signal(hand_slot(25) + 1, TOP, hand_sp(TOP), hand_fp(TOP));
	*hand_slot(35) = hand_pc(0);
	begin_at(8);
	ck_assert_uint_eq(walk(&result), 4 + 1 + 6 + 1 + 6 + 1);
	ck_assert_int_eq(result, 0);
	hand_close();
}
END_TEST

/* ---- memory that cannot be read ---------------------------------------------------------------- */

static char *pages; /* only the first can be read */

static void open_pages(void)
{
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(pages != MAP_FAILED);
	ck_assert_int_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	open_hostile(false);
}

static void close_pages(void)
{
	munmap(pages, 2 * PAGE);
	hand_close();
}

/* Two frames; the second one's words lie `beyond` the page, in part or as a whole. */
START_TEST(the_next_page)
{
	int result;
	open_pages();
	for (uintptr_t beyond = 0; beyond < 8; beyond++) {
		const uintptr_t fp = (uintptr_t)pages + PAGE - 16 + beyond;
		const uintptr_t sp = (uintptr_t)pages + 64;
		const struct incstack_top top = {.pc = hand_pc(2), .sp = sp, .fp = sp};
		((uintptr_t *)sp)[0] = fp;
		((uintptr_t *)sp)[1] = hand_pc(1);
		((uintptr_t *)(pages + PAGE))[-1] = hand_pc(0);
		((uintptr_t *)(pages + PAGE))[-2] = 0;
		begin_anywhere(&top);
		ck_assert_uint_eq(walk(&result), beyond ? 2 : 3);
	}
	close_pages();
}
END_TEST

/* Registers of a signal frame that lie there. */
START_TEST(a_signal_frame_at_the_end)
{
	enum { BYTES = (RIP + 1) * SIZE };
	int result;
	open_pages();
	hand.rules[KERNEL] = (struct incstack_rule){.kind = INCSTACK_RULE_SIGNAL};
	for (uintptr_t beyond = 0; beyond <= BYTES; beyond += SIZE) {
		const uintptr_t sp = (uintptr_t)pages + PAGE - BYTES + beyond;
		const struct incstack_top top = {.pc = hand_pc(KERNEL), .sp = sp};
		if (beyond == 0)
			put_signal((uintptr_t *)sp, 3, hand_sp(3), hand_fp(3));
		begin_anywhere(&top);
		ck_assert_uint_eq(walk(&result), beyond ? 1 : 1 + 4);
		ck_assert_int_eq(result, beyond ? INCSTACK_EUNWIND : 0);
	}
	close_pages();
}
END_TEST

/* The stack pointer itself, for each kind of rule. */
START_TEST(a_top_that_cannot_be_read)
{
	static const struct incstack_rule rules[] = {{INCSTACK_RULE_SP, 64, 8, 0, 0},
						     {INCSTACK_RULE_SP, 64, 16, 32, 0},
						     {INCSTACK_RULE_FP_DEREF, 8, 8, 0, 0},
						     {INCSTACK_RULE_SIGNAL, 0, 0, 0, 0}};
	const uintptr_t places[] = {0, 8, (uintptr_t)1 << 47, UINTPTR_MAX - 7, 0};
	int result;
	for (unsigned i = 0; i < 4 * 5; i++) {
		open_pages();
		const uintptr_t sp = i % 5 == 4 ? (uintptr_t)pages + PAGE : places[i % 5];
		const struct incstack_top top = {.pc = hand_pc(TOP), .sp = sp, .fp = sp};
		hand.rules[TOP] = rules[i / 5];
		begin_anywhere(&top);
		ck_assert_uint_eq(walk(&result), 1);
		ck_assert_int_eq(result, INCSTACK_EUNWIND);
		close_pages();
	}
}
END_TEST

/* What was readable may be gone when the walk begins again. */
START_TEST(begins_in_memory_that_is_gone)
{
	int result;
	open_pages();
	const uintptr_t sp = (uintptr_t)pages + 64;
	const struct incstack_top top = {.pc = hand_pc(2), .sp = sp, .fp = sp};
	((uintptr_t *)sp)[0] = 0;
	((uintptr_t *)sp)[1] = hand_pc(0);
	begin_anywhere(&top);
	ck_assert_uint_eq(walk(&result), 2);
	ck_assert_int_eq(mprotect(pages, PAGE, PROT_NONE), 0);
	begin_anywhere(&top);
	ck_assert_uint_eq(walk(&result), 1);
	close_pages();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frames, limits");
	TCase *tc = tcase_create("depth");
	tcase_add_loop_test(tc, any_depth, 0, 2);
	suite_add_tcase(suite, tc);
	tc = tcase_create("no base");
	tcase_add_loop_test(tc, bad_frame_pointers, 0, 2);
	tcase_add_loop_test(tc, bad_rules, 0, 2);
	tcase_add_loop_test(tc, signal_frames_in_a_loop, 0, 2);
	tcase_add_loop_test(tc, signal_frames_that_lead_down, 0, 2);
	suite_add_tcase(suite, tc);
	tc = tcase_create("unreadable");
	tcase_add_test(tc, the_next_page);
	tcase_add_test(tc, a_signal_frame_at_the_end);
	tcase_add_test(tc, a_top_that_cannot_be_read);
	tcase_add_test(tc, begins_in_memory_that_is_gone);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
