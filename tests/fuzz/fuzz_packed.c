/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the reader of packed trace files. The first byte of the input says what the rest is: a packed file behind
 * its header; the columns of one group, which are packed here, as no random bytes are a zstd frame; or a trace file
 * behind its header, which is packed and must become the same bytes again.
 */
#include <stdlib.h>
#include <zstd.h>

#include "tracefile/packed.h"
#include "tracefile/packed_format.h"
#include "tracefile/replay.h"
#include "tracefile/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const unsigned char *file, size_t size)
{
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__replay replay;

	if (incstack__tracefile_open(file, size, &reader, &problem) != 0)
		return;
	incstack__replay_run(&replay, reader, 0);
	incstack__replay_free(&replay);
	incstack__tracefile_close(reader);
}

/* Returns the header, with room behind it. */
static unsigned char *with_header(uint32_t flag, size_t room)
{
	struct incstack__tracefile_header header;
	unsigned char *file = calloc(1, sizeof(header) + room);

	if (file == NULL)
		return NULL;
	incstack__tracefile_header_init(&header, 1, 1, 0, 0, "fuzz");
	header.version |= flag;
	header.checksum = incstack__tracefile_header_sum(header);
	memcpy(file, &header, sizeof(header));
	return file;
}

static void read_packed(const uint8_t *data, size_t size)
{
	unsigned char *file = with_header(INCSTACK__TRACEFILE_PACKED, size);

	if (file == NULL)
		return;
	memcpy(file + sizeof(struct incstack__tracefile_header), data, size);
	read_all(file, sizeof(struct incstack__tracefile_header) + size);
	free(file);
}

/* Two bytes say how many bytes of a trace file the columns are. */
static void read_columns(const uint8_t *data, size_t size)
{
	const size_t room = sizeof(struct incstack__packed_group) + ZSTD_compressBound(size);
	unsigned char *file = with_header(INCSTACK__TRACEFILE_PACKED, room);
	unsigned char *at = file + sizeof(struct incstack__tracefile_header);
	struct incstack__packed_group group = {.magic = INCSTACK__PACKED_MAGIC};

	if (file == NULL || size < 2)
		goto end;
	group.raw = (uint32_t)data[0] | (uint32_t)data[1] << 8;
	group.columns = (uint32_t)size - 2;
	group.bytes = (uint32_t)ZSTD_compress(at + sizeof(group), room - sizeof(group), data + 2,
					      size - 2, 1);
	group.checksum = incstack__packed_sum(group, at + sizeof(group));
	memcpy(at, &group, sizeof(group));
	read_all(file, (size_t)(at - file) + sizeof(group) + group.bytes);
end:
	free(file);
}

static void go_round(const uint8_t *data, size_t size)
{
	const size_t whole = INCSTACK__TRACEFILE_START + size;
	unsigned char *file = with_header(0, INCSTACK__TRACEFILE_COUNTERS_BYTES + size);
	struct incstack__tracefile_unpacked unpacked;
	char *packed = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&packed, &bytes);

	if (file == NULL || out == NULL)
		abort();
	memcpy(file + INCSTACK__TRACEFILE_START, data, size);
	if (incstack__tracefile_pack(file, whole, out) != 0 || fclose(out) != 0 ||
	    incstack__tracefile_unpack(packed, bytes, &unpacked) != 0)
		abort();
	if (unpacked.size != whole || memcmp(unpacked.data, file, whole) != 0)
		abort();
	free(unpacked.owned);
	free(packed);
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 3 == 0)
		read_packed(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		read_columns(data + 1, size - 1);
	else
		go_round(data + 1, size - 1);
	return 0;
}
