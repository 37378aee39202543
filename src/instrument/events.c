/* SPDX-License-Identifier: MIT
 *
 * The events of a thread. An event takes few steps, unless calls ended without an exit. It neither allocates nor locks, and reads the
 * clock at most once.
 */
#include "meter.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define NOINLINE __attribute__((noinline))

enum { LOOKS_MOST = 64 }; /* at open calls, for an exit of a method that is off */

typedef struct incstack_meter_thread thread;
typedef struct incstack_meter_method method;

/* Gives the time since the last reading to the one that it belongs to. */
static inline void advance(thread *t)
{
	const uint64_t now = clock_read(&t->clock);
	/* A counter may differ by a few ticks between processors. */
	const uint64_t passed = now > t->stamp ? now - t->stamp : 0;

	t->stamp = now;
	if (LIKELY(!t->stopped[INCSTACK_METER_PAUSE] && !t->stopped[INCSTACK_METER_WAIT]))
		add_to(&t->clocked->ticks, passed);
	else if (t->stopped[INCSTACK_METER_PAUSE])
		add_to(&t->paused, passed);
	else
		add_to(&t->clocked->waits, passed);
}

/* Returns false if an event is in progress, which a signal has interrupted. */
static inline bool begin(thread *t)
{
	/* relaxed: only handlers of this thread look at it, so the compiler's order is enough. */
	if (__builtin_expect(atomic_load_explicit(&t->is_busy, memory_order_relaxed), 0)) {
		add_to(&t->nested, 1);
		return false;
	}
	atomic_store_explicit(&t->is_busy, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

static inline void end(thread *t)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&t->is_busy, false, memory_order_relaxed);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static inline uint32_t slot_of(const thread *t, uint32_t parent, const method *m)
{
	const uint64_t key = ((uintptr_t)m >> 4) * 0x9e3779b97f4a7c15u ^ (uint64_t)parent << 32;

	return (uint32_t)((key * 0xbf58476d1ce4e5b9u) >> 32) & t->mask;
}

static NOINLINE struct node *add_node(thread *t, uint32_t parent, method *m, uint32_t slot)
{
	const uint32_t number = atomic_load_explicit(&t->node_count, memory_order_relaxed);

	if (number == t->node_limit)
		return NULL;
	t->nodes[number].method = m;
	t->nodes[number].parent = parent;
	t->table[slot] = number;
	/* release: a snapshot that reads the count sees the node. */
	atomic_store_explicit(&t->node_count, number + 1, memory_order_release);
	return &t->nodes[number];
}

/* The table is at most half full, so a search ends. */
static NOINLINE struct node *search_node(thread *t, struct node *parent, method *m)
{
	const uint32_t from = (uint32_t)(parent - t->nodes);
	uint32_t slot = slot_of(t, from, m);
	struct node *found;

	for (; t->table[slot]; slot = (slot + 1) & t->mask) {
		found = &t->nodes[t->table[slot]];
		if (found->method == m && found->parent == from) {
			parent->hot = t->table[slot];
			return found;
		}
	}
	found = add_node(t, from, m, slot);
	if (found)
		parent->hot = (uint32_t)(found - t->nodes);
	return found;
}

static inline struct node *find_node(thread *t, struct node *parent, method *m)
{
	struct node *hot = &t->nodes[parent->hot];

	return LIKELY(hot->method == m) ? hot : search_node(t, parent, m);
}

/* ---- open calls ------------------------------------------------------------------------------ */

static inline struct open *top_of(const thread *t)
{
	return atomic_load_explicit(&t->top, memory_order_relaxed);
}

static inline void push(thread *t, const struct open *call)
{
	struct open *top = top_of(t) + 1;

	*top = *call;
	atomic_signal_fence(memory_order_release);
	atomic_store_explicit(&t->top, top, memory_order_relaxed);
	t->open++;
}

/* Ends the innermost call. The clock is read if it ran for the call. */
static inline void pop(thread *t)
{
	const struct open *top = top_of(t);

	if (t->clocked != top->clocked) {
		advance(t);
		t->clocked = top->clocked;
	}
	atomic_store_explicit(&t->top, top_of(t) - 1, memory_order_relaxed);
	t->open--;
}

static NOINLINE void pop_unseen(thread *t)
{
	add_to(&t->unseen, 1 + (uint64_t)t->beyond);
	t->beyond = 0;
	pop(t);
}

/* Whether the frame of a call is gone, because a frame further out, or another one in its place, begins. */
static inline bool is_stale(const struct open *call, const method *m, uintptr_t frame)
{
	return call->frame < frame || (call->frame == frame && call->method == m);
}

static inline void pop_stale(thread *t, const method *m, uintptr_t frame)
{
	while (__builtin_expect(t->open && is_stale(top_of(t), m, frame), 0))
		pop_unseen(t);
}

/* A call that cannot have a context of its own is part of its caller. */
static NOINLINE void enter_without_node(thread *t, method *m, uintptr_t frame)
{
	add_to(&t->no_room, 1);
	push(t, &(struct open){m, frame, top_of(t)->node, t->clocked, top_of(t)->is_timed});
}

static NOINLINE int first_run(method *m)
{
	return !atomic_exchange_explicit(&m->has_run, true, memory_order_relaxed);
}

static inline void enter_node(thread *t, method *m, uintptr_t frame, struct node *node,
			      uint32_t mode)
{
	const struct open call = {m, frame, node, t->clocked, mode == INCSTACK_METER_TIMED};

	if (LIKELY(mode == INCSTACK_METER_TIMED)) {
		add_to(&t->clocked->inside_timed, 1);
		add_to(&node->timed, 1);
		push(t, &call);
		advance(t);
		t->clocked = node;
	} else {
		add_to(&t->clocked->inside_counted, 1);
		add_to(&node->counted, 1);
		push(t, &call);
	}
}

static int enter_inside(thread *t, method *m, uintptr_t frame)
{
	const uint32_t mode = atomic_load_explicit(&m->mode, memory_order_relaxed);
	struct node *node;

	if (t->flags & INCSTACK_METER_FRAMES_DESCEND) {
		if (!frame) {
			add_to(&t->unmatched, 1);
			return 0;
		}
		pop_stale(t, m, frame);
	}
	if (__builtin_expect(mode == INCSTACK_METER_OFF, 0))
		return 0;
	if (__builtin_expect(t->open == t->depth_limit, 0)) {
		t->beyond++;
		add_to(&t->too_deep, 1);
		return 0;
	}
	node = find_node(t, top_of(t)->node, m);
	if (LIKELY(node))
		enter_node(t, m, frame, node, mode);
	else
		enter_without_node(t, m, frame);
	if (LIKELY(atomic_load_explicit(&m->has_run, memory_order_relaxed)))
		return 0;
	return first_run(m);
}

int incstack_meter_enter(thread *t, method *m, uintptr_t frame)
{
	int is_first;

	if (!t || !m)
		return 0;
	if (!t->open && !atomic_load_explicit(&m->is_root, memory_order_relaxed))
		return 0;
	if (!begin(t))
		return 0;
	is_first = enter_inside(t, m, frame);
	end(t);
	return is_first;
}

static inline bool is_call_of(const struct open *call, const method *m, uintptr_t frame)
{
	return call->method == m && call->frame == frame;
}

static inline bool is_off(const method *m)
{
	return atomic_load_explicit(&m->mode, memory_order_relaxed) == INCSTACK_METER_OFF;
}

/* Returns how many open calls began after the call that ends, or the number of open calls if there is no such
 * call. Of a method that is off, only a call that began before it was may be open: if it is far out, it ends as
 * unseen. */
static uint32_t count_above(const thread *t, const method *m, uintptr_t frame)
{
	const struct open *call = top_of(t);
	const uint32_t most = is_off(m) && t->open > LOOKS_MOST ? LOOKS_MOST : t->open;
	uint32_t above = 0;

	for (; above < most && !is_call_of(call - above, m, frame); above++)
		if ((t->flags & INCSTACK_METER_FRAMES_DESCEND) && (call - above)->frame > frame)
			return t->open;
	return above < most ? above : t->open;
}

/* A call that was too deep ends, or the method was off, or it began before it was instrumented. */
static void exit_without_call(thread *t, const method *m)
{
	if (is_off(m))
		return;
	if (t->beyond)
		t->beyond--;
	else
		add_to(&t->unmatched, 1);
}

/* The exit is not that of the innermost call. */
static NOINLINE void exit_other(thread *t, const method *m, uintptr_t frame)
{
	/* Calls without a frame cannot be told apart, so the innermost one ends. */
	uint32_t above = t->beyond && !frame ? t->open : count_above(t, m, frame);

	if (above == t->open) {
		exit_without_call(t, m);
		return;
	}
	for (; above > 0; above--)
		pop_unseen(t);
	add_to(&t->unseen, t->beyond);
	t->beyond = 0;
	pop(t);
}

void incstack_meter_exit(thread *t, method *m, uintptr_t frame)
{
	if (!t || !t->open || !begin(t))
		return;
	if (LIKELY(!t->beyond && is_call_of(top_of(t), m, frame)))
		pop(t);
	else
		exit_other(t, m, frame);
	end(t);
}

void incstack_meter_unwinding_to(thread *t, uintptr_t frame)
{
	if (!t || !t->open || !(t->flags & INCSTACK_METER_FRAMES_DESCEND) || !begin(t))
		return;
	while (t->open && top_of(t)->frame < frame) {
		t->beyond = 0;
		pop(t);
	}
	end(t);
}

void incstack__meter_thread_finish(thread *t)
{
	while (t->open)
		pop_unseen(t);
}

/* ---- stops and samples ----------------------------------------------------------------------- */

static void change_stop(thread *t, uint32_t why, bool on)
{
	if (!t || why > INCSTACK_METER_WAIT || !begin(t))
		return;
	if (t->open)
		advance(t);
	else
		t->stamp = clock_read(&t->clock);
	if (on && t->stopped[why] < UINT8_MAX)
		t->stopped[why]++;
	if (!on && t->stopped[why])
		t->stopped[why]--;
	end(t);
}

void incstack_meter_thread_stop(thread *t, uint32_t why)
{
	change_stop(t, why, true);
}

void incstack_meter_thread_go(thread *t, uint32_t why)
{
	change_stop(t, why, false);
}

/* A handler may interrupt an event, so these additions must not undo others, nor be undone. */
static inline void add_sample(_Atomic uint64_t *sum, uint64_t weight_ns)
{
	atomic_fetch_add_explicit(sum, weight_ns, memory_order_relaxed);
}

void incstack_meter_sample(thread *t, uint64_t weight_ns)
{
	const struct open *top = t ? top_of(t) : NULL;

	if (!top || top == t->opens)
		return;
	add_sample(&top->node->sampled_ns, weight_ns);
	if (top->is_timed)
		return;
	/* The clock runs for a caller, as the call is only counted. */
	add_sample(&top->node->by_samples_ns, weight_ns);
	add_sample(&t->clocked->given_ns, weight_ns);
}
