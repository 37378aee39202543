/* SPDX-License-Identifier: MIT
 *
 * Packs a trace file; see packed.h. One zstd frame holds all groups, so that a group is short if it is like those
 * before it. It is flushed after each group, and after each column, because each column has statistics of its own.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <incstack/incstack.h>

#include "codec.h"
#include "format.h"
#include "packed.h"

enum { LEVEL = 6 };

struct packer {
	struct incstack__codec codec;
	ZSTD_CCtx *zstd;
	unsigned char *packed; /* a group */
	size_t room;
	FILE *out;
	uint64_t written;
};

static int open_packer(struct packer *packer)
{
	if (incstack__codec_init(&packer->codec, true) != 0)
		return INCSTACK_ENOMEM;
	packer->zstd = ZSTD_createCCtx();
	if (packer->zstd == NULL ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_windowLog,
						INCSTACK__PACKED_WINDOW_LOG)))
		return INCSTACK_ENOMEM;
	return 0;
}

static void close_packer(struct packer *packer)
{
	incstack__codec_free(&packer->codec);
	ZSTD_freeCCtx(packer->zstd);
	free(packer->packed);
}

static int put(struct packer *packer, const void *bytes, size_t count)
{
	packer->written += count;
	return fwrite(bytes, 1, count, packer->out) == count ? 0 : INCSTACK_EIO;
}

/* ---- a group ------------------------------------------------------------------------------ */

static int make_room(struct packer *packer, size_t columns)
{
	enum { EACH = 128 }; /* the heads of a flushed part */
	const size_t room = ZSTD_compressBound(columns) + (size_t)EACH * INCSTACK__PACKED_COLUMNS;
	unsigned char *grown;

	if (room <= packer->room)
		return 0;
	grown = realloc(packer->packed, room);
	if (grown == NULL)
		return INCSTACK_ENOMEM;
	packer->packed = grown;
	packer->room = room;
	return 0;
}

static int compress(struct packer *packer, ZSTD_outBuffer *to, const void *bytes, size_t count)
{
	ZSTD_inBuffer from = {bytes, count, 0};
	const size_t left = ZSTD_compressStream2(packer->zstd, to, &from, ZSTD_e_flush);

	/* All of it fits. */
	return left == 0 && from.pos == count ? 0 : INCSTACK_ENOMEM;
}

static int compress_columns(struct packer *packer, ZSTD_outBuffer *to,
			    struct incstack__packed_group *group)
{
	const struct incstack__columns *columns = &packer->codec.columns;
	uint32_t lengths[INCSTACK__PACKED_COLUMNS];
	size_t sum = sizeof(lengths);
	int error;

	for (unsigned i = 0; i < INCSTACK__PACKED_COLUMNS; i++) {
		lengths[i] = (uint32_t)columns->all[i].used;
		sum += columns->all[i].used;
	}
	if (sum > UINT32_MAX)
		return INCSTACK_ELIMIT;
	error = make_room(packer, sum);
	*to = (ZSTD_outBuffer){packer->packed, packer->room, 0};
	if (error == 0)
		error = compress(packer, to, lengths, sizeof(lengths));
	for (unsigned i = 0; i < INCSTACK__PACKED_COLUMNS && error == 0; i++)
		if (columns->all[i].used > 0)
			error = compress(packer, to, columns->all[i].data, columns->all[i].used);
	group->columns = (uint32_t)sum;
	return error;
}

static int write_group(struct packer *packer, size_t raw)
{
	struct incstack__packed_group group = {.magic = INCSTACK__PACKED_MAGIC,
					       .raw = (uint32_t)raw};
	ZSTD_outBuffer to;
	int error = raw > UINT32_MAX ? INCSTACK_ELIMIT : compress_columns(packer, &to, &group);

	if (error != 0)
		return error;
	group.bytes = (uint32_t)to.pos;
	group.checksum = incstack__packed_sum(group, packer->packed);
	error = put(packer, &group, sizeof(group));
	incstack__columns_clear(&packer->codec.columns);
	return error != 0 ? error : put(packer, packer->packed, group.bytes);
}

/* Packs the next pieces, about `most` bytes. */
static int pack_group(struct packer *packer, size_t most)
{
	struct incstack__codec *codec = &packer->codec;
	const size_t left = codec->left;

	do
		incstack__codec_piece(codec);
	while (!codec->columns.failed && codec->left > 0 && left - codec->left < most);
	return codec->columns.failed ? INCSTACK_ENOMEM : write_group(packer, left - codec->left);
}

/* ---- the file ----------------------------------------------------------------------------- */

static int put_header(struct packer *packer, struct incstack__tracefile_header header)
{
	header.version |= INCSTACK__TRACEFILE_PACKED;
	header.checksum = incstack__tracefile_header_sum(header);
	return put(packer, &header, sizeof(header));
}

/* The counters are a group of their own, so that a reader has them wherever the file is cut. */
static int pack_all(struct packer *packer, const unsigned char *data, size_t size)
{
	int error = open_packer(packer);

	packer->codec.from = data;
	packer->codec.left = INCSTACK__TRACEFILE_COUNTERS_BYTES;
	if (error == 0)
		error = pack_group(packer, INCSTACK__TRACEFILE_COUNTERS_BYTES);
	packer->codec.left = size - INCSTACK__TRACEFILE_COUNTERS_BYTES;
	while (error == 0 && packer->codec.left > 0)
		error = pack_group(packer, INCSTACK__PACKED_GROUP_BYTES);
	if (error == 0 && fflush(packer->out) != 0)
		error = INCSTACK_EIO;
	return error;
}

int incstack__tracefile_pack(const void *data, size_t size, FILE *out)
{
	struct packer packer = {.out = out};
	struct incstack__tracefile_header header;
	int error;

	if (size < INCSTACK__TRACEFILE_START)
		return INCSTACK_EINVAL;
	memcpy(&header, data, sizeof(header));
	if (header.magic != INCSTACK__TRACEFILE_MAGIC ||
	    header.version != INCSTACK__TRACEFILE_VERSION ||
	    header.checksum != incstack__tracefile_header_sum(header))
		return INCSTACK_EINVAL;
	error = put_header(&packer, header);
	if (error == 0)
		error = pack_all(&packer, (const unsigned char *)data + sizeof(header),
				 size - sizeof(header));
	if (error == 0 && size > packer.written * INCSTACK__PACKED_RATIO_MOST)
		error = INCSTACK_EINVAL;
	close_packer(&packer);
	return error;
}
