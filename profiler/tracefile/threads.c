/* SPDX-License-Identifier: MIT
 *
 * What the tallies of a trace file say about each thread, and their sums.
 */
#include <stdlib.h>

#include "internal.h"

void incstack__tracefile_tally_add(struct incstack__tracefile_totals *totals,
				   const struct incstack__tracefile_tally *tally)
{
	struct incstack__tracefile_tally *sum = &totals->tally;

	sum->flags |= tally->flags;
	incstack__tracefile_count(&sum->samples, tally->samples);
	if (tally->samples > sum->samples / 2)
		sum->mode = tally->mode; /* of the thread with the most traces */
	incstack__tracefile_count(&sum->lost, tally->lost);
	incstack__tracefile_count(&sum->crosschecked, tally->crosschecked);
	incstack__tracefile_count(&sum->mismatches, tally->mismatches);
	incstack__tracefile_count(&sum->truncated, tally->truncated);
	incstack__tracefile_count(&sum->returns, tally->returns);
	incstack__tracefile_count(&sum->stale, tally->stale);
	incstack__tracefile_count(&sum->events_dropped, tally->events_dropped);
	incstack__tracefile_count(&sum->cpu_ns, tally->cpu_ns);
	for (int i = 0; i < INCSTACK__TICKS; i++)
		incstack__tracefile_count(&sum->ticks[i], tally->ticks[i]);
	totals->tallies++;
}

/* Returns the length in bytes of the UTF-8 character that begins at `at`, or 0 if there is none. */
static unsigned character(const unsigned char *at)
{
	const unsigned bytes = at[0] < 0x80   ? 1
			       : at[0] < 0xc2 ? 0
			       : at[0] < 0xe0 ? 2
			       : at[0] < 0xf0 ? 3
			       : at[0] < 0xf5 ? 4
					      : 0;

	for (unsigned i = 1; i < bytes; i++)
		if (at[i] >> 6 != 2)
			return 0;
	return bytes;
}

/* Copies a name. A program may use any bytes as names of threads, and the kernel truncates them. */
static void copy_name(char to[INCSTACK__TRACEFILE_NAME_BYTES + 1], const char *from)
{
	unsigned bytes;

	memcpy(to, from, INCSTACK__TRACEFILE_NAME_BYTES);
	for (char *at = to; *at != 0; at += bytes) {
		bytes = character((unsigned char *)at);
		if (bytes == 0 || (unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
		bytes += bytes == 0;
	}
}

int incstack__tracefile_threads_add(struct incstack__tracefile_threads *threads, uint32_t number,
				    const struct incstack__tracefile_tally *tally)
{
	const size_t count = threads->count;
	struct incstack__tracefile_thread *grown = threads->all;

	if ((count & (count - 1)) == 0)
		grown = realloc(grown, (count == 0 ? 1 : 2 * count) * sizeof(*grown));
	if (!grown)
		return INCSTACK_ENOMEM;
	threads->all = grown;
	grown[count] = (struct incstack__tracefile_thread){.number = number, .tid = tally->tid};
	copy_name(grown[count].name, tally->name);
	threads->count++;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct incstack__tracefile_thread *left =
		*(struct incstack__tracefile_thread *const *)a;
	const struct incstack__tracefile_thread *right =
		*(struct incstack__tracefile_thread *const *)b;
	const int order = strcmp(left->name, right->name);

	return order != 0 ? order : left < right ? -1 : left > right;
}

int incstack__tracefile_threads_group(struct incstack__tracefile_threads *threads)
{
	struct incstack__tracefile_thread **sorted = calloc(threads->count + 1, sizeof(void *));

	if (!sorted)
		return INCSTACK_ENOMEM;
	for (size_t i = 0; i < threads->count; i++)
		sorted[i] = &threads->all[i];
	qsort(sorted, threads->count, sizeof(void *), by_name);
	for (size_t i = 0; i < threads->count; i++)
		sorted[i]->group = i > 0 && strcmp(sorted[i]->name, sorted[i - 1]->name) == 0
					   ? sorted[i - 1]->group
					   : (uint32_t)(sorted[i] - threads->all);
	free(sorted);
	return 0;
}

static int by_number(const void *key, const void *thread)
{
	const uint32_t number = *(const uint32_t *)key;
	const uint32_t other = ((const struct incstack__tracefile_thread *)thread)->number;

	return number < other ? -1 : number > other;
}

const struct incstack__tracefile_thread *
incstack__tracefile_threads_find(const struct incstack__tracefile_threads *threads, uint32_t number)
{
	if (threads->count == 0)
		return NULL;
	return bsearch(&number, threads->all, threads->count, sizeof(*threads->all), by_number);
}
