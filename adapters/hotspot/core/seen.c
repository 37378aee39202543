/* SPDX-License-Identifier: MIT
 *
 * Records of full walks, in the order of the samples, and their comparison with traces.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "seen.h"

struct incstack__seen_walk {
	struct incstack__seen_walk *next;
	uint64_t sample;
	uint32_t count, reserved;
	struct incstack__seen_frame frames[];
};

void incstack__seen_init(struct incstack__seen *seen)
{
	*seen = (struct incstack__seen){NULL, &seen->first, 0};
}

struct incstack__seen_frame *incstack__seen_begin(struct incstack__seen *seen, uint64_t sample,
						  uint32_t count)
{
	struct incstack__seen_walk *w = malloc(sizeof(*w) + count * sizeof(*w->frames));
	if (!w) {
		seen->skipped++;
		return NULL;
	}
	*w = (struct incstack__seen_walk){.sample = sample, .count = count};
	*seen->last = w;
	seen->last = &w->next;
	return w->frames;
}

static void pop(struct incstack__seen *seen)
{
	struct incstack__seen_walk *w = seen->first;
	seen->first = w->next;
	if (!seen->first)
		seen->last = &seen->first;
	free(w);
}

void incstack__seen_drop(struct incstack__seen *seen)
{
	while (seen->first)
		pop(seen);
}

static struct incstack__seen_frame frame_of(const struct incstack_frame_object *o, uint64_t mask)
{
	return (struct incstack__seen_frame){o->function & mask, o->position,
					     !!(o->flags & INCSTACK_OBJECT_VIRTUAL)};
}

static bool same(const struct incstack__seen_frame *a, const struct incstack__seen_frame *b)
{
	return a->method == b->method && a->bci == b->bci && a->is_virtual == b->is_virtual;
}

/* Whether the trace shows the frames of the walk. A truncated trace shows the first of them. */
static bool matches(const struct incstack__seen_walk *w, const struct incstack_frame_object *o,
		    uint64_t mask, struct incstack__seen_result *r)
{
	uint32_t i = 0;
	const struct incstack_frame_object *last = NULL;
	struct incstack__seen_frame none = {0, 0, 0};
	for (; o; last = o, o = o->parent, i++) {
		struct incstack__seen_frame traced = frame_of(o, mask);
		bool is_more = i < w->count;
		if (is_more && same(&w->frames[i], &traced))
			continue;
		r->frame = i;
		r->expected = is_more ? w->frames[i] : none;
		r->traced = traced;
		return false;
	}
	if (i == w->count || (last && last->flags & INCSTACK_OBJECT_TRUNCATED))
		return true;
	r->frame = i;
	r->expected = w->frames[i];
	r->traced = none;
	return false;
}

void incstack__seen_compare(struct incstack__seen *seen, const struct incstack_tree *tree,
			    uint64_t first, uint64_t mask, struct incstack__seen_result *result)
{
	*result = (struct incstack__seen_result){.skipped = seen->skipped};
	seen->skipped = 0;
	struct incstack__seen_result difference;
	for (const struct incstack_trace *t = tree->traces; t; t = t->next, first++) {
		while (seen->first && seen->first->sample < first)
			pop(seen);
		if (!seen->first || seen->first->sample != first)
			continue;
		result->compared++;
		if (!matches(seen->first, t->top, mask, &difference) && !result->mismatches++) {
			result->sample = first;
			result->frame = difference.frame;
			result->expected = difference.expected;
			result->traced = difference.traced;
		}
		pop(seen);
	}
}
