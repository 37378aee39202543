/* SPDX-License-Identifier: MIT
 *
 * The door: creation and destruction of runtimes and stacks, ownership, and the
 * checks that every operation on a stack begins with.
 */
#include <string.h>

#include "internal.h"

int incstack__enter_slowly(stack *s, uintptr_t sp)
{
	if (!s)
		return INCSTACK_EINVAL;
	if (s->owner != thread_self())
		return INCSTACK_ETHREAD;
	uintptr_t before = s->busy;
	if (before && !incstack__left_behind(s, before, sp)) {
		s->stats.lost_busy++;
		return INCSTACK_EBUSY;
	}
	s->busy = sp;
	atomic_signal_fence(memory_order_seq_cst);
	if (before)
		incstack__forget(s, true);
	return 0;
}

static bool options_good(const struct incstack_options *o)
{
	return o && o->size >= offsetof(struct incstack_options, stack_bytes) && o->embedder &&
	       o->embedder->size >= sizeof(size_t) && o->mode <= INCSTACK_MODE_FULL &&
	       o->distance >= INCSTACK_DISTANCE_ADAPTIVE && o->distance <= INCSTACK_DISTANCE_MAX &&
	       !o->embedder->allocate == !o->embedder->release;
}

static void take_options(runtime *rt, const struct incstack_options *o)
{
	size_t size = o->size < sizeof(rt->options) ? o->size : sizeof(rt->options);
	memcpy(&rt->options, o, size);
	if (!rt->options.stack_bytes)
		rt->options.stack_bytes = 1u << 30;
	if (!rt->options.chunk_bytes)
		rt->options.chunk_bytes = 64 << 10;
	if (rt->options.chunk_bytes < 512)
		rt->options.chunk_bytes = 512;
	if (incstack__shadow_stack_on() && rt->options.mode == INCSTACK_MODE_PATCH)
		rt->options.mode = INCSTACK_MODE_VALIDATE;
}

int incstack_runtime_create(const struct incstack_options *options,
			    struct incstack_runtime **result)
{
	if (!result || !options_good(options))
		return INCSTACK_EINVAL;
	runtime seed = {.context = options->context};
	size_t size = options->embedder->size;
	memcpy(&seed.embedder, options->embedder,
	       size < sizeof(seed.embedder) ? size : sizeof(seed.embedder));
	runtime *rt = incstack__allocate(&seed, sizeof(*rt));
	if (!rt)
		return INCSTACK_ENOMEM;
	memset(rt, 0, sizeof(*rt));
	rt->embedder = seed.embedder;
	rt->context = seed.context;
	take_options(rt, options);
	rt->xsave_bytes = incstack__xsave_bytes();
	int error = incstack__pool_open();
	if (error) {
		incstack__release(rt, rt, sizeof(*rt));
		return error;
	}
	*result = rt;
	return 0;
}

int incstack_runtime_destroy(struct incstack_runtime *rt)
{
	if (!rt)
		return INCSTACK_EINVAL;
	if (atomic_load_explicit(&rt->stacks, memory_order_acquire))
		return INCSTACK_EBUSY;
	incstack__arena_close(rt);
	incstack__rule_free(rt);
	incstack__release(rt, rt, sizeof(*rt));
	return 0;
}

static void use_mode(stack *s, uint32_t mode)
{
	s->mode = mode;
	s->hidden_rule = mode == INCSTACK_MODE_VALIDATE ? 0 : -1;
	set_newest(s, NULL);
}

int incstack_stack_create(struct incstack_runtime *rt, uintptr_t low, uintptr_t high,
			  struct incstack_stack **result)
{
	if (!rt || !result || low >= high || (low | high) % sizeof(uintptr_t))
		return INCSTACK_EINVAL;
	stack *s = incstack__allocate(rt, sizeof(*s));
	if (!s)
		return INCSTACK_ENOMEM;
	memset(s, 0, sizeof(*s));
	s->runtime = rt;
	s->low = low;
	s->high = high;
	s->owner = thread_self();
	use_mode(s, rt->options.mode);
	s->last = &s->first;
	incstack__distance_open(s);
	int error = incstack__arena_open(s);
	if (error) {
		incstack__release(rt, s, sizeof(*s));
		return error;
	}
	incstack__pool_reserve(s);
	atomic_fetch_add_explicit(&rt->stacks, 1, memory_order_acq_rel);
	*result = s;
	return 0;
}

static void free_stack(stack *s)
{
	runtime *rt = s->runtime;
	incstack__barrier_return_spare(s);
	incstack__arena_free(rt, s->arena.first);
	incstack__arena_free(rt, s->arena.spare);
	incstack__release(rt, s, sizeof(*s));
	atomic_fetch_sub_explicit(&rt->stacks, 1, memory_order_acq_rel);
}

int incstack_stack_destroy(struct incstack_stack *s)
{
	int error = enter(s);
	if (error)
		return error;
	incstack__lift_all(s);
	free_stack(s);
	return 0;
}

int incstack_stack_abandon(struct incstack_stack *s)
{
	if (!s)
		return INCSTACK_EINVAL;
	for (object *o = s->newest; o; o = (object *)o->parent)
		if (o->flags & OBJECT_BARRIER)
			incstack__barrier_drop(s, o);
	free_stack(s);
	return 0;
}

int incstack_stack_own(struct incstack_stack *s)
{
	if (!s)
		return INCSTACK_EINVAL;
	s->owner = thread_self();
	return 0;
}

int incstack_stack_set_mode(struct incstack_stack *s, enum incstack_mode mode)
{
	if ((unsigned)mode > INCSTACK_MODE_EMBEDDER)
		return INCSTACK_EINVAL;
	int error = enter(s);
	if (error)
		return error;
	if (mode != INCSTACK_MODE_FULL && s->by_embedder != (mode == INCSTACK_MODE_EMBEDDER)) {
		leave(s);
		return INCSTACK_EINVAL;
	}
	if (incstack__known_confirm(s, __builtin_frame_address(0)))
		incstack__complete(s, false);
	incstack__lift_all(s);
	if (mode == INCSTACK_MODE_PATCH && incstack__shadow_stack_on())
		mode = INCSTACK_MODE_VALIDATE;
	if (s->mode == INCSTACK_MODE_VALIDATE)
		incstack__forget_rules(s);
	use_mode(s, mode);
	leave(s);
	return 0;
}

int incstack_stack_reserve(struct incstack_stack *s, size_t bytes)
{
	int error = enter(s);
	if (error)
		return error;
	incstack__pool_reserve(s);
	incstack__rule_learn_wanted(s->runtime);
	size_t room = (size_t)((char *)s->arena.limit - (char *)s->arena.object);
	for (const struct chunk *c = s->arena.spare; c; c = c->next)
		room += c->bytes - sizeof(*c);
	while (!error && room < bytes) {
		error = incstack__arena_grow(s, false);
		room += s->runtime->options.chunk_bytes - sizeof(struct chunk);
	}
	leave(s);
	return error;
}

int incstack_stack_stats(const struct incstack_stack *s, struct incstack_stats *stats)
{
	if (!s || !stats || stats->size < sizeof(size_t))
		return INCSTACK_EINVAL;
	struct incstack_stats now = s->stats;
	now.size = stats->size;
	now.mode = s->mode;
	now.distance = (int32_t)s->distance.value;
	memcpy(stats, &now, now.size < sizeof(now) ? now.size : sizeof(now));
	return 0;
}
