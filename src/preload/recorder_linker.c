/* SPDX-License-Identifier: MIT
 *
 * Whether the dynamic linker has loaded or unloaded anything, without its lock.
 *
 * dl_iterate_phdr tells how many objects were added and removed, but it waits for a lock.
 * The thread that has the lock may be in a callback that waits for a lock of the program,
 * which the caller holds. glibc has two counters in its data, _rtld_global: what was added,
 * and what is loaded. Where they lie there differs from version to version, so it is
 * learned. Loading the recorder has changed both. A word that showed one of the numbers
 * before, and has shown it at each look since, is a counter, or follows one by chance. As
 * long as all such words show the numbers of a look, nothing has changed since that look.
 *
 * An object in another namespace (dlmopen, LD_AUDIT) is counted by dl_iterate_phdr, but not
 * in the word for what is loaded. That word is then no candidate any more, and the linker
 * is asked each time. The same holds where libc has its counters elsewhere.
 */
#include "recorder_modules.h"

enum { ADDED = 1, LOADED = 2, BOTH = ADDED | LOADED };
enum { WORDS_MAX = 64 };

static struct word {
	const uint32_t *at;
	unsigned shows; /* at each look so far */
} words[WORDS_MAX];

static size_t count;
static uint64_t first_adds; /* before the recorder was loaded */
static int found;

static unsigned shown(uint32_t value, struct incstack__record_counts counts)
{
	return (value == (uint32_t)counts.adds ? ADDED : 0u) |
	       (value == (uint32_t)(counts.adds - counts.subs) ? LOADED : 0u);
}

static unsigned shown_now(const struct word *word, struct incstack__record_counts counts)
{
	return shown(__atomic_load_n(word->at, __ATOMIC_ACQUIRE), counts);
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
		words[count++] = (struct word){&before->data[i], shows};
	}
}

/* At first one word could be the only one of both counters. */
void incstack__record_linker_compare(struct incstack__record_counts counts)
{
	unsigned all = 0;
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		const unsigned shows = words[i].shows & shown_now(&words[i], counts);

		__atomic_store_n(&words[i].shows, shows, __ATOMIC_RELAXED);
		all |= shows;
		left += shows != 0;
	}
	__atomic_store_n(&found, counts.adds != first_adds && all == BOTH && left >= 2,
			 __ATOMIC_RELEASE);
}

int incstack__record_linker_shows(struct incstack__record_counts counts)
{
	if (!__atomic_load_n(&found, __ATOMIC_ACQUIRE))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (__atomic_load_n(&words[i].shows, __ATOMIC_RELAXED) &
		    ~shown_now(&words[i], counts))
			return 0;
	return 1;
}
