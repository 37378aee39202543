/* SPDX-License-Identifier: MIT
 *
 * Sums the samples of a timeline by context and thread.
 */
#include <stdlib.h>

#include "pprof_threads.h"

static int by_place(const void *a, const void *b)
{
	const struct incstack__pprof_share *left = a, *right = b;

	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return left->thread < right->thread ? -1 : left->thread > right->thread;
}

/* Makes one share of those with the same node, kind and thread. */
static size_t sum(struct incstack__pprof_share *shares, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		struct incstack__pprof_share *last = used ? &shares[used - 1] : NULL;

		if (last && !by_place(last, &shares[i])) {
			last->weight += shares[i].weight;
			last->count += shares[i].count;
		} else {
			shares[used++] = shares[i];
		}
	}
	return used;
}

int incstack__pprof_threads_make(struct incstack__pprof_threads *threads,
				 const struct incstack_profile *profile)
{
	const struct incstack__timeline *timeline = profile->timeline;

	incstack__pprof_threads_free(threads);
	threads->used = threads->next = 0;
	if (!timeline)
		return 0;
	threads->shares = malloc((timeline->sample_count + 1) * sizeof(*threads->shares));
	if (!threads->shares)
		return INCSTACK_ENOMEM;
	for (size_t i = 0; i < timeline->sample_count; i++) {
		const struct incstack__profile_sample *sample = &timeline->samples[i];

		threads->shares[i] = (struct incstack__pprof_share){
			sample->node, sample->thread, sample->kind, sample->weight, 1};
	}
	qsort(threads->shares, timeline->sample_count, sizeof(*threads->shares), by_place);
	threads->used = sum(threads->shares, timeline->sample_count);
	return 0;
}

void incstack__pprof_threads_free(struct incstack__pprof_threads *threads)
{
	free(threads->shares);
	threads->shares = NULL;
}

void incstack__pprof_share_add(const struct incstack__pprof_share *share, uint64_t *values)
{
	values[0] += share->weight;
	if (share->kind)
		values[share->kind] += share->weight;
	if (share->kind != 1)
		values[1] += share->count;
}

size_t incstack__pprof_threads_of(struct incstack__pprof_threads *threads,
				  const struct incstack_profile *profile, uint32_t node,
				  const struct incstack__pprof_share **first)
{
	uint64_t sums[INCSTACK_PROFILE_KINDS_MAX] = {0};
	size_t count = 0;

	while (threads->next < threads->used && threads->shares[threads->next].node < node)
		threads->next++;
	*first = threads->shares + threads->next;
	while (threads->next + count < threads->used && (*first)[count].node == node)
		incstack__pprof_share_add(&(*first)[count++], sums);
	for (uint32_t k = 0; k < profile->kinds && count; k++)
		if (sums[k] != incstack__profile_self(profile, node, k))
			return 0;
	return count;
}
