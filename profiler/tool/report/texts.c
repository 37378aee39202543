/* SPDX-License-Identifier: MIT
 *
 * Stores each different text once.
 */
#include "texts.h"

#include <stdlib.h>
#include <string.h>

void *tool_with_room(void *array, uint32_t count, size_t element)
{
	if ((count & (count - 1)) != 0)
		return array;
	return realloc(array, (count == 0 ? 1 : 2 * (size_t)count) * element);
}

static uint32_t text_hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; *text != 0; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return incstack__hash_pair(hash, 0);
}

static int add(struct tool_texts *texts, char *text, uint32_t hash)
{
	char **more = tool_with_room(texts->texts, texts->count, sizeof(*more));

	if (!more)
		return 0;
	texts->texts = more;
	if (incstack__table_insert(&texts->table, hash, texts->count) != 0)
		return 0;
	more[texts->count++] = text;
	return 1;
}

const char *tool_text(struct tool_texts *texts, const char *text)
{
	static const char no_memory[] = TOOL_NO_MEMORY;
	const uint32_t hash = text_hash(text);
	size_t cursor = hash;
	uint32_t at;
	char *copy;

	while ((at = incstack__table_probe(&texts->table, hash, &cursor)) != INCSTACK__NONE)
		if (strcmp(texts->texts[at], text) == 0)
			return texts->texts[at];
	copy = strdup(text);
	if (copy && add(texts, copy, hash))
		return copy;
	free(copy);
	return no_memory;
}

int tool_texts_init(struct tool_texts *texts)
{
	*texts = (struct tool_texts){0};
	return incstack__table_init(&texts->table);
}

void tool_texts_free(struct tool_texts *texts)
{
	for (uint32_t i = 0; i < texts->count; i++)
		free(texts->texts[i]);
	free(texts->texts);
	free(texts->table.slots);
}
