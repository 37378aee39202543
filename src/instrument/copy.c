/* SPDX-License-Identifier: MIT
 *
 * Copies trees. A tree that its thread goes on writing is read up to the number of nodes that it had at first.
 */
#include "copy.h"

#include <stdlib.h>

#include "meter.h"

int incstack__copy_init(struct copy *copy)
{
	*copy = (struct copy){.nodes = NULL};
	return incstack__table_init(&copy->table);
}

void incstack__copy_free(struct copy *copy)
{
	free(copy->nodes);
	free(copy->table.slots);
	*copy = (struct copy){.nodes = NULL};
}

static uint32_t hash_of(const struct copied *node)
{
	return incstack__hash_pair((uintptr_t)node->method,
				   (uint64_t)node->parent << 32 ^ node->thread);
}

static int make_room(struct copy *copy)
{
	const size_t room = copy->room ? copy->room * 2 : 64;
	struct copied *grown;

	if (copy->count < copy->room)
		return 0;
	if (room > INCSTACK__NONE)
		return INCSTACK_ENOMEM;
	grown = realloc(copy->nodes, room * sizeof(*grown));
	if (!grown)
		return INCSTACK_ENOMEM;
	copy->nodes = grown;
	copy->room = room;
	return 0;
}

/* Finds or adds a context, which has no weights then, and writes its number. */
static int find(struct copy *copy, const struct copied *like, uint32_t *number)
{
	const uint32_t hash = hash_of(like);
	size_t cursor = hash;
	int error;

	while ((*number = incstack__table_probe(&copy->table, hash, &cursor)) != INCSTACK__NONE) {
		const struct copied *at = &copy->nodes[*number];

		if (at->method == like->method && at->parent == like->parent &&
		    at->thread == like->thread)
			return 0;
	}
	error = make_room(copy);
	if (!error)
		error = incstack__table_insert(&copy->table, hash, (uint32_t)copy->count);
	if (error)
		return error;
	*number = (uint32_t)copy->count++;
	copy->nodes[*number] = (struct copied){
		.method = like->method, .thread = like->thread, .parent = like->parent};
	return 0;
}

static int add_node(struct copy *copy, const struct copied *node, uint32_t *number)
{
	const int error = find(copy, node, number);
	struct copied *to;

	if (error)
		return error;
	to = &copy->nodes[*number];
	to->timed += node->timed;
	to->ticks += node->ticks;
	to->inside_timed += node->inside_timed;
	to->inside_counted += node->inside_counted;
	to->counted += node->counted;
	to->waits += node->waits;
	to->sampled_ns += node->sampled_ns;
	to->by_samples_ns += node->by_samples_ns;
	to->given_ns += node->given_ns;
	return 0;
}

static struct copied copy_of(const struct node *node, uint64_t id, uint32_t parent)
{
	return (struct copied){
		.method = node->method,
		.thread = id,
		.parent = parent,
		.timed = value_of(&node->timed),
		.ticks = value_of(&node->ticks),
		.inside_timed = value_of(&node->inside_timed),
		.inside_counted = value_of(&node->inside_counted),
		.counted = value_of(&node->counted),
		.waits = value_of(&node->waits),
		.sampled_ns = value_of(&node->sampled_ns),
		.by_samples_ns = value_of(&node->by_samples_ns),
		.given_ns = value_of(&node->given_ns),
	};
}

static uint64_t calls_from(const struct incstack_meter_thread *thread, uint32_t first,
			   uint32_t count)
{
	uint64_t calls = 0;

	for (uint32_t i = first; i < count; i++)
		calls += value_of(&thread->nodes[i].timed) + value_of(&thread->nodes[i].counted);
	return calls;
}

int incstack__copy_add_thread(struct copy *copy, const struct incstack_meter_thread *thread,
			      uint64_t id, uint64_t *lost)
{
	/* acquire: pairs with the release that publishes a node. */
	const uint32_t count = atomic_load_explicit(&thread->node_count, memory_order_acquire);
	uint32_t *numbers = malloc(count * sizeof(*numbers));
	int error = numbers ? 0 : INCSTACK_ENOMEM;
	uint32_t i = 1;

	if (numbers)
		numbers[0] = INCSTACK__NONE; /* outside of the subgraph */
	for (; i < count && !error; i++) {
		const struct node *node = &thread->nodes[i];
		const struct copied from = copy_of(node, id, numbers[node->parent]);

		error = add_node(copy, &from, &numbers[i]);
	}
	*lost = error ? calls_from(thread, i > 1 ? i - 1 : 1, count) : 0;
	free(numbers);
	return error;
}

int incstack__copy_add(struct copy *copy, const struct copy *from)
{
	uint32_t *numbers = malloc((from->count + 1) * sizeof(*numbers));
	int error = numbers ? 0 : INCSTACK_ENOMEM;

	for (size_t i = 0; i < from->count && !error; i++) {
		struct copied node = from->nodes[i];

		if (node.parent != INCSTACK__NONE)
			node.parent = numbers[node.parent];
		error = add_node(copy, &node, &numbers[i]);
	}
	free(numbers);
	return error;
}
