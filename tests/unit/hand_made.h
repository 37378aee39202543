/* SPDX-License-Identifier: MIT
 *
 * A stack laid out by hand, for tests that must know which frame gets which barrier. Frames have
 * one size and a frame pointer, and are numbered from the base. Each has its own code address,
 * whose rule a test may change.
 */
#ifndef HAND_MADE_H
#define HAND_MADE_H

#include <check.h>
#include <stdlib.h>

#include "trace/barrier.h"
#include "trace/hooks.h"
#include "trace/stack.h"

enum { HAND_FRAMES = 64, HAND_UNIT = 8 * sizeof(uintptr_t), HAND_WORDS = 8 * (HAND_FRAMES + 64) };
#define HAND_CODE ((uintptr_t)0x100000)

static struct hand {
	struct incstack_runtime *rt;
	struct incstack_stack *s;
	uintptr_t words[HAND_WORDS];
	struct incstack_rule rules[HAND_FRAMES];
	unsigned samples;
	size_t live; /* bytes that were allocated */
	bool no_memory;
} hand;

static const struct incstack_rule hand_fp_rule = {INCSTACK_RULE_FP, 16, 8, 16, 0};
/* The same frame, but the fast paths cannot handle its rule. */
static const struct incstack_rule hand_deref_rule = {INCSTACK_RULE_FP_DEREF, -8, 8, 0, 0};

static inline uintptr_t hand_high(void)
{
	return (uintptr_t)(hand.words + HAND_WORDS);
}

/* The position of frame n, as the return slot of its callee holds it. */
static inline uintptr_t hand_pc(unsigned n)
{
	return HAND_CODE + n * HAND_UNIT + 8;
}

static inline uintptr_t hand_fp(unsigned n)
{
	return hand_high() - HAND_UNIT * (n + 1);
}

static inline uintptr_t *hand_slot(unsigned n)
{
	return (uintptr_t *)hand_fp(n) + 1;
}

/* The stack pointer of the frame at its call. */
static inline uintptr_t hand_sp(unsigned n)
{
	return (uintptr_t)(hand_slot(n + 1) + 1);
}

/* ---- the embedder ------------------------------------------------------------------ */

static inline int hand_find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	uintptr_t n = (address - HAND_CODE) / HAND_UNIT;
	(void)context;
	if (n >= HAND_FRAMES)
		return INCSTACK_EUNWIND;
	*rule = hand.rules[n];
	return 0;
}

static inline int hand_decode(void *context, const struct incstack_frame *frame,
			      struct incstack_virtual_frame *out, int max)
{
	(void)context;
	ck_assert_int_eq(max, INCSTACK_VIRTUAL_MAX);
	out[0] = (struct incstack_virtual_frame){.function = (frame->pc - HAND_CODE) / HAND_UNIT};
	return 1;
}

static inline void *hand_allocate(void *context, size_t bytes)
{
	(void)context;
	if (hand.no_memory)
		return NULL;
	hand.live += bytes;
	return malloc(bytes);
}

static inline void hand_release(void *context, void *memory, size_t bytes)
{
	(void)context;
	hand.live -= bytes;
	free(memory);
}

static inline struct incstack_embedder hand_embedder(void)
{
	return (struct incstack_embedder){.size = sizeof(struct incstack_embedder),
					  .code.find_rule = hand_find_rule,
					  .code.decode = hand_decode,
					  .memory.allocate = hand_allocate,
					  .memory.release = hand_release};
}

/* ---- begin and end ------------------------------------------------------------------ */

/* All frames lie there. The samples say which of them exist. */
static inline void hand_lay_out(void)
{
	for (unsigned n = 0; n < HAND_FRAMES; n++) {
		hand.rules[n] = hand_fp_rule;
		*(uintptr_t *)hand_fp(n) = n ? hand_fp(n - 1) : 0;
		((uintptr_t *)hand_fp(n))[-1] = hand_fp(n) + 16;
		*hand_slot(n) = n ? hand_pc(n - 1) : 0;
	}
	hand.rules[0] = (struct incstack_rule){.kind = INCSTACK_RULE_END};
	hand.samples = 0;
	hand.no_memory = false;
}

static inline struct incstack_stack *hand_stack(void)
{
	struct incstack_stack *s;
	ck_assert_int_eq(incstack_stack_create(hand.rt, (uintptr_t)hand.words, hand_high(), &s), 0);
	return s;
}

static inline void hand_open_with(struct incstack_options options,
				  const struct incstack_embedder *embedder)
{
	options.size = sizeof(options);
	options.embedder = embedder;
	hand_lay_out();
	ck_assert_int_eq(incstack_runtime_create(&options, &hand.rt), 0);
	hand.s = hand_stack();
}

static inline void hand_open(struct incstack_options options)
{
	const struct incstack_embedder embedder = hand_embedder();
	hand_open_with(options, &embedder);
}

static inline struct incstack_stats hand_stats(void)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_stack_stats(hand.s, &stats), 0);
	return stats;
}

static inline void hand_close(void)
{
	ck_assert_int_eq(incstack__stack_verify(hand.s), 0);
	ck_assert_uint_eq(incstack__stack_broken(hand.s), 0);
	incstack_stack_destroy(hand.s);
	incstack_runtime_destroy(hand.rt);
	ck_assert_uint_eq(hand.live, 0);
}

/* ---- the program ---------------------------------------------------------------------- */

static inline struct incstack_top hand_top(unsigned n, uint32_t flags)
{
	return (struct incstack_top){
		.pc = hand_pc(n), .sp = hand_sp(n), .fp = hand_fp(n), .flags = flags};
}

/* Frame n is on top. */
static inline void hand_sample(unsigned n)
{
	const struct incstack_top top = hand_top(n, 0);
	ck_assert_int_eq(incstack_stack_sample(hand.s, n, 1, &top), 0);
	hand.samples++;
}

static inline bool hand_patched(unsigned n)
{
	return is_thunk(*hand_slot(n));
}

/* Frame n returns, as the processor would do it, and nothing uses its slot any more. The library
 * could not see that, because the test runs on another stack. Returns where its caller continues. */
static inline uintptr_t hand_return(unsigned n)
{
	uintptr_t word = *hand_slot(n);
	if (!is_thunk(word))
		return word;
	uintptr_t resume = incstack__returned(thunk_cell(word), hand_fp(n - 1), 0);
	incstack__limbo_release(hand.s, hand_sp(n - 1));
	return resume;
}

/* From o on the trace shows the frames from n to the base. */
static inline void hand_shows_all(const struct incstack_frame_object *o, unsigned n)
{
	for (;; o = o->parent, n--) {
		ck_assert_ptr_nonnull(o);
		ck_assert_uint_eq(o->function, n);
		ck_assert_uint_eq(o->address, hand_sp(n));
		ck_assert(!(o->flags & (INCSTACK_OBJECT_GAP | INCSTACK_OBJECT_TRUNCATED |
					INCSTACK_OBJECT_RAW)));
		ck_assert(o->flags & INCSTACK_OBJECT_FILLED);
		if (n == 0)
			break;
	}
	ck_assert(o->flags & INCSTACK_OBJECT_BASE);
	ck_assert_ptr_null(o->parent);
}

static inline struct incstack_tree *hand_retrieve(void)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(hand.s, &tree), 0);
	ck_assert_uint_eq(tree->count, hand.samples);
	ck_assert_int_eq(incstack__stack_verify(hand.s), 0);
	hand.samples = 0;
	return tree;
}

/* Every trace begins with the frame that its sample was taken in, and is complete. */
static inline void hand_all_complete(void)
{
	struct incstack_tree *tree = hand_retrieve();
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		hand_shows_all(t->top, (unsigned)t->id);
	ck_assert_uint_eq(tree->truncated, 0);
	incstack_tree_release(tree);
}

#endif
