/* SPDX-License-Identifier: MIT
 *
 * Tests embedders that break the rules of their own table: decode returns more than there is
 * room for; a rule leads below the frame, out of the stack or to an unaligned word; the place of
 * a return address is wrong; arm always refuses. The trace ends there, marked and counted.
 * Nothing outside the frame is read or written, and no memory or thunk is used up.
 */
#include "hand_made.h"
#include "run_suite.h"

enum { TOP = 20 };

/* ---- decode ---------------------------------------------------------------------------- */

static int decoded; /* what decode returns */

static int decode_all(void *context, const struct incstack_frame *frame,
		      struct incstack_virtual_frame *out, int max)
{
	(void)context;
	for (int i = 0; i < max; i++)
		out[i] = (struct incstack_virtual_frame){.function = frame->pc, .position = i};
	return decoded;
}

static unsigned objects_of(const struct incstack_frame_object *o, unsigned n)
{
	unsigned count = 0;
	for (; o && o->address == hand_sp(n); o = o->parent, count++)
		if (!(o->flags & INCSTACK_OBJECT_RAW)) {
			ck_assert_uint_eq(o->function, hand_pc(n));
			ck_assert_int_eq(o->position, (int32_t)count);
		}
	return count;
}

static const struct {
	int result;
	unsigned frames;
	bool raw;
} answers[] = {
	{INCSTACK_VIRTUAL_MAX, INCSTACK_VIRTUAL_MAX, false},
	{INCSTACK_VIRTUAL_MAX + 1, INCSTACK_VIRTUAL_MAX, false},
	{2 * INCSTACK_VIRTUAL_MAX, INCSTACK_VIRTUAL_MAX, false},
	{0, 1, true},
	{-1, 1, true},
	{INT32_MIN, 1, true},
};
enum { ANSWERS = sizeof(answers) / sizeof(*answers) };

/* At retrieve, or when the frame is captured. */
START_TEST(decode_returns_anything)
{
	const int answer = _i % ANSWERS;
	struct incstack_embedder embedder = hand_embedder();
	struct incstack_tree *tree;
	embedder.code.decode = decode_all;
	hand_open_with((struct incstack_options){.distance = 3}, &embedder);
	for (unsigned n = 1; n <= TOP && _i >= ANSWERS; n++)
		hand.rules[n].flags = INCSTACK_RULE_DECODE_NOW;
	ck_assert_int_eq(incstack_stack_reserve(hand.s, 1 << 20), 0);
	decoded = answers[answer].result;
	hand_sample(TOP);
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	tree = hand_retrieve();
	const struct incstack_frame_object *o = tree->traces->top;
	for (unsigned n = TOP; o; n--) {
		ck_assert_int_eq(!!(o->flags & INCSTACK_OBJECT_RAW), answers[answer].raw);
		ck_assert_uint_eq(objects_of(o, n), answers[answer].frames);
		for (unsigned i = 0; i < answers[answer].frames; i++)
			o = o->parent;
	}
	ck_assert_uint_eq(tree->truncated, 0);
	ck_assert_uint_eq(tree->objects, (TOP + 1) * answers[answer].frames);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* ---- rules ----------------------------------------------------------------------------- */

enum { LATE = INCSTACK_RULE_DECODE_NOW, UP = 8 * HAND_UNIT };

/* Each rule leads from TOP, whose frame pointer lies `fp` bytes away from its place, to a word that
 * does not belong to the frame. */
static const struct {
	struct incstack_rule rule;
	int fp;
} bad_rules[] = {
	/* below the frame: the frame pointer points to callees that returned long ago */
	{{INCSTACK_RULE_FP, 16, 8, 16, 0}, -2 * HAND_UNIT},
	{{INCSTACK_RULE_FP, 24, 16, 24, 0}, -2 * HAND_UNIT},
	{{INCSTACK_RULE_FP, 24, 8, 24, 0}, -2 * HAND_UNIT},
	{{INCSTACK_RULE_FP, 16, 8, 16, LATE}, -2 * HAND_UNIT},
	{{INCSTACK_RULE_FP_DEREF, -8, 8, 0, 0}, -2 * HAND_UNIT},
	{{INCSTACK_RULE_FP_DEREF, -2 * HAND_UNIT - 8, 8, 0, 0}, 0}, /* as far above the stack */
	{{INCSTACK_RULE_SP, -2 * HAND_UNIT, 8, 0, 0}, 0},
	{{INCSTACK_RULE_SP, -2 * HAND_UNIT, 8, 0, LATE}, 0},
	{{INCSTACK_RULE_SP, 0, 16, 0, LATE}, 0},
	/* the return slot lies in the frame, the saved frame pointer does not */
	{{INCSTACK_RULE_FP, 16, 8, 16 + UP, 0}, 0},
	{{INCSTACK_RULE_FP, 16, 8, 16 + UP, LATE}, 0},
	{{INCSTACK_RULE_FP_DEREF, -8, 8, UP, 0}, 0},
	/* outside the stack */
	{{INCSTACK_RULE_FP, 16, 8, 16, 0}, 1 << 20},
	{{INCSTACK_RULE_FP, 24, 8, 24, 0}, 1 << 20},
	{{INCSTACK_RULE_FP, 16, 8, 16, LATE}, 1 << 20},
	{{INCSTACK_RULE_FP_DEREF, 1 << 20, 8, 0, 0}, 0},
	/* not a word */
	{{INCSTACK_RULE_FP, 16, 8, 16, LATE}, 4},
	{{INCSTACK_RULE_FP_DEREF, -4, 8, 0, 0}, 0},
	/* an unknown kind, or a place of the return address that the library cannot express */
	{{17, 16, 8, 16, 0}, 0},
	{{INCSTACK_RULE_FP, 16, 2048, 16, 0}, 0},
	{{INCSTACK_RULE_FP, 16, 4, 16, 0}, 0},
	{{INCSTACK_RULE_FP, 16, 8, 12, 0}, 0},
};
enum { BAD_RULES = sizeof(bad_rules) / sizeof(*bad_rules) };

/* A frame pointer that leads nowhere, with the default rule, is how the outermost frame looks. */
static bool ends_a_chain(struct incstack_rule r)
{
	return r.kind == INCSTACK_RULE_FP && r.cfa_offset == 16 && r.ra_offset == 8 &&
	       r.fp_offset == 16 && !r.flags;
}

/* As the top, and as a caller. A frame below the stack pointer looks like one: a walk that reads it
 * goes on to the base. */
START_TEST(rule_leads_elsewhere)
{
	const int bad = _i % BAD_RULES;
	const unsigned below = _i >= BAD_RULES;
	const bool base = ends_a_chain(bad_rules[bad].rule);
	struct incstack_tree *tree;
	hand_open((struct incstack_options){.distance = (unsigned)(_i % 2) + 1});
	hand.rules[TOP] = bad_rules[bad].rule;
	struct incstack_top top = hand_top(TOP + below, 0);
	if (below)
		*(uintptr_t *)hand_fp(TOP + 1) += (uintptr_t)(intptr_t)bad_rules[bad].fp;
	else
		top.fp += (uintptr_t)(intptr_t)bad_rules[bad].fp;
	for (unsigned n = TOP + 1; n < HAND_FRAMES && !below; n++) {
		*hand_slot(n) = hand_pc(0); /* a walk that looks there finds the base */
		((uintptr_t *)hand_fp(n))[-1] = hand_fp(TOP) + 16; /* or goes on */
	}
	ck_assert_int_eq(incstack_stack_sample(hand.s, 0, 1, &top), 0);
	hand.samples++;
	tree = hand_retrieve();
	const struct incstack_frame_object *o = tree->traces->top;
	if (below)
		o = o->parent;
	ck_assert_uint_eq(o->address, hand_sp(TOP));
	ck_assert_int_eq(!!(o->flags & INCSTACK_OBJECT_TRUNCATED), !base);
	ck_assert_int_eq(!!(o->flags & INCSTACK_OBJECT_BASE), base);
	ck_assert_ptr_null(o->parent);
	ck_assert_uint_eq(tree->truncated, !base);
	ck_assert_uint_eq(tree->objects, below + 1);
	ck_assert_uint_eq(hand_stats().truncated, !base);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* The largest distance that fits between a frame's CFA and its return slot. */
START_TEST(furthest_return_slot)
{
	enum { FURTHEST = 2040 };
	hand_open((struct incstack_options){.distance = 1});
	struct incstack_top top = hand_top(TOP, 0);
	hand.rules[TOP] = (struct incstack_rule){INCSTACK_RULE_SP, FURTHEST + 8, FURTHEST, 0, 0};
	top.sp = hand_sp(1) - FURTHEST - 8;
	top.fp = hand_fp(1);
	((uintptr_t *)top.sp)[1] = hand_pc(1);
	ck_assert_int_eq(incstack_stack_sample(hand.s, 0, 1, &top), 0);
	hand.samples++;
	ck_assert_uint_eq(((uintptr_t *)top.sp)[1], hand_pc(1)); /* a slot whose place is not known
	                                                          * */
	ck_assert_uint_eq(*hand_slot(2), hand_pc(1));
	struct incstack_tree *tree = hand_retrieve();
	hand_shows_all(tree->traces->top->parent, 1);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* A return address that is no word of the stack's is read, but no barrier comes there: the
 * next frame gets it. */
START_TEST(misaligned_slot_is_left_alone)
{
	const uintptr_t at = hand_fp(TOP) + 4, saved = hand_fp(TOP - 1), pc = hand_pc(TOP - 1);
	hand_open((struct incstack_options){.distance = 1});
	if (_i) /* not for the fast paths */
		hand.rules[TOP - 1] = hand_deref_rule;
	struct incstack_top top = hand_top(TOP, 0);
	top.fp = at;
	memcpy((char *)at, &saved, sizeof(saved));
	memcpy((char *)at + sizeof(pc), &pc, sizeof(pc));
	for (int i = 0; i < 2; i++) { /* rules are unknown first */
		ck_assert_int_eq(incstack_stack_sample(hand.s, 0, 1, &top), 0);
		hand.samples++;
		ck_assert_int_eq(memcmp((char *)at + sizeof(pc), &pc, sizeof(pc)), 0);
		ck_assert(hand_patched(TOP - 1));
	}
	struct incstack_tree *tree = hand_retrieve();
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		hand_shows_all(t->top->parent->parent, TOP - 2);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* ---- arm ------------------------------------------------------------------------------- */

enum { DEPTH = 30, TRIES = 500, THUNKS = 3 };
static bool arm_refuses;
static uintptr_t armed;

static int to_caller(void *context, void *identity, struct incstack_frame *frame)
{
	(void)context;
	(void)identity;
	if (frame->sp == 1)
		return 0;
	frame->sp--;
	frame->pc = hand_pc((unsigned)frame->sp);
	frame->flags = frame->sp == armed ? INCSTACK_FRAME_ARMED : 0;
	return 1;
}

static int arm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	if (arm_refuses)
		return INCSTACK_EUNWIND;
	armed = frame;
	return 0;
}

static void disarm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	ck_assert_uint_eq(frame, armed);
	armed = 0;
}

static void sample_named(void)
{
	const struct incstack_top top = {.pc = hand_pc(DEPTH), .sp = DEPTH};
	ck_assert_int_eq(incstack_stack_sample(hand.s, 0, 1, &top), 0);
	hand.samples++;
}

static void open_by_name(void)
{
	static const struct incstack_stack_walker walker = {sizeof(walker), to_caller, arm, disarm,
							    NULL};
	const struct incstack_embedder embedder = hand_embedder();
	hand_open_with((struct incstack_options){.distance = 1, .thunk_limit = THUNKS}, &embedder);
	incstack_stack_destroy(hand.s);
	ck_assert_int_eq(incstack_stack_create_embedder(hand.rt, &walker, NULL, &hand.s), 0);
	armed = 0;
}

/* A barrier is requested for every frame, each time, in vain. No object and no thunk is lost by it.
 * */
START_TEST(arm_refuses_for_ever)
{
	open_by_name();
	arm_refuses = true;
	for (uint64_t i = 1; i <= TRIES; i++) {
		struct incstack_tree *tree;
		sample_named();
		ck_assert_uint_eq(hand_stats().no_thunk, i * (DEPTH - 1));
		tree = hand_retrieve();
		ck_assert_uint_eq(tree->objects, DEPTH);
		ck_assert_uint_eq(tree->truncated, 0);
		incstack_tree_release(tree);
	}
	ck_assert_uint_eq(hand_stats().planted, 0);
	arm_refuses = false;
	sample_named();
	ck_assert_uint_eq(hand_stats().planted, 1);
	ck_assert_uint_eq(hand_stats().no_thunk, TRIES * (DEPTH - 1));
	struct incstack_tree *tree = hand_retrieve();
	ck_assert_uint_eq(tree->objects, DEPTH);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* Frames that claim to be armed, but are unknown, are treated as ordinary frames. */
START_TEST(armed_by_nobody)
{
	open_by_name();
	arm_refuses = true;
	armed = DEPTH / 2;
	sample_named();
	struct incstack_tree *tree = hand_retrieve();
	ck_assert_uint_eq(tree->objects, DEPTH);
	ck_assert_uint_eq(tree->truncated, 0);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bad embedder");
	TCase *tests = tcase_create("breaks its own rules");
	tcase_add_loop_test(tests, decode_returns_anything, 0, 2 * ANSWERS);
	tcase_add_loop_test(tests, rule_leads_elsewhere, 0, 2 * BAD_RULES);
	tcase_add_test(tests, furthest_return_slot);
	tcase_add_loop_test(tests, misaligned_slot_is_left_alone, 0, 2);
	tcase_add_test(tests, arm_refuses_for_ever);
	tcase_add_test(tests, armed_by_nobody);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
