/* SPDX-License-Identifier: MIT
 *
 * The calling context tree: creates it, adds nodes and weights, and answers questions about it.
 */
#include "cct.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

static int node_add(struct incstack_profile *profile, uint32_t parent, uint32_t frame)
{
	size_t at = profile->nodes_used;
	int error = incstack__reserve((void **)&profile->nodes, &profile->nodes_room, at + 1,
				      sizeof(*profile->nodes));

	if (!error)
		error = incstack__reserve((void **)&profile->weights, &profile->weights_room,
					  (at + 1) * profile->kinds, sizeof(*profile->weights));
	if (error)
		return error;
	profile->nodes[at] = (struct incstack__node){.parent = parent, .frame = frame};
	for (uint32_t k = 0; k < profile->kinds; k++)
		profile->weights[at * profile->kinds + k] = 0;
	profile->nodes_used++;
	return 0;
}

static int profile_init(struct incstack_profile *profile)
{
	int error = incstack__table_init(&profile->name_table);

	if (!error)
		error = incstack__table_init(&profile->frame_table);
	if (!error)
		error = incstack__table_init(&profile->node_table);
	if (!error)
		error = incstack__modules_init(&profile->modules);
	if (!error)
		error = incstack__extra_init(&profile->extra);
	if (!error)
		error = node_add(profile, INCSTACK__NONE, INCSTACK__NONE);
	return error;
}

static bool kinds_valid(const struct incstack_profile_kind *kinds, uint32_t count)
{
	if (!kinds || count < 1 || count > INCSTACK_PROFILE_KINDS_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!kinds[i].name || !kinds[i].unit || !incstack__string_valid(kinds[i].name) ||
		    !incstack__string_valid(kinds[i].unit))
			return false;
	return true;
}

int incstack__profile_blank(struct incstack_profile **profile)
{
	int error;

	*profile = calloc(1, sizeof(**profile));
	if (!*profile)
		return INCSTACK_ENOMEM;
	(*profile)->meta.size = sizeof((*profile)->meta);
	error = profile_init(*profile);
	if (error) {
		incstack_profile_destroy(*profile);
		*profile = NULL;
	}
	return error;
}

int incstack__profile_set_kinds(struct incstack_profile *profile,
				const struct incstack_profile_kind *kinds, uint32_t count)
{
	size_t size = sizeof(*profile->weights);
	int error = incstack__reserve((void **)&profile->weights, &profile->weights_room,
				      profile->nodes_used * count, size);

	for (uint32_t i = 0; i < count && !error; i++) {
		error = incstack__name_intern(profile, kinds[i].name, strlen(kinds[i].name),
					      &profile->kind_name[i]);
		if (!error)
			error = incstack__name_intern(profile, kinds[i].unit, strlen(kinds[i].unit),
						      &profile->kind_unit[i]);
	}
	if (error)
		return error;
	memset(profile->weights, 0, profile->nodes_used * count * size);
	profile->kinds = count;
	return 0;
}

int incstack_profile_create(const struct incstack_profile_kind *kinds, uint32_t count,
			    struct incstack_profile **profile)
{
	struct incstack_profile *made;
	int error;

	if (!profile || !kinds_valid(kinds, count))
		return INCSTACK_EINVAL;
	error = incstack__profile_blank(&made);
	if (error)
		return error;
	error = incstack__profile_set_kinds(made, kinds, count);
	if (error) {
		incstack_profile_destroy(made);
		return error;
	}
	*profile = made;
	return 0;
}

void incstack_profile_destroy(struct incstack_profile *profile)
{
	if (!profile)
		return;
	free(profile->name_table.slots);
	free(profile->frame_table.slots);
	free(profile->node_table.slots);
	free(profile->texts);
	free(profile->names);
	free(profile->frames);
	free(profile->nodes);
	free(profile->weights);
	free(profile->program);
	free(profile->mode);
	incstack__modules_free(&profile->modules);
	incstack__extra_free(&profile->extra);
	incstack__timeline_drop(profile);
	incstack__curve_drop(profile);
	free(profile);
}

static uint32_t node_hash(uint32_t parent, uint32_t frame)
{
	return incstack__hash_pair(parent, frame);
}

/* Rebuilds the table. There are no more nodes than before, so no insertion grows the table. */
void incstack__node_table_renew(struct incstack_profile *profile)
{
	struct incstack__table *table = &profile->node_table;

	incstack__table_clear(table);
	for (size_t i = 1; i < profile->nodes_used; i++)
		(void)incstack__table_insert(
			table, node_hash(profile->nodes[i].parent, profile->nodes[i].frame),
			(uint32_t)i);
}

/* Most nodes are there already. So what adds a node is a function of its own, whose registers a search does
 * not save. */
__attribute__((noinline)) static int child_add(struct incstack_profile *profile, uint32_t parent,
					       uint32_t frame, uint32_t hash, uint32_t *node)
{
	int error;

	if (profile->nodes_used >= INCSTACK__NONE - 1)
		return INCSTACK_ELIMIT;
	error = node_add(profile, parent, frame);
	if (error)
		return error;
	*node = (uint32_t)profile->nodes_used - 1;
	error = incstack__table_insert(&profile->node_table, hash, *node);
	if (error)
		profile->nodes_used--;
	return error;
}

int incstack__node_child(struct incstack_profile *profile, uint32_t parent, uint32_t frame,
			 uint32_t *node)
{
	uint32_t hash = node_hash(parent, frame);
	size_t cursor = hash;

	while ((*node = incstack__table_probe(&profile->node_table, hash, &cursor)) !=
	       INCSTACK__NONE) {
		const struct incstack__node *n = &profile->nodes[*node];

		if (n->parent == parent && n->frame == frame)
			return 0;
	}
	return child_add(profile, parent, frame, hash, node);
}

/* Adds to the weight of a node. No node weighs more than its profile, so it is enough to check
 * the total. Every weight then fits into the signed 64 bits of the file formats. */
int incstack__node_weigh(struct incstack_profile *profile, uint32_t node, uint32_t kind,
			 uint64_t weight)
{
	if (weight > (uint64_t)INT64_MAX - profile->total[kind])
		return INCSTACK_ERANGE;
	profile->total[kind] += weight;
	profile->weights[(size_t)node * profile->kinds + kind] += weight;
	return 0;
}

int incstack_profile_add_weights(struct incstack_profile *profile, uint32_t node,
				 const uint64_t *weights)
{
	if (!profile || !weights || node == INCSTACK_PROFILE_ROOT || node >= profile->nodes_used)
		return INCSTACK_EINVAL;
	for (uint32_t kind = 0; kind < profile->kinds; kind++)
		if (weights[kind] > (uint64_t)INT64_MAX - profile->total[kind])
			return INCSTACK_ERANGE;
	for (uint32_t kind = 0; kind < profile->kinds; kind++)
		(void)incstack__node_weigh(profile, node, kind, weights[kind]);
	return 0;
}

bool incstack__profile_weighs(const struct incstack_profile *profile, uint32_t node)
{
	for (uint32_t k = 0; k < profile->kinds; k++)
		if (profile->weights[(size_t)node * profile->kinds + k])
			return true;
	return false;
}

int incstack__node_path(const struct incstack_profile *profile, uint32_t node, uint32_t **path,
			size_t *room, size_t *depth)
{
	*depth = 0;
	for (; node != INCSTACK_PROFILE_ROOT; node = profile->nodes[node].parent) {
		int error = incstack__reserve((void **)path, room, *depth + 1, sizeof(**path));

		if (error)
			return error;
		(*path)[(*depth)++] = profile->nodes[node].frame;
	}
	return 0;
}

/* Finds or adds a frame of the public interface. */
static int frame_of(struct incstack_profile *profile, const struct incstack_profile_frame *frame,
		    uint32_t *number)
{
	const struct incstack__code code = {frame->module, frame->build_id, frame->address};
	struct incstack__frame key = {.line = frame->line,
				      .kind = frame->kind,
				      .flags = frame->flags,
				      .key = INCSTACK__NONE};
	int error = incstack__code_intern(profile, &code, &key);

	if (error)
		return error;
	if (frame->name)
		return incstack__frame_at(profile, frame->name, frame->name_length, frame->file,
					  &key, number);
	key.function = frame->function;
	key.position = frame->position;
	return incstack__frame_intern(profile, &key, number);
}

int incstack_profile_add_node(struct incstack_profile *profile, uint32_t parent,
			      const struct incstack_profile_frame *frame, uint32_t *node)
{
	uint32_t number;
	int error;

	if (!profile || !frame || frame->size != sizeof(*frame) || !node ||
	    parent >= profile->nodes_used || frame->flags & INCSTACK_PROFILE_LABEL ||
	    (frame->name && !frame->name_length) || frame->kind > INCSTACK_KIND_C ||
	    frame->line < 0)
		return INCSTACK_EINVAL;
	if ((frame->name && !incstack__text_valid(frame->name, frame->name_length)) ||
	    !incstack__string_valid(frame->file) || !incstack__string_valid(frame->module) ||
	    !incstack__string_valid(frame->build_id))
		return INCSTACK_EFORMAT;
	error = frame_of(profile, frame, &number);
	return error ? error : incstack__node_child(profile, parent, number, node);
}

uint32_t incstack_profile_nodes(const struct incstack_profile *profile)
{
	return profile ? (uint32_t)profile->nodes_used : 0;
}

uint32_t incstack__profile_parent(const struct incstack_profile *profile, uint32_t node)
{
	return node < profile->nodes_used ? profile->nodes[node].parent : INCSTACK_PROFILE_NONE;
}

void incstack__frame_public(const struct incstack_profile *profile, uint32_t number,
			    struct incstack_profile_frame *frame)
{
	const struct incstack__frame *f = &profile->frames[number];
	struct incstack__code code;

	incstack__code_of(profile, f, &code);
	*frame = (struct incstack_profile_frame){.size = sizeof(*frame),
						 .module = code.module,
						 .build_id = code.build_id,
						 .address = code.address,
						 .position = f->position,
						 .line = f->line,
						 .kind = f->kind,
						 .flags = f->flags};
	if (!(f->flags & INCSTACK_PROFILE_LABEL))
		frame->function = f->function;
	if (f->file)
		frame->file = incstack__text(profile, f->file - 1);
	if (f->name != INCSTACK__NONE) {
		frame->name = incstack__text(profile, f->name);
		frame->name_length = profile->names[f->name].length;
	}
}

int incstack_profile_node(const struct incstack_profile *profile, uint32_t number,
			  struct incstack_profile_node *node)
{
	if (!profile || !node || node->size != sizeof(*node) || number >= profile->nodes_used)
		return INCSTACK_EINVAL;
	node->weights = profile->weights + (size_t)number * profile->kinds;
	node->parent = profile->nodes[number].parent;
	if (number == INCSTACK_PROFILE_ROOT)
		node->frame = (struct incstack_profile_frame){.size = sizeof(node->frame)};
	else
		incstack__frame_public(profile, profile->nodes[number].frame, &node->frame);
	return 0;
}

uint64_t incstack__profile_self(const struct incstack_profile *profile, uint32_t node,
				uint32_t kind)
{
	if (node >= profile->nodes_used || kind >= profile->kinds)
		return 0;
	return profile->weights[(size_t)node * profile->kinds + kind];
}

int incstack_profile_totals(const struct incstack_profile *profile, uint32_t kind, uint64_t *totals)
{
	if (!profile || !totals || kind >= profile->kinds)
		return INCSTACK_EINVAL;
	for (size_t i = 0; i < profile->nodes_used; i++)
		totals[i] = profile->weights[i * profile->kinds + kind];
	for (size_t i = profile->nodes_used - 1; i > 0; i--)
		totals[profile->nodes[i].parent] += totals[i];
	return 0;
}
