/* SPDX-License-Identifier: MIT
 *
 * The first pass, which is not timed: every peer walks the same stack and must see the same frames,
 * and two successive stacks must differ in as many frames as the table says. This file is compiled
 * with frame pointers, so that the walk by frame pointers passes its functions.
 */
#include <stdio.h>
#include <string.h>

#include "measure.h"

enum { TURNS = 256, RETRIEVE_EACH = 50 }; /* enough for the distance to adapt several times */

struct list {
	uintptr_t pcs[FRAMES_MAX];
	size_t count;
};

struct comparison {
	const struct cell *cell;
	struct list reference, last, seen;
	uint64_t turn, checked;
	int failed;
};

/* Drops the frames that are younger than the frame that `first` returns to. */
static void drop_younger(struct list *list, uintptr_t first)
{
	size_t i = 0;
	while (i < list->count && list->pcs[i] != first)
		i++;
	list->count -= i;
	memmove(list->pcs, list->pcs + i, list->count * sizeof(list->pcs[0]));
}

/* Prints only the first complaint. */
static void complain(struct comparison *c, enum peer peer, size_t at)
{
	if (c->failed++)
		return;
	fprintf(stderr,
		"walk_bench: %s differs from unw_backtrace at frame %zu "
		"(%zu and %zu frames; %s depth %u, %u changed, turn %llu)\n",
		peer_names[peer], at, c->seen.count, c->reference.count,
		c->cell->frame_pointers ? "fp" : "nofp", c->cell->depth, c->cell->popped,
		(unsigned long long)c->turn);
}

/* Compares a peer with the reference. The walk by frame pointers ends at the base of the workload,
 * so it sees a prefix of what the others see. */
static void check(struct comparison *c, enum peer peer)
{
	size_t least = peer == PEER_FP_WALK ? c->cell->depth : c->reference.count;
	size_t at = 0;
	while (at < c->seen.count && at < c->reference.count &&
	       c->seen.pcs[at] == c->reference.pcs[at])
		at++;
	if (at < c->seen.count || at < least || at < c->cell->depth)
		complain(c, peer, at);
}

/* Checks how many frames have changed: those above the floor are new, and the floor's own position
 * has changed, too. */
static void check_change(struct comparison *c)
{
	size_t count = c->cell->popped, at = 1;
	while (at <= count && at < c->last.count && c->last.pcs[at] != c->reference.pcs[at])
		at++;
	if (c->last.count && at <= count)
		complain(c, PEER_NONE, at);
	if (c->last.count && at < c->last.count && c->cell->popped < c->cell->depth &&
	    c->last.pcs[at] != c->reference.pcs[at])
		complain(c, PEER_NONE, at);
}

static void look(struct comparison *c, enum peer peer, struct workload *w, uintptr_t first)
{
	peer_sample(peer)(w);
	c->seen.count = peer_last(peer, c->seen.pcs, FRAMES_MAX);
	drop_younger(&c->seen, first);
}

static void compare_peers(struct workload *w)
{
	struct comparison *c = w->context;
	uintptr_t first = (uintptr_t)__builtin_return_address(0);
	look(c, PEER_UNW_BACKTRACE, w, first);
	c->last = c->reference;
	c->reference = c->seen;
	check_change(c);
	for (enum peer peer = PEER_UNW_BACKTRACE + 1; peer < PEER_COUNT; peer++) {
		if (!peer_fits(peer, c->cell))
			continue;
		look(c, peer, w, first);
		check(c, peer);
	}
	c->turn++;
}

/* ---- ours, whose barriers stay from one turn to the next ---------------------------- */

/* What libunwind saw at each turn. The traces are compared when all of them are complete. */
static struct list seen[TURNS];

static void walk_slowly(struct list *list)
{
	static struct incstack_frame frames[FRAMES_MAX];
	int count = incstack_native_walk(frames, FRAMES_MAX);
	list->count = count > 0 ? (size_t)count : 0;
	for (size_t i = 0; i < list->count; i++)
		list->pcs[i] = frames[i].pc;
}

static void check_trace(struct comparison *c, const struct incstack_trace *t)
{
	c->reference = seen[t->id];
	c->seen.count = 0;
	for (const struct incstack_frame_object *o = t->top; o; o = o->parent)
		c->seen.pcs[c->seen.count++] = (uintptr_t)o->function;
	/* The top of our trace is compare_ours. Only the walk below it is compared. */
	if (c->seen.count == c->reference.count + 1)
		drop_younger(&c->seen, c->seen.pcs[1]);
	check(c, PEER_OURS);
}

/* Retrieves and compares, but not after each turn: callers that are known stay, and later walks
 * find them again. */
static void check_traces(struct comparison *c)
{
	struct incstack_tree *tree;
	uint64_t count = 0;
	if (incstack_stack_retrieve(peers.ours.stack, &tree)) {
		complain(c, PEER_OURS, 0);
		return;
	}
	for (const struct incstack_trace *t = tree->traces; t; t = t->next, count++)
		check_trace(c, t);
	c->checked += count;
	incstack_tree_release(tree);
}

static void compare_ours(struct workload *w)
{
	struct comparison *c = w->context;
	walk_slowly(&seen[c->turn]);
	drop_younger(&seen[c->turn], (uintptr_t)__builtin_return_address(0));
	peers.ours.pending = c->turn; /* the identifier of the trace */
	peer_sample(PEER_OURS)(w);
	if (++c->turn % RETRIEVE_EACH == 0)
		check_traces(c);
}

static void finish(struct workload *w)
{
	struct comparison *c = w->context;
	check_traces(c);
	if (c->checked != TURNS)
		complain(c, PEER_OURS, 0);
	peers.ours.pending = peers.ours.upkeep = 0;
	peer_end(PEER_OURS);
	workload_stop(w);
}

static void stop(struct workload *w)
{
	workload_stop(w);
}

static void run(struct comparison *c, void (*sample)(struct workload *),
		void (*boundary)(struct workload *))
{
	struct workload w = {.depth = c->cell->depth,
			     .popped = c->cell->popped,
			     .sample = sample,
			     .boundary = boundary,
			     .left = TURNS,
			     .context = c};
	c->turn = 0;
	if (c->cell->frame_pointers)
		workload_run_fp(&w);
	else
		workload_run_nofp(&w);
}

int cell_compare(const struct cell *cell)
{
	static struct comparison c;
	memset(&c, 0, sizeof(c));
	c.cell = cell;
	if (peers_open(cell->depth))
		return -1;
	run(&c, compare_peers, stop);
	peer_begin(PEER_OURS);
	peers.ours.interval = UINT64_MAX; /* retrieved by check_traces */
	run(&c, compare_ours, finish);
	if (peers_faults()) {
		fprintf(stderr, "walk_bench: %llu samples failed or are incomplete\n",
			(unsigned long long)peers_faults());
		c.failed = 1;
	}
	peers_close();
	return c.failed ? -1 : 0;
}
