/* SPDX-License-Identifier: MIT
 *
 * A stack that is an array, and a program that calls, returns, unwinds and samples on it at
 * random. Some frames have a frame pointer, some decode to two functions, and some hold their
 * position themselves. The program notes what each sample must show, and compares that at
 * retrieve.
 */
#ifndef SIMULATED_H
#define SIMULATED_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "trace/barrier.h"
#include "trace/hooks.h"
#include "trace/shared.h"
#include "trace/stack.h"

/* Check makes a system call for each assertion that holds. There are millions of them here. */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...) \
	((expr) ? (void)0 \
		: _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", \
				    ##__VA_ARGS__))

enum {
	SIM_WORDS = 1 << 16,
	SIM_DEPTH = 120,
	SIM_TRACES = 48,
	SIM_METHODS = 97,
	SIM_CALLS = 64, /* positions of a function */
};
#define SIM_CODE ((uintptr_t)0x100000)
#define SIM_HANDLER ((uintptr_t)0x9000000) /* a deoptimization handler, by depth */

/* What the program knows of a frame. */
struct sim_frame {
	unsigned function;
	uintptr_t pc; /* of its call, or where it stands */
	uintptr_t sp, fp;
	uintptr_t slot;   /* its return slot */
	uintptr_t resume; /* what the slot would hold without the library */
};

struct sim_record {
	unsigned count;
	struct incstack_virtual_frame frames[2 * SIM_DEPTH];
};

static struct sim {
	struct incstack_runtime *rt;
	struct incstack_stack *s;
	uintptr_t words[SIM_WORDS];
	struct sim_frame frames[SIM_DEPTH];
	unsigned depth;
	struct sim_record records[SIM_TRACES + 1];
	unsigned pending; /* samples that were taken and not retrieved */
	uint64_t taken, refused, missing;
	uint64_t random;
	bool careless;   /* exceptions are not announced */
	bool inside;     /* a sample, a return: nothing may be allocated (I7) */
	unsigned layout; /* of the frames; a new one stands for other code */
	unsigned asked;  /* for rules */
	/* These survive sim_open: which allocations fail, by number or by size. */
	unsigned fail_at, fail_until;
	size_t fail_above;
	unsigned allocations, live;
	bool by_registers; /* samples are taken by incstack__sample_caller */
	bool few;      /* a few functions, so that stacks come back; most have no frame pointer */
	bool usual;    /* without deoptimization, so most samples and returns take the fast path */
	bool at_polls; /* samples make room by themselves */
} sim;

static uint64_t sim_below(uint64_t n)
{
	sim.random ^= sim.random << 13;
	sim.random ^= sim.random >> 7;
	sim.random ^= sim.random << 17;
	return sim.random % n;
}

/* ---- the code of the functions ------------------------------------------------------ */

static inline bool sim_uses_fp(unsigned function)
{
	return function % 3 != 0 || function % 7 == 0;
}

static inline bool sim_position_inside(unsigned function)
{
	return function % 7 == 0;
}

static inline uintptr_t sim_locals(unsigned function)
{
	return 1 + (function + sim.layout) % 5;
}

static inline unsigned sim_method_at(uintptr_t pc)
{
	return (unsigned)((pc - SIM_CODE) / SIM_CALLS);
}

static int sim_find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	unsigned function = sim_method_at(address);
	(void)context;
	sim.asked++;
	if (function >= SIM_METHODS)
		return INCSTACK_EUNWIND;
	*rule = (struct incstack_rule){INCSTACK_RULE_FP, 16, 8, 16, 0};
	if (sim_position_inside(function))
		rule->flags = INCSTACK_RULE_DECODE_NOW;
	if (!sim_uses_fp(function))
		*rule = (struct incstack_rule){INCSTACK_RULE_SP,
					       (int32_t)(8 * sim_locals(function) + 8), 8, 0, 0};
	return 0;
}

static int sim_describe(uintptr_t pc, uintptr_t fp, struct incstack_virtual_frame *out)
{
	unsigned function = sim_method_at(pc);
	int32_t position = (int32_t)(pc % SIM_CALLS);
	if (sim_position_inside(function))
		position = (int32_t)((uintptr_t *)fp)[-1];
	out[0] = (struct incstack_virtual_frame){.function = function, .position = position};
	out[1] = (struct incstack_virtual_frame){.function = function + 1000,
						 .position = position / 2};
	return function % 4 == 1 ? 2 : 1;
}

static int sim_decode(void *context, const struct incstack_frame *frame,
		      struct incstack_virtual_frame *out, int max)
{
	(void)context;
	ck_assert_int_ge(max, 2);
	return sim_describe(frame->pc, frame->fp, out);
}

static uintptr_t sim_logical_pc(void *context, uintptr_t slot, uintptr_t pc)
{
	(void)context;
	(void)slot;
	return pc >= SIM_HANDLER ? sim.frames[pc - SIM_HANDLER].pc : pc;
}

static void *sim_allocate(void *context, size_t bytes)
{
	(void)context;
	ck_assert(!sim.inside);
	unsigned number = ++sim.allocations;
	if (sim.fail_at && number >= sim.fail_at && number < sim.fail_until)
		return NULL;
	if (sim.fail_above && bytes > sim.fail_above)
		return NULL;
	sim.live++;
	return malloc(bytes);
}

static void sim_release(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)bytes;
	sim.live--;
	free(memory);
}

/* ---- the program ------------------------------------------------------------------ */

static inline struct sim_frame *sim_top(void)
{
	return &sim.frames[sim.depth - 1];
}

static inline unsigned sim_choose(void)
{
	if (!sim.few)
		return (unsigned)sim_below(SIM_METHODS);
	return sim_below(32) == 0 ? 1 : 3 + 3 * (unsigned)sim_below(6);
}

/* A frame runs on, so its position changes. */
static inline void sim_stand(struct sim_frame *f)
{
	f->pc = SIM_CODE + f->function * SIM_CALLS + 1 + sim_below(sim.few ? 2 : SIM_CALLS - 1);
	if (sim_position_inside(f->function))
		((uintptr_t *)f->fp)[-1] = sim_below(1000);
}

static inline void sim_call(void)
{
	const struct sim_frame *caller = sim.depth ? sim_top() : NULL;
	uintptr_t *sp = caller ? (uintptr_t *)caller->sp : sim.words + SIM_WORDS;
	struct sim_frame f = {.function = sim_choose()};
	*--sp = f.resume = caller ? caller->pc : 0;
	f.slot = (uintptr_t)sp;
	f.fp = caller ? caller->fp : 0;
	if (sim_uses_fp(f.function)) {
		*--sp = f.fp;
		f.fp = (uintptr_t)sp;
	}
	f.sp = (uintptr_t)(sp - sim_locals(f.function));
	sim.frames[sim.depth++] = f;
	sim_stand(sim_top());
}

/* Goes through a thunk as the processor would. What comes out must be what went in. */
static inline void sim_return(void)
{
	struct sim_frame *f = sim_top(), *caller = f - 1;
	uintptr_t word = *(uintptr_t *)f->slot;
	sim.inside = true;
	if (is_thunk(word)) {
		word = incstack__returned(thunk_cell(word), caller->fp, 0);
		/* The library cannot see that the slot is dead: the test runs on another stack. */
		incstack__limbo_release(sim.s, f->slot + sizeof(word));
	}
	sim.inside = false;
	ck_assert_uint_eq(word, f->resume);
	sim.depth--;
	sim_stand(sim_top());
}

static inline void sim_unwind(unsigned count)
{
	count = count < sim.depth ? count : sim.depth - 1;
	struct sim_frame *target = sim_top() - count;
	if (!sim.careless)
		ck_assert_int_eq(incstack_stack_unwinding_to(sim.s, target->sp), 0);
	sim.depth -= count;
	sim_stand(target);
}

/* Deoptimization of any frame: its callee will return into a handler. */
static inline void sim_deoptimize(void)
{
	unsigned callee = 1 + (unsigned)sim_below(sim.depth - 1);
	struct sim_frame *f = &sim.frames[callee];
	f->resume = SIM_HANDLER + callee - 1;
	ck_assert_int_eq(incstack_stack_slot_write(sim.s, (uintptr_t *)f->slot, f->resume), 0);
	ck_assert_uint_eq(incstack_slot_read((uintptr_t *)f->slot), f->resume);
}

/* Takes a sample of the frame top, at pc; a refused one is counted. */
static inline int sim_sample_of(const struct sim_frame *top, uintptr_t pc)
{
	struct sim_record *r = &sim.records[sim.pending];
	struct incstack_top t = {.pc = pc,
				 .sp = top->sp,
				 .fp = top->fp,
				 .flags = sim.usual ? 0 : INCSTACK_TOP_EXACT};
	sim.inside = !sim.at_polls;
	int error = sim.by_registers
			    ? incstack__sample_caller(sim.s, sim.pending, pc, t.sp, t.fp, 0)
		    : sim.at_polls ? incstack_stack_sample_at_poll(sim.s, sim.pending, 1, &t)
				   : incstack_stack_sample(sim.s, sim.pending, 1, &t);
	sim.inside = false;
	if (error) {
		sim.refused++;
		return error;
	}
	r->count = 0;
	for (const struct sim_frame *f = top; f >= sim.frames; f--)
		r->count += (unsigned)sim_describe(f->pc, f->fp, &r->frames[r->count]);
	sim.pending++;
	sim.taken++;
	return 0;
}

static inline int sim_sample(void)
{
	return sim_sample_of(sim_top(), sim_top()->pc);
}

/* A trace shows what the program noted, or a part of it that is marked. */
static inline void sim_compare(const struct incstack_trace *t)
{
	const struct sim_record *r = &sim.records[t->id];
	unsigned i = 0;
	bool truncated = false;
	for (const struct incstack_frame_object *o = t->top; o; o = o->parent, i++) {
		truncated = o->flags & INCSTACK_OBJECT_TRUNCATED;
		ck_assert_uint_lt(i, r->count);
		ck_assert_int_eq(!o->parent, truncated || o->flags & INCSTACK_OBJECT_BASE);
		if (truncated && o->flags & INCSTACK_OBJECT_RAW)
			continue;
		ck_assert_uint_eq(o->function, r->frames[i].function);
		ck_assert_int_eq(o->position, r->frames[i].position);
	}
	ck_assert(truncated || i == r->count);
	sim.missing += r->count - i;
}

static inline int sim_retrieve(void)
{
	struct incstack_tree *tree;
	if (sim.careless) /* no code runs on this stack, so only a sample can notice */
		sim_sample();
	int error = incstack_stack_retrieve(sim.s, &tree);
	ck_assert_int_eq(incstack__stack_verify(sim.s), 0);
	if (error)
		return error;
	ck_assert_uint_eq(tree->count, sim.pending);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		sim_compare(t);
	incstack_tree_release(tree);
	sim.pending = 0;
	return 0;
}

static inline void sim_step(void)
{
	uint64_t dice = sim_below(100);
	if (sim.depth < 2 || (dice < 38 && sim.depth < SIM_DEPTH))
		sim_call();
	else if (dice < 74)
		sim_return();
	else if (dice < 77)
		sim_unwind((unsigned)sim_below(9));
	else if (dice < 80 && !sim.usual)
		sim_deoptimize();
	else if (sim.pending < SIM_TRACES)
		sim_sample();
}

static inline struct incstack_stats sim_stats(void)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_stack_stats(sim.s, &stats), 0);
	return stats;
}

static inline void sim_nothing_is_lost(void)
{
	struct incstack_stats stats = sim_stats();
	ck_assert_uint_eq(stats.truncated, 0);
	ck_assert_uint_eq(stats.stale, 0);
	ck_assert_uint_eq(stats.samples, sim.taken);
	ck_assert_uint_eq(sim.refused, 0);
	ck_assert_uint_eq(sim.missing, 0);
}

/* ---- begin and end ---------------------------------------------------------------- */

static const struct incstack_embedder sim_embedder = {
	.size = sizeof(sim_embedder),
	.code.find_rule = sim_find_rule,
	.code.decode = sim_decode,
	.code.logical_pc = sim_logical_pc,
	.memory.allocate = sim_allocate,
	.memory.release = sim_release,
};

enum { SIM_VARIANTS = 15, SIM_PATCHED = 5 };

/* Distances and modes. The first SIM_PATCHED are those of mode patch. */
static inline struct incstack_options sim_variant(int i)
{
	static const uint32_t distances[] = {1, 2, 4, 31, 0};
	static const uint32_t modes[] = {INCSTACK_MODE_PATCH, INCSTACK_MODE_VALIDATE,
					 INCSTACK_MODE_FULL};
	return (struct incstack_options){.distance = distances[i % 5], .mode = modes[i / 5]};
}

/* The stack with one frame on it. Options without a table get the one above. */
static inline int sim_open(struct incstack_options options)
{
	memset(&sim, 0, offsetof(struct sim, fail_at));
	sim.random = 88172645463325252u;
	options.size = sizeof(options);
	struct incstack_embedder embedder = sim_embedder;
	if (sim.usual)
		embedder.code.logical_pc = NULL;
	options.embedder = &embedder;
	int error = incstack_runtime_create(&options, &sim.rt);
	if (error)
		return error;
	error = incstack_stack_create(sim.rt, (uintptr_t)sim.words,
				      (uintptr_t)(sim.words + SIM_WORDS), &sim.s);
	if (error) {
		incstack_runtime_destroy(sim.rt);
		return error;
	}
	if (sim.by_registers)
		ck_assert_int_eq(incstack__stack_remember(sim.s), 0);
	sim_call();
	return 0;
}

static inline void sim_close(void)
{
	ck_assert_int_eq(incstack__stack_verify(sim.s), 0);
	ck_assert_uint_eq(incstack__stack_broken(sim.s), 0);
	incstack_stack_destroy(sim.s);
	for (unsigned i = 1; i < sim.depth; i++)
		ck_assert_uint_eq(*(uintptr_t *)sim.frames[i].slot, sim.frames[i].resume);
	incstack_runtime_destroy(sim.rt);
	ck_assert_uint_eq(sim.live, 0);
}

#endif
