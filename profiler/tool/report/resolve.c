/* SPDX-License-Identifier: MIT
 *
 * Writes down what symbols know of the codes of a trace file, so that a report can be made where the modules are
 * absent. Equal texts are one pointer, and are stored once.
 */
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

#include <incstack/incstack.h>

#include "base/table.h"
#include "tracefile/format.h"
#include "texts.h"

/* A code and its frames. */
struct entry {
	uint64_t code;
	const struct tool_symbols_frame *frames;
	size_t count;
};

struct entries {
	struct entry *all;
	uint32_t count;
};

/* The texts, one behind the other. */
struct texts {
	FILE *out;
	char *bytes;
	size_t size;
	struct incstack__table table;
	const char **texts;
	uint32_t *offsets;
	uint32_t count;
	bool failed;
};

/* ---- codes -------------------------------------------------------------------------- */

static int by_code(const void *a, const void *b)
{
	const struct entry *left = a;
	const struct entry *right = b;

	return left->code < right->code ? -1 : left->code > right->code;
}

/* Takes the codes of pcs. The others have names without modules. */
static int take_entries(const struct tool_symbols *symbols, struct entries *entries)
{
	struct entry entry;

	for (uint32_t i = 0;
	     (entry.frames = tool_symbols_known(symbols, i, &entry.code, &entry.count)) != NULL;
	     i++) {
		struct entry *more;

		if (entry.code >= INCSTACK__CCT_THREADS)
			continue;
		more = tool_with_room(entries->all, entries->count, sizeof(*more));
		if (more == NULL)
			return INCSTACK_ENOMEM;
		entries->all = more;
		more[entries->count++] = entry;
	}
	if (entries->count > 0)
		qsort(entries->all, entries->count, sizeof(*entries->all), by_code);
	return 0;
}

/* ---- texts -------------------------------------------------------------------------- */

/* Adds a text at the end. Returns where it is. */
static uint32_t append_text(struct texts *texts, const char *text)
{
	const long at = ftell(texts->out);

	fwrite(text, 1, strlen(text) + 1, texts->out);
	texts->failed |= at < 0 || at > INT32_MAX || ferror(texts->out);
	return (uint32_t)at;
}

/* Remembers where a text is. Without memory it is stored again the next time. */
static void remember(struct texts *texts, const char *text, uint32_t hash, uint32_t at)
{
	const char **more = tool_with_room(texts->texts, texts->count, sizeof(*more));
	uint32_t *offsets;

	if (more == NULL)
		return;
	texts->texts = more;
	offsets = tool_with_room(texts->offsets, texts->count, sizeof(*offsets));
	if (offsets == NULL)
		return;
	texts->offsets = offsets;
	if (incstack__table_insert(&texts->table, hash, texts->count) != 0)
		return;
	more[texts->count] = text;
	offsets[texts->count++] = at;
}

static uint32_t offset_of(struct texts *texts, const char *text)
{
	const uint32_t hash = incstack__hash_pair((uintptr_t)text, 0);
	size_t cursor = hash;
	uint32_t at;

	if (text == NULL)
		return 0; /* the empty text */
	while ((at = incstack__table_probe(&texts->table, hash, &cursor)) != INCSTACK__NONE)
		if (texts->texts[at] == text)
			return texts->offsets[at];
	at = append_text(texts, text);
	remember(texts, text, hash, at);
	return at;
}

static int open_texts(struct texts *texts)
{
	texts->out = open_memstream(&texts->bytes, &texts->size);
	if (incstack__table_init(&texts->table) != 0 || texts->out == NULL)
		return INCSTACK_ENOMEM;
	append_text(texts, "");
	return 0;
}

static void close_texts(struct texts *texts)
{
	if (texts->out != NULL)
		fclose(texts->out);
	free(texts->bytes);
	free(texts->table.slots);
	free(texts->texts);
	free(texts->offsets);
}

/* ---- the block ---------------------------------------------------------------------- */

static void put_codes(const struct entries *entries, FILE *out)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < entries->count; i++) {
		const struct incstack__tracefile_resolved_code code = {
			entries->all[i].code, first, (uint32_t)entries->all[i].count};

		fwrite(&code, sizeof(code), 1, out);
		first += code.count;
	}
}

/* Returns how many frames there are. */
static uint32_t put_frames(const struct entries *entries, struct texts *texts, FILE *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < entries->count; i++)
		for (size_t j = 0; j < entries->all[i].count; j++, count++) {
			const struct tool_symbols_frame *from = &entries->all[i].frames[j];
			const struct incstack__tracefile_resolved_frame frame = {
				offset_of(texts, from->name), offset_of(texts, from->file),
				from->line > 0 ? (uint32_t)from->line : 0};

			fwrite(&frame, sizeof(frame), 1, out);
		}
	return count;
}

/* Adds what a report says about the modules. Returns where it is. */
static uint32_t put_remarks(const struct tool_symbols *symbols, struct texts *texts)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	uint32_t at = 0;

	if (out == NULL)
		return 0;
	tool_symbols_tell(symbols, "", out);
	if (fclose(out) == 0)
		at = append_text(texts, text);
	free(text);
	return at;
}

/* What comes before the tables. */
struct heads {
	struct incstack__tracefile_block block;
	struct incstack__tracefile_resolved names;
};

/* Writes the tables behind room for the heads. */
static int put_tables(const struct tool_symbols *symbols, const struct entries *entries,
		      struct texts *texts, struct incstack__tracefile_resolved *head, FILE *out)
{
	const struct heads room = {.block = {0}};

	fwrite(&room, sizeof(room), 1, out);
	put_codes(entries, out);
	head->codes = entries->count;
	head->frames = put_frames(entries, texts, out);
	head->remarks = put_remarks(symbols, texts);
	fflush(texts->out);
	head->text_bytes = (uint32_t)texts->size;
	fwrite(texts->bytes, 1, texts->size, out);
	return texts->failed || ferror(out) ? INCSTACK_ENOMEM : 0;
}

/* Fills in the heads, when the rest is known. */
static int put_heads(struct tool_resolved *resolved, struct incstack__tracefile_resolved names)
{
	struct heads heads = {.block = {.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC,
					.type = INCSTACK__TRACEFILE_RESOLVED},
			      .names = names};
	unsigned char *payload = (unsigned char *)resolved->block + sizeof(heads.block);

	if (resolved->bytes - sizeof(heads.block) > INCSTACK__TRACEFILE_BLOCK_MAX)
		return INCSTACK_ELIMIT;
	heads.block.length = (uint32_t)(resolved->bytes - sizeof(heads.block));
	memcpy(payload, &heads.names, sizeof(heads.names));
	heads.block.checksum = incstack__tracefile_block_sum(heads.block, payload);
	memcpy(resolved->block, &heads.block, sizeof(heads.block));
	return 0;
}

static int make_block(const struct tool_symbols *symbols, const struct entries *entries,
		      struct tool_resolved *resolved)
{
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, &resolved->bytes);
	struct incstack__tracefile_resolved head = {0};
	struct texts texts = {0};
	int error = out == NULL ? INCSTACK_ENOMEM : open_texts(&texts);

	if (error == 0)
		error = put_tables(symbols, entries, &texts, &head, out);
	close_texts(&texts);
	if (out != NULL && fclose(out) != 0)
		error = INCSTACK_ENOMEM;
	resolved->block = bytes;
	return error != 0 ? error : put_heads(resolved, head);
}

int tool_resolve(struct tool_symbols *symbols, const struct incstack__cct *cct,
		 struct tool_resolved *resolved)
{
	struct entries entries = {0};
	size_t count;
	int error;

	*resolved = (struct tool_resolved){0};
	for (uint32_t i = 1; i < cct->count; i++)
		(void)tool_symbols_frames(symbols, cct->nodes[i].code, &count);
	error = take_entries(symbols, &entries);
	if (error == 0)
		error = make_block(symbols, &entries, resolved);
	free(entries.all);
	if (error != 0) {
		free(resolved->block);
		*resolved = (struct tool_resolved){0};
	}
	return error;
}
