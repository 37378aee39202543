/* SPDX-License-Identifier: MIT
 *
 * Groups contexts by their callers without repetitions. Each node gets a short form: the short form of its parent and the
 * node's frame, and if the last few functions of that are those before them, without them. So each node is visited once,
 * however deep it is. Contexts are of one group if their short forms and their innermost lines are equal.
 */
#include "groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/incstack.h>

#include "base/table.h"
#include "profile/nodes.h"

/* So many functions that call one another are seen to repeat. */
enum { PERIOD_MOST = 4 };

/* Texts of a profile that are equal are one pointer. */
struct frame {
	const char *name, *file;
	uint64_t function;
	int32_t line;
};

/* A short form: another one, and a frame. */
struct form {
	struct frame frame;
	uint32_t parent;
};

struct grouping {
	const struct incstack_profile *profile;
	uint32_t kind;
	struct form *forms; /* of which the first one is of the root */
	uint32_t *form_of;  /* for each node */
	uint32_t form_count;
	struct incstack__table form_table, group_table;
	struct tool_groups *groups;
	struct frame *innermost; /* for each group */
	uint32_t *group_forms;   /* likewise */
};

static struct frame frame_of(const struct incstack_profile *profile, uint32_t number)
{
	struct incstack_profile_node node = {.size = sizeof(node)};

	(void)incstack_profile_node(profile, number, &node);
	return (struct frame){node.frame.name, node.frame.file, node.frame.function,
			      node.frame.line};
}

static bool is_one_function(const struct frame *a, const struct frame *b)
{
	return a->name == b->name && a->function == b->function;
}

static bool is_equal(const struct frame *a, const struct frame *b)
{
	return is_one_function(a, b) && a->file == b->file && a->line == b->line;
}

static uint32_t hash_of(const struct frame *frame, uint32_t form)
{
	return incstack__hash_pair((uintptr_t)frame->name + frame->function + (uint32_t)frame->line,
				   form);
}

/* ---- short forms ----------------------------------------------------------------- */

/* Finds or adds a form. There is room for one for each node. */
static uint32_t child_of(struct grouping *g, uint32_t parent, const struct frame *frame)
{
	const uint32_t hash = hash_of(frame, parent);
	size_t cursor = hash;
	uint32_t at;

	while ((at = incstack__table_probe(&g->form_table, hash, &cursor)) != INCSTACK__NONE)
		if (g->forms[at].parent == parent && is_equal(&g->forms[at].frame, frame))
			return at;
	(void)incstack__table_insert(&g->form_table, hash, g->form_count);
	g->forms[g->form_count] = (struct form){*frame, parent};
	return g->form_count++;
}

/* Returns the form without the last `period` frames, if these repeat those before them; else the form itself. */
static uint32_t without_last(const struct grouping *g, uint32_t form, unsigned period)
{
	uint32_t before = form;
	uint32_t last = form;
	uint32_t shorter;

	for (unsigned i = 0; i < period && before; i++)
		before = g->forms[before].parent;
	shorter = before;
	for (unsigned i = 0; i < period; i++) {
		if (!before || !is_one_function(&g->forms[last].frame, &g->forms[before].frame))
			return form;
		last = g->forms[last].parent;
		before = g->forms[before].parent;
	}
	return shorter;
}

static uint32_t shorten(const struct grouping *g, uint32_t form)
{
	for (unsigned period = 1; period <= PERIOD_MOST; period++) {
		const uint32_t shorter = without_last(g, form, period);

		if (shorter != form)
			return shorter;
	}
	return form;
}

/* ---- groups ---------------------------------------------------------------------- */

static void add(struct grouping *g, uint32_t node, const struct frame *frame, uint64_t weight)
{
	const uint32_t form = g->form_of[node];
	const uint32_t hash = hash_of(frame, form);
	struct tool_groups *groups = g->groups;
	struct tool_group *group;
	size_t cursor = hash;
	uint32_t at;

	while ((at = incstack__table_probe(&g->group_table, hash, &cursor)) != INCSTACK__NONE)
		if (g->group_forms[at] == form && is_equal(&g->innermost[at], frame))
			break;
	if (at == INCSTACK__NONE) {
		at = (uint32_t)groups->count++;
		(void)incstack__table_insert(&g->group_table, hash, at);
		g->group_forms[at] = form;
		g->innermost[at] = *frame;
	}
	group = &groups->all[at];
	group->weight += weight;
	group->count++;
	if (weight > group->heaviest) {
		group->heaviest = weight;
		group->node = node;
	}
}

/* A parent's number is smaller than its children's. */
static void visit_all(struct grouping *g, uint32_t nodes)
{
	for (uint32_t node = 1; node < nodes; node++) {
		const struct frame frame = frame_of(g->profile, node);
		const uint32_t parent = g->form_of[incstack__profile_parent(g->profile, node)];
		const uint64_t weight = incstack__profile_self(g->profile, node, g->kind);

		g->form_of[node] = shorten(g, child_of(g, parent, &frame));
		g->groups->total += weight;
		if (weight > 0)
			add(g, node, &frame, weight);
	}
}

/* Heaviest first; of equal ones that which was added first. */
static int by_weight(const void *a, const void *b)
{
	const struct tool_group *left = a;
	const struct tool_group *right = b;

	if (left->weight != right->weight)
		return left->weight < right->weight ? 1 : -1;
	return left->node < right->node ? -1 : left->node > right->node;
}

static int make_room(struct grouping *g, uint32_t nodes)
{
	g->forms = calloc(nodes, sizeof(*g->forms));
	g->form_of = calloc(nodes, sizeof(*g->form_of));
	g->innermost = calloc(nodes, sizeof(*g->innermost));
	g->group_forms = calloc(nodes, sizeof(*g->group_forms));
	g->groups->all = calloc(nodes, sizeof(*g->groups->all));
	g->form_count = 1;
	if (!g->forms || !g->form_of || !g->innermost || !g->group_forms || !g->groups->all ||
	    incstack__table_init_for(&g->form_table, nodes) != 0 ||
	    incstack__table_init_for(&g->group_table, nodes) != 0)
		return INCSTACK_ENOMEM;
	return 0;
}

int tool_groups_find(const struct incstack_profile *profile, uint32_t kind,
		     struct tool_groups *groups)
{
	const uint32_t nodes = incstack_profile_nodes(profile);
	struct grouping grouping = {.profile = profile, .kind = kind, .groups = groups};
	int error;

	*groups = (struct tool_groups){0};
	error = make_room(&grouping, nodes);
	if (!error)
		visit_all(&grouping, nodes);
	if (groups->count > 0)
		qsort(groups->all, groups->count, sizeof(*groups->all), by_weight);
	free(grouping.forms);
	free(grouping.form_of);
	free(grouping.innermost);
	free(grouping.group_forms);
	free(grouping.form_table.slots);
	free(grouping.group_table.slots);
	if (error)
		free(groups->all);
	return error;
}
