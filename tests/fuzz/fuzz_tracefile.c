/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the reader and the replay of heap trace files. The input is a sequence
 * of {type byte, length byte pair, payload}; header and checksums are made
 * valid here; otherwise no input would get past them.
 */
#include <stdlib.h>
#include <string.h>

#include "tracefile/replay.h"
#include "tracefile/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t add_block(unsigned char *out, const uint8_t *data, size_t length, uint8_t type)
{
	struct incstack__tracefile_block block = {.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC,
						  .type = type & 7,
						  .thread = type >> 4,
						  .length = (uint32_t)length};

	block.checksum = incstack__tracefile_block_sum(block, data);
	memcpy(out, &block, sizeof(block));
	memcpy(out + sizeof(block), data, length);
	return sizeof(block) + length;
}

/* Reads every text, so that a sanitizer sees a wrong one. */
static void read_names(const struct incstack__resolved *resolved)
{
	size_t sum = strlen(incstack__resolved_remarks(resolved));
	uint32_t first;

	for (uint64_t code = 0; code < 256; code++) {
		const uint32_t count = incstack__resolved_find(resolved, code, &first);

		for (uint32_t i = 0; i < count; i++) {
			const struct incstack__resolved_frame frame =
				incstack__resolved_frame(resolved, first + i);

			sum += strlen(frame.name) + strlen(frame.file);
		}
	}
	if (sum == SIZE_MAX)
		abort();
}

static void read_all(const unsigned char *file, size_t size)
{
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__replay replay;

	if (incstack__tracefile_open(file, size, &reader, &problem) != 0)
		return;
	incstack__replay_run(&replay, reader, 0);
	incstack__replay_free(&replay);
	read_names(incstack__tracefile_reader_resolved(reader));
	incstack__tracefile_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A block of three input bytes becomes one of 24. */
	const size_t room = INCSTACK__TRACEFILE_START + 9 * size;
	unsigned char *file = calloc(1, room);
	struct incstack__tracefile_header header;
	size_t used = INCSTACK__TRACEFILE_START;

	if (file == NULL)
		return 0;
	incstack__tracefile_header_init(&header, 1, 1, 0, 0, "fuzz");
	memcpy(file, &header, sizeof(header));
	while (size >= 3) {
		const size_t want = (size_t)data[1] | (size_t)data[2] << 8;
		const size_t length = want < size - 3 ? want : size - 3;

		used += add_block(file + used, data + 3, length, data[0]);
		data += 3 + length;
		size -= 3 + length;
	}
	read_all(file, used);
	free(file);
	return 0;
}
