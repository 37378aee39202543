/* SPDX-License-Identifier: MIT
 *
 * A hash table whose objects have the links themselves, so that removing one allocates nothing.
 */
#include <stdlib.h>

#include "mirrors.h"

enum { FIRST_BUCKETS = 64 };

static struct linked **bucket_of(const struct links *links, uint64_t key)
{
	const uint64_t hash = (key ^ key >> 31) * 0x9e3779b97f4a7c15u;

	return &links->buckets[(hash >> 32) & links->mask];
}

bool incstack__links_init(struct links *links)
{
	*links = (struct links){calloc(FIRST_BUCKETS, sizeof(*links->buckets)), FIRST_BUCKETS - 1,
				0};
	return links->buckets;
}

static void move_all(const struct links *from, struct links *to)
{
	for (size_t i = 0; i <= from->mask; i++)
		for (struct linked *at = from->buckets[i], *next; at; at = next) {
			next = at->next;
			incstack__links_add(to, at, at->key);
		}
}

bool incstack__links_reserve(struct links *links, size_t count)
{
	struct links grown = {.mask = links->mask};

	while (grown.mask < links->used + count)
		grown.mask = grown.mask * 2 + 1;
	if (grown.mask == links->mask)
		return true;
	grown.buckets = calloc(grown.mask + 1, sizeof(struct linked *));
	if (!grown.buckets)
		return false;
	move_all(links, &grown);
	free(links->buckets);
	*links = grown;
	return true;
}

void incstack__links_add(struct links *links, struct linked *added, uint64_t key)
{
	struct linked **bucket = bucket_of(links, key);

	added->key = key;
	added->next = *bucket;
	*bucket = added;
	links->used++;
}

void incstack__links_remove(struct links *links, struct linked *removed)
{
	struct linked **at = bucket_of(links, removed->key);

	while (*at != removed)
		at = &(*at)->next;
	*at = removed->next;
	links->used--;
}

static struct linked *with_key(struct linked *at, uint64_t key)
{
	while (at && at->key != key)
		at = at->next;
	return at;
}

struct linked *incstack__links_first(const struct links *links, uint64_t key)
{
	return with_key(*bucket_of(links, key), key);
}

struct linked *incstack__links_next(const struct linked *at)
{
	return with_key(at->next, at->key);
}
