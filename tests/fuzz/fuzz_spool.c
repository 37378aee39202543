/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the reader of spools. The input is a sequence of {offset in three bytes, length,
 * bytes}, which overwrite parts of a valid spool. The result must be blocks that the reader of
 * trace files accepts.
 */
#include <stdlib.h>

#include "tracefile/replay.h"
#include "tracefile/spool_read.h"
#include "../unit/spool_made.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const struct incstack__tracefile_header *header, const unsigned char *blocks,
		     size_t bytes)
{
	const size_t size = INCSTACK__TRACEFILE_START + bytes;
	unsigned char *file = calloc(1, size);
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__replay replay;

	if (file == NULL)
		return;
	memcpy(file, header, sizeof(*header));
	if (bytes > 0)
		memcpy(file + INCSTACK__TRACEFILE_START, blocks, bytes);
	if (incstack__tracefile_end(file, size) != size ||
	    incstack__tracefile_open(file, size, &reader, &problem) != 0)
		abort();
	if (incstack__tracefile_reader_totals(reader)->truncated_bytes != 0)
		abort();
	incstack__replay_run(&replay, reader, 0);
	incstack__replay_free(&replay);
	incstack__tracefile_close(reader);
	free(file);
}

static void put_over(unsigned char *spool, const uint8_t *data, size_t size)
{
	while (size >= 5) {
		const size_t at = ((size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) %
				  MADE_BYTES;
		size_t length = (size_t)(data[3] & 31) + 1;

		if (length > size - 4)
			length = size - 4;
		if (length > MADE_BYTES - at)
			length = MADE_BYTES - at;
		memcpy(spool + at, data + 4, length);
		data += 4 + length;
		size -= 4 + length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct incstack__tracefile_header header;
	unsigned char *spool = aligned_alloc(64, MADE_BYTES);
	unsigned char *blocks;
	size_t bytes;

	if (spool == NULL)
		return 0;
	memset(spool, 0, MADE_BYTES);
	incstack__tracefile_header_init(&header, 1, 1, 0, 0, "fuzz");
	make_spool(spool, &header);
	put_over(spool, data, size);
	if (incstack__spool_recover(spool, MADE_BYTES, &header, &blocks, &bytes) == 0)
		read_all(&header, blocks, bytes);
	free(blocks);
	free(spool);
	return 0;
}
