/* SPDX-License-Identifier: MIT
 *
 * Sums the weights of contexts by the line where they end, or by the innermost line of the program's own source.
 * Names and files are interned by the profile, so equal ones are one pointer.
 */
#include "places.h"

#include <stdlib.h>

#include "base/table.h"
#include "own_source.h"
#include "profile/nodes.h"

static void describe(const struct incstack_profile *profile, uint32_t number,
		     struct incstack_profile_node *node)
{
	*node = (struct incstack_profile_node){.size = sizeof(*node)};
	(void)incstack_profile_node(profile, number, node);
}

/* Describes the innermost caller whose source is the program's own, or the node itself if there is none. */
static void describe_own(const struct incstack_profile *profile, uint32_t number,
			 struct incstack_profile_node *node)
{
	for (uint32_t at = number; at != INCSTACK_PROFILE_ROOT;
	     at = incstack__profile_parent(profile, at)) {
		describe(profile, at, node);
		if (tool_source_is_own(node->frame.file))
			return;
	}
	describe(profile, number, node);
}

static bool is_at(const struct tool_place *place, const struct incstack_profile_frame *frame)
{
	return place->name == frame->name && place->file == frame->file &&
	       place->line == frame->line;
}

/* Returns the number of the frame's place, which is added if it is new; NONE: no memory. */
static uint32_t place_of(struct tool_places *places, struct incstack__table *table,
			 const struct incstack_profile_frame *frame)
{
	const uint32_t hash = incstack__hash_pair((uintptr_t)frame->name,
						  (uintptr_t)frame->file + (uint32_t)frame->line);
	const size_t count = places->count;
	size_t cursor = hash;
	uint32_t at;

	while ((at = incstack__table_probe(table, hash, &cursor)) != INCSTACK__NONE)
		if (is_at(&places->all[at], frame))
			return at;
	if ((count & (count - 1)) == 0) {
		struct tool_place *grown =
			realloc(places->all, (count ? 2 * count : 1) * sizeof(*grown));

		if (!grown)
			return INCSTACK__NONE;
		places->all = grown;
	}
	if (incstack__table_insert(table, hash, (uint32_t)count) != 0)
		return INCSTACK__NONE;
	places->all[count] = (struct tool_place){.name = frame->name,
						 .name_length = frame->name_length,
						 .file = frame->file,
						 .line = frame->line};
	return (uint32_t)places->count++;
}

static int add_node(struct tool_places *places, struct incstack__table *table,
		    const struct incstack_profile *profile, uint32_t number, bool by_own_source)
{
	struct incstack_profile_node node;
	struct incstack_profile_kind kind;
	uint32_t at;

	if (by_own_source)
		describe_own(profile, number, &node);
	else
		describe(profile, number, &node);
	at = place_of(places, table, &node.frame);
	if (at == INCSTACK__NONE)
		return INCSTACK_ENOMEM;
	for (uint32_t k = 0; incstack_profile_kind(profile, k, &kind) == 0; k++)
		places->all[at].own[k] += incstack__profile_self(profile, number, k);
	return 0;
}

int tool_places_find(const struct incstack_profile *profile, bool by_own_source,
		     struct tool_places *places)
{
	const uint32_t count = incstack_profile_nodes(profile);
	struct incstack__table table;
	int error = incstack__table_init(&table);

	*places = (struct tool_places){0};
	for (uint32_t i = 1; i < count && !error; i++)
		if (incstack__profile_weighs(profile, i))
			error = add_node(places, &table, profile, i, by_own_source);
	free(table.slots);
	if (error) {
		free(places->all);
		*places = (struct tool_places){0};
	}
	return error;
}

static int by_kind(const void *a, const void *b, void *kind)
{
	const uint64_t left = ((const struct tool_place *)a)->own[*(const uint32_t *)kind];
	const uint64_t right = ((const struct tool_place *)b)->own[*(const uint32_t *)kind];

	return left < right ? 1 : -(left > right);
}

void tool_places_sort(struct tool_places *places, uint32_t kind)
{
	if (places->count > 0)
		qsort_r(places->all, places->count, sizeof(*places->all), by_kind, &kind);
}
