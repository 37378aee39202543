/* SPDX-License-Identifier: MIT
 *
 * Heaps and stacks: how they are made, checked and freed.
 */
#include <string.h>

#include "barriers.h"
#include "heap_distance.h"

#define DEFAULT_BYTES (UINT64_C(1) << 30)
enum { DEFAULT_FRAMES = 1 << 22, FRAMES_MIN = 64, FRAMES_MAX = 1 << 30 };

static bool is_valid(const struct incstack_heap_options *o)
{
	return o && o->size == sizeof(*o) && o->walk && o->memory &&
	       o->mode <= INCSTACK_HEAP_FULL && (o->mark || o->mode != INCSTACK_HEAP_BARRIER) &&
	       o->distance <= INCSTACK_HEAP_DISTANCE_MAX && o->frame_limit <= FRAMES_MAX &&
	       !(o->flags & ~(uint32_t)INCSTACK_HEAP_CHECK_OWNER);
}

int incstack_heap_create(const struct incstack_heap_options *options, struct incstack_heap **out)
{
	if (!is_valid(options) || !out)
		return INCSTACK_EINVAL;
	heap made = {.options = *options}, *h;
	struct incstack_heap_options *o = &made.options;
	if (!o->memory_limit)
		o->memory_limit = DEFAULT_BYTES;
	if (o->memory_limit > SIZE_MAX / 2)
		o->memory_limit = SIZE_MAX / 2;
	if (!o->frame_limit)
		o->frame_limit = DEFAULT_FRAMES;
	if (o->frame_limit < FRAMES_MIN)
		o->frame_limit = FRAMES_MIN;
	if (o->memory_limit < sizeof(*h))
		return INCSTACK_ELIMIT;
	h = o->memory(o->context, NULL, sizeof(*h));
	if (!h)
		return INCSTACK_ENOMEM;
	*h = made;
	atomic_init(&h->bytes, sizeof(*h));
	atomic_init(&h->users, 1);
	*out = h;
	return 0;
}

static void link_stack(heap *h, stack *s)
{
	s->older = h->stacks;
	if (h->stacks)
		h->stacks->younger = s;
	h->stacks = s;
}

static void unlink_stack(const stack *s)
{
	if (s->younger)
		s->younger->older = s->older;
	else
		s->heap->stacks = s->older;
	if (s->older)
		s->older->younger = s->younger;
}

static uint32_t first_distance(const struct incstack_heap_options *o)
{
	if (o->mode == INCSTACK_HEAP_BARRIER)
		return o->distance ? o->distance : DISTANCE_FIRST;
	return UINT32_MAX; /* no sample sets a mark */
}

static void open_stack(stack *s, heap *h, void *identity)
{
	const struct incstack_heap_options *o = &h->options;
	memset(s, 0, sizeof(*s));
	s->heap = h;
	s->identity = identity;
	s->barriers = s->few;
	s->room = INLINE_BARRIERS;
	s->mode = (uint8_t)o->mode;
	s->adaptive = !o->distance && s->mode == INCSTACK_HEAP_BARRIER;
	s->distance = first_distance(o);
	s->credit = s->adaptive ? CREDIT : 0;
	s->calm = 1;
	s->checks = o->flags & INCSTACK_HEAP_CHECK_OWNER;
	atomic_init(&s->owner, s->checks ? incstack__heap_thread_self() : 0);
	atomic_init(&s->busy, 0);
	atomic_init(&s->busy_count, 0);
	link_stack(h, s);
}

int incstack_heap_stack_create(struct incstack_heap *h, void *identity,
			       struct incstack_heap_stack **out)
{
	void *memory;
	if (!h || !out)
		return INCSTACK_EINVAL;
	int error = incstack__heap_allocate(h, sizeof(stack), &memory);
	if (error)
		return error;
	*out = memory;
	open_stack(memory, h, identity);
	return 0;
}

static void free_barriers(stack *s)
{
	if (s->barriers != s->few)
		incstack__heap_free(s->heap, s->barriers, s->room * sizeof(struct barrier));
	s->barriers = s->few;
	s->room = INLINE_BARRIERS;
}

static void free_stack(stack *s)
{
	unlink_stack(s);
	incstack__heap_forget_objects(s);
	free_barriers(s);
	incstack__heap_free(s->heap, s, sizeof(*s));
}

void incstack_heap_stack_destroy(struct incstack_heap_stack *s)
{
	if (s && !incstack__heap_take_busy(s))
		free_stack(s);
}

void incstack_heap_destroy(struct incstack_heap *h)
{
	if (!h)
		return;
	while (h->stacks)
		free_stack(h->stacks);
	incstack__heap_drop(h);
}

int incstack_heap_stack_adopt(struct incstack_heap_stack *s)
{
	int error = s ? incstack__heap_take_busy(s) : INCSTACK_EINVAL;
	if (error)
		return error;
	atomic_store_explicit(&s->owner, incstack__heap_thread_self(), memory_order_relaxed);
	leave(s);
	return 0;
}

int incstack_heap_stack_stats(const struct incstack_heap_stack *s,
			      struct incstack_heap_stats *stats)
{
	if (!s || !stats || stats->size != sizeof(*stats))
		return INCSTACK_EINVAL;
	*stats = s->stats;
	stats->size = sizeof(*stats);
	stats->busy =
		atomic_load_explicit(&((stack *)(uintptr_t)s)->busy_count, memory_order_relaxed);
	stats->shared = s->stats.samples - s->all_new;
	stats->distance = s->mode == INCSTACK_HEAP_BARRIER ? s->distance : 0;
	stats->marks = s->count;
	return 0;
}
