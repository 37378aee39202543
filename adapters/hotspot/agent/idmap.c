/* SPDX-License-Identifier: MIT
 *
 * A map from 64-bit identifiers to two numbers: open addressing with linear probing.
 */
#include "idmap.h"

#include <stdlib.h>

enum { LEAST_ROOM = 1024 };

static size_t place_of(const struct agent_idmap *map, uint64_t id)
{
	return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (map->room - 1);
}

/* Returns the place of the id, or the free place where it would be. There is always a free one. */
static struct agent_idmap_entry *probe(const struct agent_idmap *map, uint64_t id)
{
	size_t at = place_of(map, id);

	while (map->entries[at].id && map->entries[at].id != id)
		at = (at + 1) & (map->room - 1);
	return &map->entries[at];
}

struct agent_idmap_entry *agent_idmap_find(const struct agent_idmap *map, uint64_t id)
{
	struct agent_idmap_entry *entry = map->room && id ? probe(map, id) : NULL;

	return entry && entry->id ? entry : NULL;
}

static bool grow(struct agent_idmap *map)
{
	struct agent_idmap old = *map;
	size_t room = old.room ? old.room * 2 : LEAST_ROOM;
	struct agent_idmap_entry *entries = calloc(room, sizeof(*entries));

	if (!entries)
		return false;
	*map = (struct agent_idmap){.entries = entries, .room = room, .used = old.used};
	for (size_t i = 0; i < old.room; i++)
		if (old.entries[i].id)
			*probe(map, old.entries[i].id) = old.entries[i];
	free(old.entries);
	return true;
}

bool agent_idmap_put(struct agent_idmap *map, uint64_t id, uint32_t owner, uint32_t number)
{
	struct agent_idmap_entry *entry;

	if (!id || (map->used >= map->room / 2 && !grow(map)))
		return false;
	entry = probe(map, id);
	map->used += !entry->id;
	*entry = (struct agent_idmap_entry){.id = id, .owner = owner, .number = number};
	return true;
}

/* Inserts all entries anew, because an entry may have to move into a gap before it. The loop starts
 * after a free place, so that no entry is inserted before its own run of entries. */
static void settle(struct agent_idmap *map)
{
	size_t start = 0;

	while (map->entries[start].id)
		start++;
	for (size_t i = 1; i < map->room; i++) {
		struct agent_idmap_entry *at = &map->entries[(start + i) & (map->room - 1)];
		struct agent_idmap_entry entry = *at;

		if (!entry.id)
			continue;
		at->id = 0;
		*probe(map, entry.id) = entry;
	}
}

void agent_idmap_prune(struct agent_idmap *map, bool (*dead)(void *context, uint32_t owner),
		       void *context)
{
	for (size_t i = 0; i < map->room; i++)
		if (map->entries[i].id && dead(context, map->entries[i].owner)) {
			map->entries[i].id = 0;
			map->used--;
		}
	if (map->room)
		settle(map);
}

void agent_idmap_free(struct agent_idmap *map)
{
	free(map->entries);
	*map = (struct agent_idmap){0};
}
