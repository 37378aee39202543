/* SPDX-License-Identifier: MIT
 *
 * The life cycle of runtimes and stacks: their options, how they are created and destroyed, who
 * owns a stack and in which mode it is. Also room for samples, and the counters.
 */
#include <string.h>

#include "barrier.h"
#include "distance.h"
#include "mode.h"
#include "operation.h"
#include "queue.h"
#include "remembered.h"
#include "retrieve.h"
#include "shared.h"
#include "rule.h"
#include "walk.h"

static bool embedder_is_valid(const struct incstack_embedder *e)
{
	const struct incstack_embedder_memory *m = &e->memory;
	return e->size == sizeof(*e) && !m->allocate == !m->release &&
	       !m->allocate_traces == !m->release_traces &&
	       !(e->code.frame_pointers && e->code.find_rule);
}

static bool options_are_valid(const struct incstack_options *o)
{
	return o->size == sizeof(*o) && o->embedder && embedder_is_valid(o->embedder) &&
	       o->mode <= INCSTACK_MODE_FULL && o->distance <= INCSTACK_DISTANCE_MAX &&
	       (!o->stack_bytes || o->chunk_bytes <= o->stack_bytes);
}

static void complete_options(struct incstack_options *o)
{
	enum { LEAST_CHUNK = 512, CHUNK_UNIT = 64, MOST_CHUNK = 1 << 30 };
	if (!o->stack_bytes)
		o->stack_bytes = 1u << 30;
	if (!o->chunk_bytes)
		o->chunk_bytes = o->stack_bytes < 64 << 10 ? (uint32_t)o->stack_bytes : 64 << 10;
	if (o->chunk_bytes < LEAST_CHUNK)
		o->chunk_bytes = LEAST_CHUNK;
	if (o->chunk_bytes > MOST_CHUNK)
		o->chunk_bytes = MOST_CHUNK;
	o->chunk_bytes = o->chunk_bytes / CHUNK_UNIT * CHUNK_UNIT;
	if (o->stack_bytes < o->chunk_bytes)
		o->stack_bytes = o->chunk_bytes;
	if (incstack__shadow_stack_on() && o->mode == INCSTACK_MODE_PATCH)
		o->mode = INCSTACK_MODE_VALIDATE;
}

/* Copies the caller's options and table. */
static void take_options(runtime *rt, const struct incstack_options *o)
{
	rt->embedder = *o->embedder;
	rt->context = o->context;
	rt->options = *o;
	complete_options(&rt->options);
}

int incstack_runtime_create(const struct incstack_options *options,
			    struct incstack_runtime **result)
{
	runtime seed;
	if (!result || !options || !options_are_valid(options))
		return INCSTACK_EINVAL;
	take_options(&seed, options);
	runtime *rt = incstack__allocate(&seed, sizeof(*rt));
	if (!rt)
		return INCSTACK_ENOMEM;
	memset(rt, 0, sizeof(*rt));
	take_options(rt, options);
	rt->xsave_bytes = incstack__xsave_bytes();
	atomic_init(&rt->users, 1);
	int error = incstack__pool_open();
	if (error) {
		incstack__release(rt, rt, sizeof(*rt));
		return error;
	}
	*result = rt;
	return 0;
}

void incstack_runtime_destroy(struct incstack_runtime *rt)
{
	if (rt)
		incstack__runtime_drop(rt);
}

int incstack_runtime_reserve(struct incstack_runtime *rt)
{
	if (!rt)
		return INCSTACK_EINVAL;
	incstack__rule_reserve(rt);
	return 0;
}

int incstack_runtime_forked(struct incstack_runtime *rt)
{
	if (!rt)
		return INCSTACK_EINVAL;
	incstack__rule_forked(rt);
	incstack__arena_forked(rt);
	incstack__pool_forked();
	return 0;
}

/* The first mode of a stack. It is the mode of the runtime, if the kind of the stack can have this
 * mode. */
static uint32_t first_mode(const runtime *rt, const struct incstack__stack_kind *kind)
{
	uint32_t mode = rt->options.mode;
	if (mode == INCSTACK_MODE_PATCH && stacks_are_copied(rt))
		mode = INCSTACK_MODE_VALIDATE;
	return kind_has(kind, mode) ? mode : kind->mode;
}

static int open_stack(stack *s)
{
	int error = incstack__arena_open(s->runtime, &s->arena);
	if (error)
		return error;
	s->last = first_trace(s);
	incstack__pool_reserve(s);
	incstack__rule_reserve(s->runtime);
	return 0;
}

/* Without bounds, the memory of the stack is a range where no program has any. */
static int create(runtime *rt, const struct incstack__stack_kind *kind, struct bounds given,
		  struct incstack_stack **result)
{
	const uintptr_t nowhere = (uintptr_t)1 << 62;
	stack *s = incstack__allocate(rt, sizeof(*s));
	if (!s)
		return INCSTACK_ENOMEM;
	memset(s, 0, sizeof(*s));
	s->runtime = rt;
	s->kind = kind;
	s->given = given;
	s->low = given.high ? given.low : nowhere;
	s->high = given.high ? given.high : nowhere + sizeof(uintptr_t);
	s->owner = thread_self();
	incstack__distance_open(s);
	incstack__mode_use(s, first_mode(rt, kind));
	int error = open_stack(s);
	if (error) {
		incstack__release(rt, s, sizeof(*s));
		return error;
	}
	atomic_fetch_add_explicit(&rt->users, 1, memory_order_acq_rel);
	*result = s;
	return 0;
}

static bool walks_machine_stacks(const runtime *rt)
{
	return rt->embedder.code.find_rule || rt->embedder.code.frame_pointers;
}

int incstack_stack_create(struct incstack_runtime *rt, uintptr_t low, uintptr_t high,
			  struct incstack_stack **result)
{
	const bool anywhere = !low && !high;
	if (!rt || !result || !walks_machine_stacks(rt) || (low >= high && !anywhere) ||
	    (low | high) % sizeof(uintptr_t))
		return INCSTACK_EINVAL;
	return create(rt, anywhere ? &incstack__kind_anywhere : &incstack__kind_machine,
		      (struct bounds){low, high}, result);
}

static bool walker_is_valid(const struct incstack_stack_walker *w)
{
	return w && w->size == sizeof(*w) && w->caller && w->arm && w->disarm;
}

int incstack_stack_create_embedder(struct incstack_runtime *rt,
				   const struct incstack_stack_walker *walker, void *identity,
				   struct incstack_stack **result)
{
	if (!rt || !result || !walker_is_valid(walker))
		return INCSTACK_EINVAL;
	int error = create(rt, &incstack__kind_embedder, (struct bounds){0, 0}, result);
	if (error)
		return error;
	(*result)->walker = walker;
	(*result)->identity = identity;
	return 0;
}

static void free_stack(stack *s)
{
	runtime *rt = s->runtime;
	incstack__barriers_close(s);
	incstack__barriers_watched();
	incstack__queue_free(s);
	incstack__remembered_free(s);
	incstack__arena_free(rt, s->arena.first);
	incstack__arena_free(rt, s->arena.spare);
	incstack__release(rt, s, sizeof(*s));
	incstack__runtime_drop(rt);
}

void incstack_stack_destroy(struct incstack_stack *s)
{
	if (!s || enter(s))
		return;
	incstack__lift_all(s, true);
	free_stack(s);
}

void incstack_stack_abandon(struct incstack_stack *s)
{
	if (!s)
		return;
	s->kind->abandon(s);
	free_stack(s);
}

int incstack_stack_set_owner(struct incstack_stack *s)
{
	if (!s)
		return INCSTACK_EINVAL;
	s->owner = thread_self();
	return 0;
}

void incstack__stack_is_of_thread(stack *s)
{
	s->thread = thread_self();
}

int incstack_stack_set_mode(struct incstack_stack *s, enum incstack_mode mode)
{
	if ((unsigned)mode > INCSTACK_MODE_EMBEDDER)
		return INCSTACK_EINVAL;
	int error = enter(s);
	if (error)
		return error;
	if (kind_has(s->kind, mode))
		incstack__mode_change(s, mode, __builtin_frame_address(0));
	else
		error = INCSTACK_EINVAL;
	leave(s);
	return error;
}

/* The most bytes that the objects of the open frames can take. It assumes that a walk meets no
 * known frame. */
static size_t room_for_frames(const stack *s)
{
	uintptr_t open = s->high - stack_pointer();
	if (__builtin_expect(open > s->high - s->low, 0))
		open = s->kind->open_bytes(s);
	return frames_room(open);
}

/* Whether the stack should lift barriers: thunks are short, and the stack itself has many. */
static bool should_thin(const stack *s)
{
	enum { LEAST = 1024 }; /* barriers planted since the last time */
	return s->stats.planted - s->tally.thinned >= LEAST && s->newest &&
	       incstack__thunks_short(s->runtime);
}

int incstack_stack_reserve(struct incstack_stack *s, size_t bytes)
{
	int error = enter(s);
	if (error)
		return error;
	incstack__barriers_reclaim(s);
	incstack__copied_check(s, __builtin_frame_address(0));
	incstack__pool_reserve(s);
	if (__builtin_expect(should_thin(s), 0))
		s->kind->thin(s, __builtin_frame_address(0));
	incstack__rule_reserve(s->runtime);
	incstack__rule_learn_wanted(s->runtime);
	size_t room = arena_room(&s->arena), frames = room_for_frames(s);
	if (room < bytes && bytes - room > s->runtime->options.stack_bytes - s->arena.bytes)
		error = INCSTACK_ELIMIT;
	while (!error && arena_room(&s->arena) < bytes + frames)
		error = incstack__arena_grow(s->runtime, &s->arena, false);
	if (arena_room(&s->arena) >= bytes)
		error = 0; /* open traces may be truncated, for lack of room for all frames */
	leave(s);
	return error;
}

size_t incstack_stack_room(const struct incstack_stack *s)
{
	if (!s)
		return 0;
	size_t room = arena_room(&s->arena), frames = room_for_frames(s);
	return room > frames ? room - frames : 0;
}

/* Makes more room after a sample has found too little. That sample does not count, because it is
 * taken again. */
static int make_more_room(stack *s)
{
	int error = enter(s);
	if (error)
		return error;
	error = s->kind->more_room(s);
	s->stats.lost_limit -= !error;
	leave(s);
	return error;
}

int incstack_stack_sample_at_poll(struct incstack_stack *s, uint64_t id, uint64_t weight,
				  const struct incstack_top *top)
{
	if (!s)
		return INCSTACK_EINVAL;
	if (__builtin_expect(incstack__queue_pending(s), 0))
		incstack_stack_queue_drain(s, top);
	size_t enough = s->runtime->options.chunk_bytes / 2;
	int reserved = incstack_stack_room(s) < enough ? incstack_stack_reserve(s, enough) : 0;
	int error = incstack_stack_sample(s, id, weight, top);
	while (error == INCSTACK_EROOM && !reserved) {
		reserved = make_more_room(s);
		if (!reserved)
			error = incstack_stack_sample(s, id, weight, top);
	}
	return error == INCSTACK_EROOM && reserved ? reserved : error;
}

size_t incstack__stack_sample_room(const stack *s)
{
	return arena_room(&s->arena);
}

int incstack_stack_stats(const struct incstack_stack *s, struct incstack_stats *stats)
{
	if (!s || !stats || stats->size != sizeof(*stats))
		return INCSTACK_EINVAL;
	struct incstack_stats now = s->stats;
	now.size = stats->size;
	now.samples = s->samples;
	now.walked = s->walked;
	now.mode = s->mode;
	now.distance = s->distance.value + 1;
	now.shared = s->samples > s->tally.all_new ? s->samples - s->tally.all_new : 0;
	now.rules_unkept = atomic_load_explicit(&s->runtime->rules_unkept, memory_order_relaxed);
	*stats = now;
	return 0;
}

static uint64_t read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

int incstack_stack_signal_stats(const struct incstack_stack *s, struct incstack_signal_stats *stats)
{
	if (!s || !stats || stats->size != sizeof(*stats))
		return INCSTACK_EINVAL;
	const struct signal_requests *counts = &s->signals;
	struct incstack_signal_stats now = {
		.size = stats->size,
		.requests = read(&counts->requests),
		.in_handler = read(&counts->in_handler),
		.from_queue = counts->from_queue,
		.biased = counts->biased,
		.pending = incstack__queue_requests(s),
		.merged = read(&counts->merged),
		.drains = counts->drains,
		.capacity = s->signals.queue ? s->signals.queue->capacity : 0,
		.attempts = s->signals.queue ? s->signals.queue->attempts : 0,
	};
	for (int i = 0; i < INCSTACK_FAILURES; i++)
		now.failed[i] = read(&counts->failed[i]);
	*stats = now;
	return 0;
}
