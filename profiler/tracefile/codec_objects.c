/* SPDX-License-Identifier: MIT
 *
 * Turns the frame objects of a batch into columns, and back. The parent of a run mostly is a frame of the trace
 * before it. So the column has how many frames of that trace lie below the parent.
 */
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "format.h"

enum { FAR = 255, STEPS_MOST = FAR - 1, NONE = UINT32_MAX };

/* The objects of the batch so far. */
struct objects {
	uint32_t count;
	uint32_t run;    /* where the current run begins */
	uint32_t before; /* where the run before it begins; NONE: there is none */
};

static size_t pc_bytes(uint8_t head)
{
	const size_t length = head >> INCSTACK__TRACEFILE_LENGTH_SHIFT;

	return length == INCSTACK__TRACEFILE_LENGTH_WIDE ? sizeof(uint64_t) : length;
}

static bool is_repeated(uint8_t head)
{
	return (head & INCSTACK__TRACEFILE_PARENT) == INCSTACK__TRACEFILE_REPEATED;
}

static size_t parent_bytes(uint8_t head)
{
	switch (head & INCSTACK__TRACEFILE_PARENT) {
	case INCSTACK__TRACEFILE_PARENT_NEAR:
		return sizeof(uint16_t);
	case INCSTACK__TRACEFILE_PARENT_BACK:
		return sizeof(uint32_t);
	default:
		return 0;
	}
}

/* Returns how many objects lie between the run before and the parent; FAR if the parent is not there. */
static uint8_t steps_to(const struct incstack__codec *codec, uint32_t from, uint32_t parent)
{
	for (unsigned steps = 0; steps <= STEPS_MOST && from != NONE; steps++) {
		if (from == parent)
			return (uint8_t)steps;
		from = codec->parents[from];
	}
	return FAR;
}

static uint32_t walk(const struct incstack__codec *codec, uint32_t from, unsigned steps)
{
	for (; steps > 0 && from != NONE; steps--)
		from = codec->parents[from];
	return from;
}

/* Returns the parent of the newest object, which lies before the object. */
static uint32_t code_parent(struct incstack__codec *codec, const struct objects *objects,
			    size_t bytes)
{
	const uint32_t index = objects->count;
	uint32_t parent = NONE;
	unsigned steps = FAR;

	if (codec->columns.packs) {
		parent = index - (uint32_t)incstack__codec_get(codec, bytes);
		steps = steps_to(codec, objects->before, parent);
	}
	steps = incstack__columns_byte(&codec->columns, INCSTACK__PACKED_PARENT, (uint8_t)steps);
	if (steps < FAR)
		parent = walk(codec, objects->before, steps);
	else
		parent = index - (uint32_t)incstack__columns_number(
					 &codec->columns, INCSTACK__PACKED_PARENT, index - parent);
	if (parent >= objects->run || (bytes == sizeof(uint16_t) && index - parent > UINT16_MAX))
		codec->columns.failed = true;
	incstack__codec_put(codec, index - parent, bytes);
	return codec->columns.failed ? NONE : parent;
}

static void code_object(struct incstack__codec *codec, struct objects *objects)
{
	const uint8_t head = incstack__columns_byte(&codec->columns, INCSTACK__PACKED_OBJECT,
						    (uint8_t)incstack__codec_get(codec, 1));
	uint32_t parent = NONE;

	incstack__codec_put(codec, head, 1);
	if (is_repeated(head)) {
		incstack__codec_copy(codec, INCSTACK__PACKED_REPEATED, pc_bytes(head));
		return;
	}
	incstack__codec_copy(codec, INCSTACK__PACKED_PC, pc_bytes(head));
	if ((head & INCSTACK__TRACEFILE_PARENT) == INCSTACK__TRACEFILE_PARENT_NEXT) {
		codec->parents[objects->count] = objects->count + 1;
		objects->count++;
		return;
	}
	if (parent_bytes(head) > 0)
		parent = code_parent(codec, objects, parent_bytes(head));
	codec->parents[objects->count++] = parent;
	objects->before = objects->run;
	objects->run = objects->count;
}

/* An object takes a byte at least. */
static bool make_room(struct incstack__codec *codec, size_t objects)
{
	uint32_t *grown = codec->parents;

	if (objects > codec->parents_room)
		grown = realloc(grown, objects * sizeof(*grown));
	if (grown == NULL && objects > 0) {
		codec->no_memory = true;
		return false;
	}
	codec->parents = grown;
	if (objects > codec->parents_room)
		codec->parents_room = objects;
	return true;
}

void incstack__codec_objects(struct incstack__codec *codec, size_t bytes)
{
	struct objects objects = {.before = NONE};
	size_t end;

	codec->columns.failed |= bytes > codec->left;
	if (codec->columns.failed || !make_room(codec, bytes)) {
		codec->columns.failed = true;
		return;
	}
	end = codec->left - bytes;
	while (!codec->columns.failed && codec->left > end)
		code_object(codec, &objects);
	codec->columns.failed |= codec->left != end || objects.run != objects.count;
}

/* ---- what can be packed ------------------------------------------------------------------- */

/* Whether the parent of the object lies before its run. */
static bool has_parent(const struct objects *objects, const unsigned char *at, size_t bytes)
{
	uint32_t back = 0;

	memcpy(&back, at, bytes);
	return back <= objects->count && objects->count - back < objects->run;
}

/* Returns the size of an object, or 0 if it is not as the recorder writes it. */
static size_t check_object(struct objects *objects, const unsigned char *at, size_t left)
{
	const size_t back = parent_bytes(*at);
	const size_t bytes = 1 + pc_bytes(*at) + back;

	if (bytes > left || objects->count == NONE - 1)
		return 0;
	if (is_repeated(*at)) /* only the order of runs matters here */
		return objects->run == objects->count ? bytes : 0;
	if (back > 0 && !has_parent(objects, at + bytes - back, back))
		return 0;
	objects->count++;
	if ((*at & INCSTACK__TRACEFILE_PARENT) != INCSTACK__TRACEFILE_PARENT_NEXT)
		objects->run = objects->count;
	return bytes;
}

bool incstack__codec_has_objects(const unsigned char *at, size_t bytes)
{
	struct objects objects = {0};

	while (bytes > 0) {
		const size_t taken = check_object(&objects, at, bytes);

		if (taken == 0)
			return false;
		at += taken;
		bytes -= taken;
	}
	return objects.run == objects.count;
}
