/* SPDX-License-Identifier: MIT
 *
 * For tests of samples in signal handlers: a simulated stack with a queue, and how its embedder
 * describes interrupted states.
 */
#ifndef SIGNAL_QUEUE_H
#define SIGNAL_QUEUE_H

#include "trace/queue.h"
#include "simulated.h"

enum { NUMBERED = 40 };

/* How the embedder describes an interrupted state. */
enum state { DESCRIBED, PROMISED, ENDING, RETURNING, UNKNOWN, STATES };

static enum state state;
static int signals_in_decode; /* how many signals decode gets */

/* Request n of the queue: 0 is the oldest, -1 the youngest. */
static inline struct queued element(int n)
{
	const struct queue *q = sim.s->signals.queue;
	const uint64_t number = (n < 0 ? q->tail : q->head) + (uint64_t)(int64_t)n;
	return q->places[number % q->capacity].what;
}

/* A frame that keeps its position in itself names it by a number. */
static inline uintptr_t position(const struct sim_frame *f)
{
	if (!sim_position_inside(f->function))
		return f->pc;
	return (uintptr_t)1 << NUMBERED | (uintptr_t)f->function << 20 | ((uintptr_t *)f->fp)[-1];
}

static int decode(void *context, const struct incstack_frame *frame,
		  struct incstack_virtual_frame *out, int max)
{
	while (signals_in_decode > 0) {
		signals_in_decode--;
		ck_assert_int_eq(incstack_stack_sample_signal(sim.s, 0, 1, sim_top()),
				 INCSTACK_QUEUED);
	}
	if (frame->pc >> NUMBERED == 0)
		return sim_decode(context, frame, out, max);
	const unsigned function = frame->pc >> 20 & 0xfffff;
	const int32_t position = (int32_t)(frame->pc & 0xfffff);
	ck_assert_uint_eq(frame->flags, INCSTACK_FRAME_EXACT);
	out[0] = (struct incstack_virtual_frame){.function = function, .position = position};
	out[1] = (struct incstack_virtual_frame){.function = function + 1000,
						 .position = position / 2};
	return function % 4 == 1 ? 2 : 1;
}

/* Whether the return address of the top frame tells the position of its caller. */
static inline bool caller_is_known(void)
{
	return sim.depth > 1 && !sim_position_inside(sim_top()[-1].function) &&
	       sim_top()->resume < SIM_HANDLER;
}

static int interrupted(void *context, const struct incstack_interruption *at,
		       struct incstack_top *top)
{
	const struct sim_frame *f = at->ucontext;
	(void)context;
	ck_assert_uint_eq(at->low, (uintptr_t)sim.words);
	ck_assert_uint_eq(at->high, (uintptr_t)(sim.words + SIM_WORDS));
	ck_assert_ptr_null(at->identity);
	*top = (struct incstack_top){
		.pc = f->pc, .sp = f->sp, .fp = f->fp, .flags = INCSTACK_TOP_EXACT};
	if (state == DESCRIBED)
		return 1;
	if (state == UNKNOWN)
		return INCSTACK_ERANGE;
	top->pc = position(f);
	top->slot = f->slot;
	top->flags |= state == PROMISED ? INCSTACK_TOP_STAYS : 0;
	if (state == RETURNING && caller_is_known())
		top->flags |= INCSTACK_TOP_CALLER_STAYS;
	if (sim.random % 2)
		top->flags |= INCSTACK_TOP_DECODE_NOW;
	return 0;
}

static inline struct incstack_signal_stats stats_now(void)
{
	struct incstack_signal_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_stack_signal_stats(sim.s, &stats), 0);
	return stats;
}

static inline void open_with_queue(struct incstack_options options, uint32_t capacity)
{
	static struct incstack_embedder embedder;
	ck_assert_int_eq(sim_open(options), 0);
	embedder = sim_embedder;
	embedder.signals.interrupted = interrupted;
	embedder.code.decode = decode;
	embedder.signals.find_rule = sim_find_rule;
	if (sim.usual)
		embedder.code.logical_pc = NULL;
	sim.rt->embedder = embedder;
	if (capacity)
		ck_assert_int_eq(incstack_stack_queue_resize(sim.s, capacity), 0);
}

static inline uint64_t accounted(const struct incstack_signal_stats *stats)
{
	uint64_t all = stats->in_handler + stats->from_queue + stats->biased + stats->pending;
	for (int i = 0; i < INCSTACK_FAILURES; i++)
		all += stats->failed[i];
	return all;
}

#endif
