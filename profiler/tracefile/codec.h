/* SPDX-License-Identifier: MIT
 *
 * Turns the blocks of a trace file into columns, and back. The functions do both: see columns.h.
 */
#ifndef INCSTACK_TRACEFILE_CODEC_H
#define INCSTACK_TRACEFILE_CODEC_H

#include <string.h>

#include "columns.h"
#include "pointers.h"

struct incstack__codec {
	struct incstack__columns columns;
	struct incstack__pointers *pointers;
	const unsigned char *from; /* of a packer: the next byte of the trace file */
	unsigned char *to;         /* of an unpacker: where the next byte goes */
	size_t left;               /* bytes of the trace file that may follow */
	bool no_memory;            /* why the columns have failed */
	uint64_t time;             /* of the last time word */
	uint32_t *parents;         /* of the objects of a batch, by index */
	size_t parents_room;
};

/* Returns 0 or INCSTACK_ENOMEM. */
int incstack__codec_init(struct incstack__codec *codec, bool packs);
void incstack__codec_free(struct incstack__codec *codec);

/* Returns whether so many bytes of the trace file may follow, and counts them. */
static inline bool incstack__codec_step(struct incstack__codec *codec, size_t bytes)
{
	codec->columns.failed |= codec->left < bytes;
	if (codec->columns.failed)
		return false;
	codec->left -= bytes;
	return true;
}

/* A packer returns the next bytes of the trace file, at most 8, as a number; an unpacker returns 0. */
static inline uint64_t incstack__codec_get(struct incstack__codec *codec, size_t bytes)
{
	uint64_t number = 0;

	if (!codec->columns.packs || !incstack__codec_step(codec, bytes))
		return 0;
	memcpy(&number, codec->from, bytes);
	codec->from += bytes;
	return number;
}

/* An unpacker adds bytes to the trace file. A packer does nothing. */
static inline void incstack__codec_put(struct incstack__codec *codec, uint64_t number, size_t bytes)
{
	if (codec->columns.packs || !incstack__codec_step(codec, bytes))
		return;
	memcpy(codec->to, &number, bytes);
	codec->to += bytes;
}

/* Copies bytes of the trace file, as they are. */
static inline void incstack__codec_copy(struct incstack__codec *codec,
					enum incstack__packed_column which, size_t bytes)
{
	if (!incstack__codec_step(codec, bytes))
		return;
	incstack__columns_copy(&codec->columns, which, codec->from, codec->to, bytes);
	if (codec->columns.packs)
		codec->from += bytes;
	else
		codec->to += bytes;
}

/* The events, or the objects, of a batch, in so many bytes of the trace file. */
void incstack__codec_events(struct incstack__codec *codec, size_t bytes);
void incstack__codec_objects(struct incstack__codec *codec, size_t bytes);
/* Whether they are as the recorder writes them. Only then can they be packed. */
bool incstack__codec_has_events(const unsigned char *events, size_t bytes);
bool incstack__codec_has_objects(const unsigned char *objects, size_t bytes);

/* The next piece. A packer passes the most bytes that may be packed. */
void incstack__codec_piece(struct incstack__codec *codec);

#endif
