/* SPDX-License-Identifier: MIT
 *
 * The calling context tree. A hash table leads from a node and a place in a code to the node below.
 */
#include "contexts.h"

#include <stdlib.h>
#include <string.h>

struct context *contexts;
uint32_t context_count;

static uint32_t context_room;
static uint32_t *table; /* numbers of nodes; 0: free */
static size_t table_size;

static bool make_room(void)
{
	if (context_count < context_room)
		return true;
	const uint32_t room = context_room ? 2 * context_room : 4096;
	if (room > UINT32_MAX / 2)
		return false;
	struct context *more = realloc(contexts, room * sizeof(*contexts));
	if (!more)
		return false;
	contexts = more;
	context_room = room;
	return true;
}

bool contexts_open(void)
{
	contexts_free();
	if (!make_room())
		return false;
	memset(contexts, 0, CONTEXTS_FIRST * sizeof(*contexts));
	context_count = CONTEXTS_FIRST;
	return true;
}

static size_t home(uint32_t parent, uint32_t code, uint32_t place)
{
	uint64_t key = ((uint64_t)parent << 32 | code) * UINT64_C(0x9e3779b97f4a7c15);
	key = (key ^ key >> 29 ^ place) * UINT64_C(0xbf58476d1ce4e5b9);
	return (size_t)(key >> 24) & (table_size - 1);
}

/* Returns the place in the table of the node, or the free place where it belongs. */
static uint32_t *find(uint32_t parent, uint32_t code, uint32_t place)
{
	size_t i = home(parent, code, place);
	while (table[i]) {
		const struct context *c = &contexts[table[i]];
		if (c->parent == parent && c->code == code && c->place == place)
			break;
		i = (i + 1) & (table_size - 1);
	}
	return &table[i];
}

static bool grow_table(void)
{
	const size_t size = table_size ? 2 * table_size : 8192;
	uint32_t *more = calloc(size, sizeof(*more));
	if (!more)
		return false;
	free(table);
	table = more;
	table_size = size;
	for (uint32_t i = CONTEXTS_FIRST; i < context_count; i++)
		*find(contexts[i].parent, contexts[i].code, contexts[i].place) = i;
	return true;
}

/* Returns the node of a frame below its caller's. A frame that Python itself does not show is its caller. */
uint32_t contexts_child(uint32_t parent, const struct incstack_heap_frame *frame, bool is_entry)
{
	if (frame->kind == FRAMES_SHIM)
		return parent;
	PyCodeObject *object = (PyCodeObject *)(uintptr_t)frame->function;
	if (frames_is_incomplete(object, frame))
		return parent;
	const uint32_t code = codes_number(object);
	const uint32_t place = frame->position | (is_entry ? CONTEXTS_ENTRY : 0);
	if (!code || (2 * (size_t)context_count >= table_size && !grow_table()) || !make_room())
		return CONTEXTS_LOST;
	uint32_t *at = find(parent, code, place);
	if (*at)
		return *at;
	const int line = PyCode_Addr2Line(object, (int)(frame->position * sizeof(_Py_CODEUNIT)));
	contexts[context_count] = (struct context){
		.parent = parent, .code = code, .line = line > 0 ? line : 0, .place = place};
	return *at = context_count++;
}

void contexts_free(void)
{
	free(contexts);
	free(table);
	contexts = NULL;
	table = NULL;
	context_count = context_room = 0;
	table_size = 0;
}
