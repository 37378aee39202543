/* SPDX-License-Identifier: MIT
 *
 * Unpacks a trace file; see packed.h. The heads of the groups tell how large the trace file will be. Then each group
 * is unpacked behind the one before it, until one is damaged or cut off.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <incstack/incstack.h>

#include "codec.h"
#include "format.h"
#include "packed.h"

/* A group needs no more bytes in its columns than this for each byte, and some. */
enum { COLUMNS_EACH = 4, COLUMNS_ROOM = 4096 };

struct unpacker {
	const unsigned char *data;
	size_t size;
	size_t at; /* the next group */
	struct incstack__codec codec;
	ZSTD_DCtx *zstd;
	unsigned char *columns;
	size_t room;
	uint64_t
		left; /* bytes that the groups may still become: the file may change while it is read */
	struct incstack__tracefile_unpacked *unpacked;
};

static const char no_memory[] = "out of memory";

static bool is_packed(const void *data, size_t size)
{
	struct incstack__tracefile_header header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, data, sizeof(header));
	return header.magic == INCSTACK__TRACEFILE_MAGIC &&
	       header.version == (INCSTACK__TRACEFILE_VERSION | INCSTACK__TRACEFILE_PACKED);
}

/* ---- heads -------------------------------------------------------------------------------- */

/* Reads the head at the offset. Returns what is wrong, or null. A group that is cut off has 0 bytes. */
static const char *read_head(const struct unpacker *unpacker, size_t at,
			     struct incstack__packed_group *group)
{
	const size_t left = unpacker->size - at;

	memset(group, 0, sizeof(*group));
	if (left < sizeof(*group))
		return NULL;
	memcpy(group, unpacker->data + at, sizeof(*group));
	if (group->magic != INCSTACK__PACKED_MAGIC)
		return "no group where one should start";
	if (group->columns > (uint64_t)COLUMNS_EACH * group->raw + COLUMNS_ROOM)
		return "a group claims too many columns";
	if (group->bytes > left - sizeof(*group))
		group->bytes = 0;
	return NULL;
}

/* Returns the bytes that all groups claim to become. */
static uint64_t claimed(const struct unpacker *unpacker)
{
	struct incstack__packed_group group;
	uint64_t sum = 0;
	size_t at = unpacker->at;

	while (at < unpacker->size && read_head(unpacker, at, &group) == NULL && group.bytes > 0) {
		sum += group.raw;
		at += sizeof(group) + group.bytes;
	}
	return sum;
}

/* ---- groups ------------------------------------------------------------------------------- */

static const char *decompress(struct unpacker *unpacker, const struct incstack__packed_group *group)
{
	ZSTD_inBuffer from = {unpacker->data + unpacker->at + sizeof(*group), group->bytes, 0};
	ZSTD_outBuffer to = {unpacker->columns, group->columns, 0};

	while (from.pos < from.size || to.pos < to.size) {
		const size_t before = from.pos + to.pos;
		const size_t left = ZSTD_decompressStream(unpacker->zstd, &to, &from);

		if (ZSTD_isError(left) && ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation)
			return no_memory;
		if (ZSTD_isError(left) || from.pos + to.pos == before)
			return "a group cannot be unpacked";
	}
	return NULL;
}

static const char *make_room(struct unpacker *unpacker, size_t bytes)
{
	unsigned char *grown;

	if (bytes <= unpacker->room)
		return NULL;
	grown = realloc(unpacker->columns, bytes);
	if (grown == NULL)
		return no_memory;
	unpacker->columns = grown;
	unpacker->room = bytes;
	return NULL;
}

/* Turns the columns into pieces of the trace file. */
static const char *take_pieces(struct unpacker *unpacker,
			       const struct incstack__packed_group *group)
{
	struct incstack__codec *codec = &unpacker->codec;

	if (group->raw > unpacker->left ||
	    !incstack__columns_take(&codec->columns, unpacker->columns, group->columns))
		return "the columns of a group do not add up";
	codec->to = unpacker->unpacked->owned + unpacker->unpacked->size;
	codec->left = group->raw;
	while (codec->left > 0 && !codec->columns.failed)
		incstack__codec_piece(codec);
	if (codec->no_memory)
		return no_memory;
	if (!incstack__columns_are_done(&codec->columns))
		return "a group is malformed";
	unpacker->unpacked->size += group->raw;
	unpacker->left -= group->raw;
	return NULL;
}

static const char *unpack_group(struct unpacker *unpacker,
				const struct incstack__packed_group *group)
{
	const void *bytes = unpacker->data + unpacker->at + sizeof(*group);
	const char *problem;

	if (group->checksum != incstack__packed_sum(*group, bytes))
		return "the checksum of a group is wrong";
	problem = make_room(unpacker, group->columns);
	if (problem == NULL)
		problem = decompress(unpacker, group);
	return problem != NULL ? problem : take_pieces(unpacker, group);
}

/* Returns what is wrong with the next group, or null. */
static const char *next_group(struct unpacker *unpacker)
{
	struct incstack__packed_group group;
	const char *problem = read_head(unpacker, unpacker->at, &group);

	if (problem == NULL && group.bytes == 0) {
		unpacker->unpacked->cut = unpacker->size - unpacker->at;
		unpacker->at = unpacker->size;
		return NULL;
	}
	if (problem == NULL)
		problem = unpack_group(unpacker, &group);
	if (problem == NULL)
		unpacker->at += sizeof(group) + group.bytes;
	return problem;
}

/* ---- the file ----------------------------------------------------------------------------- */

static int begin(struct unpacker *unpacker)
{
	unpacker->zstd = ZSTD_createDCtx();
	unpacker->unpacked->owned =
		malloc(sizeof(struct incstack__tracefile_header) + unpacker->left);
	if (incstack__codec_init(&unpacker->codec, false) != 0 || unpacker->zstd == NULL ||
	    unpacker->unpacked->owned == NULL)
		return INCSTACK_ENOMEM;
	ZSTD_DCtx_setParameter(unpacker->zstd, ZSTD_d_windowLogMax, INCSTACK__PACKED_WINDOW_LOG);
	return 0;
}

/* A damaged header stays as it is, for the reader to notice. */
static void take_header(struct unpacker *unpacker)
{
	struct incstack__tracefile_header header;
	bool is_whole;

	memcpy(&header, unpacker->data, sizeof(header));
	is_whole = header.checksum == incstack__tracefile_header_sum(header);
	header.version &= ~INCSTACK__TRACEFILE_PACKED;
	if (is_whole)
		header.checksum = incstack__tracefile_header_sum(header);
	memcpy(unpacker->unpacked->owned, &header, sizeof(header));
	unpacker->unpacked->size = sizeof(header);
	unpacker->at = sizeof(header);
}

static int unpack(struct unpacker *unpacker)
{
	struct incstack__tracefile_unpacked *unpacked = unpacker->unpacked;

	unpacker->at = sizeof(struct incstack__tracefile_header);
	unpacker->left = claimed(unpacker);
	if (unpacker->left > (uint64_t)unpacker->size * INCSTACK__PACKED_RATIO_MOST) {
		unpacked->what = "it claims to have been larger than it can have been";
		unpacker->left = 0;
	}
	if (begin(unpacker) != 0)
		return INCSTACK_ENOMEM;
	take_header(unpacker);
	while (unpacked->what == NULL && unpacker->at < unpacker->size)
		unpacked->what = next_group(unpacker);
	unpacked->offset = unpacker->at;
	return unpacked->what == no_memory ? INCSTACK_ENOMEM : 0;
}

int incstack__tracefile_unpack(const void *data, size_t size,
			       struct incstack__tracefile_unpacked *unpacked)
{
	struct unpacker unpacker = {.data = data, .size = size, .unpacked = unpacked};
	int error;

	*unpacked = (struct incstack__tracefile_unpacked){.data = data, .size = size};
	if (!is_packed(data, size))
		return 0;
	error = unpack(&unpacker);
	unpacked->data = unpacked->owned;
	incstack__codec_free(&unpacker.codec);
	ZSTD_freeDCtx(unpacker.zstd);
	free(unpacker.columns);
	return error;
}
