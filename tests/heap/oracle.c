/* SPDX-License-Identifier: MIT
 *
 * What the traces of the toy interpreter must show: a walk by hand at the time of each sample.
 */
#include "toy.h"

void toy_describe(const struct node *n, struct incstack_heap_frame *f)
{
	f->function = n->function;
	f->position = n->position;
	f->kind = n->kind;
	f->flags = n->kind & 1 ? 0x4000u : 0;
}

static struct snapshot take_snapshot(const struct coroutine *c)
{
	struct snapshot shot = {0, calloc(c->depth, sizeof(*shot.frames))};
	REQUIRE(shot.frames != NULL);
	for (const struct node *n = c->top; n; n = n->caller) {
		struct seen *seen = &shot.frames[shot.count++];
		seen->frame.name = (uintptr_t)n;
		seen->before = n->seen >> n->position & 1;
		toy_describe(n, &seen->frame);
	}
	REQUIRE(shot.count == c->depth);
	return shot;
}

static void mark_as_seen(const struct coroutine *c)
{
	for (struct node *n = c->top; n; n = n->caller)
		n->seen |= 1u << n->position;
}

static bool is_same(const struct incstack_heap_frame *a, const struct incstack_heap_frame *b)
{
	return a->function == b->function && a->position == b->position && a->kind == b->kind &&
	       (a->flags & INCSTACK_HEAP_OWN) == b->flags &&
	       (!toy.options.still || a->name == b->name);
}

/* Compares a trace. `old` is as in struct incstack_heap_trace. Of a walk in a circle, nothing is right but
 * that it ends. Who lies about marks and does not report returns can be shown callers of another activation. */
static void compare(const struct incstack_heap_object *top, const struct incstack_heap_object *old,
		    const struct snapshot *shot)
{
	uint32_t i = 0;
	bool cut = false, is_old = false;
	toy.traces++;
	if (toy.options.lies & (LIE_CIRCLE | LIE_UNMARKED))
		return;
	for (const struct incstack_heap_object *o = top; o; o = o->parent, i++) {
		REQUIRE(i < shot->count);
		REQUIRE(is_same(&o->frame, &shot->frames[i].frame));
		is_old |= o == old;
		REQUIRE(!is_old || shot->frames[i].before ||
			toy.options.mode == INCSTACK_HEAP_VALIDATE);
		cut = o->frame.flags & INCSTACK_HEAP_TRUNCATED;
		REQUIRE(!o->parent == (cut || (o->frame.flags & INCSTACK_HEAP_BASE) != 0));
	}
	toy.compared += i;
	REQUIRE(cut || i == shot->count);
	REQUIRE(cut || is_old || !old || toy.options.reports == REPORT_NOTHING || toy.lied);
	toy.missing += shot->count - i;
}

void toy_sample(void)
{
	struct coroutine *c = toy.now;
	if (!c->top || c->samples == SNAPSHOTS)
		return;
	struct snapshot shot = take_snapshot(c);
	if (toy_expect(incstack_heap_stack_sample(c->stack, (uintptr_t)c->top, c->samples, 7))) {
		free(shot.frames);
		return;
	}
	mark_as_seen(c);
	c->snapshots[c->samples++] = shot;
}

void toy_trace(void)
{
	const struct incstack_heap_object *top;
	struct coroutine *c = toy.now;
	if (!c->top)
		return;
	struct snapshot shot = take_snapshot(c);
	if (!toy_expect(incstack_heap_stack_trace(c->stack, (uintptr_t)c->top, &top)))
		compare(top, NULL, &shot);
	mark_as_seen(c); /* also if there was no memory for the rest of it */
	free(shot.frames);
}

void toy_drop_samples(struct coroutine *c)
{
	while (c->samples)
		free(c->snapshots[--c->samples].frames);
}

/* A number for all that a tree shows, but for the names of frames that were moved. */
static uint64_t sum_of(const struct incstack_heap_tree *tree)
{
	uint64_t sum = tree->count;
	for (const struct incstack_heap_trace *t = tree->traces; t; t = t->next) {
		sum = sum * 31 + t->id;
		for (const struct incstack_heap_object *o = t->top; o; o = o->parent)
			sum = (sum * 31 + o->frame.function) * 31 + o->frame.position +
			      o->frame.kind * 7u + o->frame.flags * 11u;
	}
	return sum;
}

static void drop(struct kept *kept)
{
	if (!kept->tree)
		return;
	REQUIRE(sum_of(kept->tree) == kept->sum);
	if (kept->coroutine && toy.traces % 4)
		REQUIRE(incstack_heap_tree_release(kept->tree, kept->coroutine->stack) == 0);
	else
		incstack_heap_tree_release(kept->tree, NULL);
	*kept = (struct kept){0};
}

void toy_drop_trees(void)
{
	for (int i = 0; i < KEPT; i++)
		drop(&toy.kept[i]);
}

/* Releases the tree, or keeps it instead of one that was kept before. */
static void keep(const struct incstack_heap_tree *tree)
{
	struct kept kept = {tree, toy.now, sum_of(tree)};
	struct kept *place = &toy.kept[toy_below(KEPT)];
	if (toy_below(2)) {
		drop(place);
		*place = kept;
	} else {
		drop(&kept);
	}
}

int toy_retrieve(void)
{
	const struct incstack_heap_tree *tree;
	struct coroutine *c = toy.now;
	uint64_t id = 0;
	int error = toy_expect(incstack_heap_stack_retrieve(c->stack, (uintptr_t)c->top, &tree));
	if (error)
		return error;
	REQUIRE(tree->count == c->samples);
	for (const struct incstack_heap_trace *t = tree->traces; t; t = t->next) {
		REQUIRE(t->id == id++ && t->weight == 7);
		compare(t->top, t->old, &c->snapshots[t->id]);
	}
	REQUIRE(id == tree->count);
	keep(tree);
	toy_drop_samples(c);
	return 0;
}
