/* SPDX-License-Identifier: MIT
 *
 * Turns blocks into columns, and back; see codec.h. The packer chooses for each block what piece it becomes. What
 * is not as the recorder writes it is copied, so every file can be packed, and unpacking gives the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include <incstack/incstack.h>

#include "codec.h"
#include "format.h"

int incstack__codec_init(struct incstack__codec *codec, bool packs)
{
	*codec = (struct incstack__codec){.columns.packs = packs};
	codec->pointers = incstack__pointers_create();
	return codec->pointers != NULL ? 0 : INCSTACK_ENOMEM;
}

void incstack__codec_free(struct incstack__codec *codec)
{
	if (codec->columns.packs)
		incstack__columns_free(&codec->columns);
	incstack__pointers_destroy(codec->pointers);
	free(codec->parents);
}

/* ---- pieces ----------------------------------------------------------------------------- */

/* A field of a head, of at most 4 bytes. */
static uint32_t field(struct incstack__codec *codec, uint32_t value)
{
	const uint64_t number =
		incstack__columns_number(&codec->columns, INCSTACK__PACKED_HEAD, value);

	codec->columns.failed |= number > UINT32_MAX;
	return (uint32_t)number;
}

static void code_batch(struct incstack__codec *codec)
{
	struct incstack__tracefile_batch batch = {0};

	if (codec->columns.packs)
		memcpy(&batch, codec->from, sizeof(batch));
	batch.epoch = field(codec, batch.epoch);
	batch.objects = field(codec, batch.objects);
	batch.traces = field(codec, batch.traces);
	batch.object_bytes = field(codec, batch.object_bytes);
	batch.event_bytes = field(codec, batch.event_bytes);
	batch.serial = field(codec, batch.serial);
	if (!incstack__codec_step(codec, sizeof(batch)))
		return;
	if (codec->columns.packs) {
		codec->from += sizeof(batch);
	} else {
		memcpy(codec->to, &batch, sizeof(batch));
		codec->to += sizeof(batch);
	}
	incstack__codec_events(codec, batch.event_bytes);
	incstack__codec_objects(codec, batch.object_bytes);
}

/* Takes the head of the next block, or makes room for it. Returns null if there is none. */
static unsigned char *take_head(struct incstack__codec *codec,
				struct incstack__tracefile_block *block)
{
	unsigned char *head = codec->to;

	if (!incstack__codec_step(codec, sizeof(*block)))
		return NULL;
	if (!codec->columns.packs) {
		codec->to += sizeof(*block);
		return head;
	}
	memcpy(block, codec->from, sizeof(*block));
	codec->from += sizeof(*block);
	return NULL;
}

/* The length of a BATCH is known from its parts. */
static void code_block(struct incstack__codec *codec, bool is_batch)
{
	struct incstack__tracefile_block block = {.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC};
	unsigned char *head = take_head(codec, &block);

	block.thread = field(codec, block.thread);
	if (is_batch) {
		block.type = INCSTACK__TRACEFILE_BATCH;
		code_batch(codec);
	} else {
		block.type = field(codec, block.type);
		block.length = field(codec, block.length);
		incstack__codec_copy(codec, INCSTACK__PACKED_COPY, block.length);
	}
	if (head == NULL || codec->columns.failed)
		return;
	block.length = (uint32_t)((size_t)(codec->to - head) - sizeof(block));
	block.checksum = incstack__tracefile_block_sum(block, head + sizeof(block));
	memcpy(head, &block, sizeof(block));
}

/* ---- which piece ------------------------------------------------------------------------ */

static bool is_batch(const struct incstack__tracefile_block *block, const unsigned char *payload)
{
	struct incstack__tracefile_batch batch;

	if (block->type != INCSTACK__TRACEFILE_BATCH || block->length < sizeof(batch))
		return false;
	memcpy(&batch, payload, sizeof(batch));
	payload += sizeof(batch);
	return (uint64_t)batch.event_bytes + batch.object_bytes == block->length - sizeof(batch) &&
	       incstack__codec_has_events(payload, batch.event_bytes) &&
	       incstack__codec_has_objects(payload + batch.event_bytes, batch.object_bytes);
}

/* What the packer makes of what follows. */
static uint8_t choose(const struct incstack__codec *codec)
{
	const unsigned char *payload = codec->from + sizeof(struct incstack__tracefile_block);
	struct incstack__tracefile_block block;

	if (codec->left < sizeof(block))
		return INCSTACK__PACKED_BYTES;
	memcpy(&block, codec->from, sizeof(block));
	if (block.magic != INCSTACK__TRACEFILE_BLOCK_MAGIC ||
	    block.length > codec->left - sizeof(block) ||
	    block.checksum != incstack__tracefile_block_sum(block, payload))
		return INCSTACK__PACKED_BYTES;
	return is_batch(&block, payload) ? INCSTACK__PACKED_BATCH : INCSTACK__PACKED_BLOCK;
}

void incstack__codec_piece(struct incstack__codec *codec)
{
	uint8_t piece = codec->columns.packs ? choose(codec) : 0;
	size_t bytes = codec->left < INCSTACK__PACKED_GROUP_BYTES ? codec->left
								  : INCSTACK__PACKED_GROUP_BYTES;

	piece = incstack__columns_byte(&codec->columns, INCSTACK__PACKED_PIECE, piece);
	if (piece == INCSTACK__PACKED_BATCH || piece == INCSTACK__PACKED_BLOCK) {
		code_block(codec, piece == INCSTACK__PACKED_BATCH);
	} else if (piece == INCSTACK__PACKED_BYTES) {
		bytes = field(codec, (uint32_t)bytes);
		incstack__codec_copy(codec, INCSTACK__PACKED_COPY, bytes);
	} else {
		codec->columns.failed = true;
	}
}
