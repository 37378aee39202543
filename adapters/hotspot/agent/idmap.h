/* SPDX-License-Identifier: MIT
 *
 * A map from 64-bit identifiers to two numbers. Knows nothing of the JVM.
 */
#ifndef AGENT_IDMAP_H
#define AGENT_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_idmap_entry {
	uint64_t id;     /* 0: free */
	uint32_t owner;  /* the class */
	uint32_t number; /* the method, if it is known */
};

struct agent_idmap {
	struct agent_idmap_entry *entries;
	size_t room, used; /* room is 0 or a power of two */
};

/* The entry of an id; null if there is none. Valid until the next insertion. */
struct agent_idmap_entry *agent_idmap_find(const struct agent_idmap *map, uint64_t id);

/* Inserts an entry, or replaces the one with this id, which is not 0. Returns false without
 * memory; then nothing changed. */
bool agent_idmap_put(struct agent_idmap *map, uint64_t id, uint32_t owner, uint32_t number);

/* Removes all entries whose owner is `dead` according to the function. */
void agent_idmap_prune(struct agent_idmap *map, bool (*dead)(void *context, uint32_t owner),
		       void *context);

void agent_idmap_free(struct agent_idmap *map);

#endif
