/* SPDX-License-Identifier: MIT
 *
 * Finds out, without the dynamic linker's lock, whether the linker has loaded or unloaded anything.
 *
 * dl_iterate_phdr reports how many objects were added and removed, but it waits for a lock (D79).
 * glibc has two counters in its data, _rtld_global: the objects that were added, and
 * the objects that are loaded. Their offsets differ between versions, so they are found by
 * observation. Loading the recorder has changed both counters. A word that had the value of a
 * counter before that, and had the counter's value at each look since, is that counter or follows
 * it by chance. As long as all such words have the values of a look, nothing has changed since that
 * look.
 *
 * An object in another namespace (dlmopen, LD_AUDIT) is counted by dl_iterate_phdr, but not
 * in the word for the loaded objects. That word then ceases to be a candidate, and
 * dl_iterate_phdr is called each time. The same holds if libc has its counters elsewhere.
 */
#include <stdatomic.h>

#include "modules.h"

enum { ADDED = 1, LOADED = 2, BOTH = ADDED | LOADED };
enum { WORDS_MAX = 64 };

static struct word {
	const _Atomic uint32_t *at; /* data of the dynamic linker */
	_Atomic unsigned shows;     /* the counters whose values it has had at each look so far */
} words[WORDS_MAX];

static size_t count;
static uint64_t first_adds; /* before the recorder was loaded */
static _Atomic bool found;

static unsigned shown(uint32_t value, struct incstack__record_counts counts)
{
	return (value == (uint32_t)counts.adds ? ADDED : 0u) |
	       (value == (uint32_t)(counts.adds - counts.subs) ? LOADED : 0u);
}

static unsigned shown_now(const struct word *word, struct incstack__record_counts counts)
{
	return shown(atomic_load_explicit(word->at, memory_order_acquire), counts);
}

void incstack__record_linker_begin(const struct incstack__linker_view *before)
{
	const struct incstack__record_counts counts = {before->adds, before->subs};

	first_adds = before->adds;
	for (size_t i = 0; i < before->words; i++) {
		const unsigned shows = shown(before->copy[i], counts);

		if (shows == 0)
			continue;
		if (count == WORDS_MAX) {
			count = 0;
			return;
		}
		words[count++] = (struct word){(const _Atomic uint32_t *)&before->data[i], shows};
	}
}

/* At first, one word could be the only candidate for both counters, so two are needed. The release
 * of `found` pairs with the acquire in incstack__record_linker_shows, which then sees `shows`. */
void incstack__record_linker_compare(struct incstack__record_counts counts)
{
	unsigned all = 0;
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		const unsigned shows = words[i].shows & shown_now(&words[i], counts);

		atomic_store_explicit(&words[i].shows, shows, memory_order_relaxed);
		all |= shows;
		left += shows != 0;
	}
	atomic_store_explicit(&found, counts.adds != first_adds && all == BOTH && left >= 2,
			      memory_order_release);
}

bool incstack__record_linker_shows(struct incstack__record_counts counts)
{
	if (!atomic_load_explicit(&found, memory_order_acquire))
		return false;
	for (size_t i = 0; i < count; i++)
		if (atomic_load_explicit(&words[i].shows, memory_order_relaxed) &
		    ~shown_now(&words[i], counts))
			return false;
	return true;
}
