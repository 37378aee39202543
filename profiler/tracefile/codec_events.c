/* SPDX-License-Identifier: MIT
 *
 * Turns the events of a batch into columns, and back. An unpacker's field may be larger than its place in the
 * word: then the columns are damaged.
 */
#include <string.h>

#include "codec.h"
#include "format.h"

enum { TIME = INCSTACK__TRACEFILE_WIDE + 1, KINDS };

static uint64_t bits(uint64_t word, unsigned shift, uint64_t most)
{
	return word >> shift & most;
}

/* Returns the value at its place in a word. */
static uint64_t at(struct incstack__codec *codec, uint64_t value, unsigned shift, uint64_t most)
{
	codec->columns.failed |= value > most;
	return value << shift;
}

static uint64_t code_small(struct incstack__codec *codec, uint64_t word)
{
	struct incstack__columns *columns = &codec->columns;
	const uint64_t stamp = incstack__columns_number(
		columns, INCSTACK__PACKED_STAMP, word >> INCSTACK__TRACEFILE_SMALL_STAMP_SHIFT);
	const uint64_t size =
		incstack__columns_number(columns, INCSTACK__PACKED_SIZE,
					 bits(word, INCSTACK__TRACEFILE_SMALL_SIZE_SHIFT,
					      INCSTACK__TRACEFILE_SMALL_SIZE_MAX));
	const uint64_t pointer = incstack__pointers_allocated(
		codec->pointers, columns, (word & INCSTACK__TRACEFILE_SMALL_POINTER_MAX) * 16,
		size);

	columns->failed |= pointer % 16 != 0;
	return at(codec, stamp, INCSTACK__TRACEFILE_SMALL_STAMP_SHIFT,
		  INCSTACK__TRACEFILE_SMALL_STAMP_MAX) |
	       at(codec, size, INCSTACK__TRACEFILE_SMALL_SIZE_SHIFT,
		  INCSTACK__TRACEFILE_SMALL_SIZE_MAX) |
	       at(codec, pointer / 16, 0, INCSTACK__TRACEFILE_SMALL_POINTER_MAX);
}

/* Returns the stamp of an event at its place. */
static uint64_t code_stamp(struct incstack__codec *codec, uint64_t word)
{
	return at(codec,
		  incstack__columns_number(&codec->columns, INCSTACK__PACKED_STAMP,
					   bits(word, INCSTACK__TRACEFILE_STAMP_SHIFT,
						INCSTACK__TRACEFILE_STAMP_MAX)),
		  INCSTACK__TRACEFILE_STAMP_SHIFT, INCSTACK__TRACEFILE_STAMP_MAX);
}

/* `trace` is the index that is expected, and becomes the one after this. */
static void code_alloc(struct incstack__codec *codec, uint64_t word, uint64_t *trace)
{
	const uint64_t second = incstack__codec_get(codec, sizeof(second));
	const uint64_t stamp = code_stamp(codec, word);
	const uint64_t size = incstack__columns_number(&codec->columns, INCSTACK__PACKED_LARGE,
						       second & INCSTACK__TRACEFILE_SIZE_MAX);
	const uint64_t index =
		*trace +
		incstack__columns_difference(&codec->columns, INCSTACK__PACKED_LARGE,
					     (second >> INCSTACK__TRACEFILE_INDEX_SHIFT) - *trace);
	const uint64_t pointer = incstack__pointers_allocated(
		codec->pointers, &codec->columns, word & INCSTACK__TRACEFILE_POINTER_MAX, size);

	*trace = index + 1;
	incstack__codec_put(codec,
			    (uint64_t)INCSTACK__TRACEFILE_ALLOC << INCSTACK__TRACEFILE_KIND_SHIFT |
				    stamp | at(codec, pointer, 0, INCSTACK__TRACEFILE_POINTER_MAX),
			    sizeof(word));
	incstack__codec_put(codec,
			    at(codec, index, INCSTACK__TRACEFILE_INDEX_SHIFT,
			       (1u << INCSTACK__TRACEFILE_INDEX_BITS) - 1) |
				    at(codec, size, 0, INCSTACK__TRACEFILE_SIZE_MAX),
			    sizeof(second));
}

static uint64_t code_free(struct incstack__codec *codec, uint64_t word)
{
	const uint64_t stamp = code_stamp(codec, word);
	const uint64_t pointer = incstack__pointers_freed(codec->pointers, &codec->columns,
							  word & INCSTACK__TRACEFILE_POINTER_MAX);

	return (uint64_t)INCSTACK__TRACEFILE_FREE << INCSTACK__TRACEFILE_KIND_SHIFT | stamp |
	       at(codec, pointer, 0, INCSTACK__TRACEFILE_POINTER_MAX);
}

static uint64_t code_time(struct incstack__codec *codec, uint64_t word)
{
	const uint64_t time = word & INCSTACK__TRACEFILE_TIME_MAX;

	codec->time += incstack__columns_difference(&codec->columns, INCSTACK__PACKED_TIME,
						    time - codec->time);
	return (uint64_t)INCSTACK__TRACEFILE_TIME << INCSTACK__TRACEFILE_TIME_SHIFT |
	       at(codec, codec->time, 0, INCSTACK__TRACEFILE_TIME_MAX);
}

/* The kind is in the word, too. */
static void code_wide(struct incstack__codec *codec, uint64_t word)
{
	unsigned char first[sizeof(word)];

	memcpy(first, &word, sizeof(word));
	incstack__columns_copy(&codec->columns, INCSTACK__PACKED_WIDE, first, first, sizeof(first));
	memcpy(&word, first, sizeof(word));
	incstack__codec_put(codec, word, sizeof(word));
	incstack__codec_copy(codec, INCSTACK__PACKED_WIDE,
			     INCSTACK__TRACEFILE_WIDE_BYTES - sizeof(word));
}

static uint8_t kind_of(uint64_t word)
{
	return word >> INCSTACK__TRACEFILE_TIME_SHIFT == INCSTACK__TRACEFILE_TIME
		       ? TIME
		       : (uint8_t)(word >> INCSTACK__TRACEFILE_KIND_SHIFT);
}

static void code_event(struct incstack__codec *codec, uint64_t *trace)
{
	const uint64_t word = incstack__codec_get(codec, sizeof(word));
	const uint8_t kind =
		incstack__columns_byte(&codec->columns, INCSTACK__PACKED_KIND, kind_of(word));

	switch (kind) {
	case INCSTACK__TRACEFILE_SMALL:
		incstack__codec_put(codec, code_small(codec, word), sizeof(word));
		++*trace;
		return;
	case INCSTACK__TRACEFILE_ALLOC:
		code_alloc(codec, word, trace);
		return;
	case INCSTACK__TRACEFILE_FREE:
		incstack__codec_put(codec, code_free(codec, word), sizeof(word));
		return;
	case INCSTACK__TRACEFILE_WIDE:
		code_wide(codec, word);
		return;
	case TIME:
		incstack__codec_put(codec, code_time(codec, word), sizeof(word));
		return;
	default:
		codec->columns.failed = true;
	}
}

void incstack__codec_events(struct incstack__codec *codec, size_t bytes)
{
	size_t end;
	uint64_t trace = 0;

	codec->columns.failed |= bytes > codec->left;
	end = codec->left - bytes;
	while (!codec->columns.failed && codec->left > end)
		code_event(codec, &trace);
	codec->columns.failed |= codec->left != end;
}

static size_t bytes_of(uint64_t word)
{
	switch (kind_of(word)) {
	case INCSTACK__TRACEFILE_ALLOC:
		return INCSTACK__TRACEFILE_ALLOC_BYTES;
	case INCSTACK__TRACEFILE_WIDE:
		return INCSTACK__TRACEFILE_WIDE_BYTES;
	default:
		return INCSTACK__TRACEFILE_WORD_BYTES;
	}
}

bool incstack__codec_has_events(const unsigned char *events, size_t bytes)
{
	while (bytes >= sizeof(uint64_t)) {
		uint64_t word;
		size_t taken;

		memcpy(&word, events, sizeof(word));
		taken = bytes_of(word);
		if (taken > bytes)
			return false;
		events += taken;
		bytes -= taken;
	}
	return bytes == 0;
}
