/* SPDX-License-Identifier: MIT
 *
 * Keeps the timeline of a profile; see timeline.h.
 */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#include "cct.h"

static void release(struct incstack__timeline *timeline)
{
	if (!timeline)
		return;
	free(timeline->threads);
	free(timeline->samples);
	free(timeline);
}

void incstack__timeline_drop(struct incstack_profile *profile)
{
	release(profile->timeline);
	profile->timeline = NULL;
}

static bool is_valid(const struct incstack_profile *profile,
		     const struct incstack__profile_timeline *timeline)
{
	if ((!timeline->threads && timeline->thread_count) ||
	    (!timeline->samples && timeline->sample_count))
		return false;
	for (size_t i = 0; i < timeline->thread_count; i++)
		if (!timeline->threads[i].name)
			return false;
	for (size_t i = 0; i < timeline->sample_count; i++) {
		const struct incstack__profile_sample *sample = &timeline->samples[i];

		if (sample->thread >= timeline->thread_count || sample->kind >= profile->kinds ||
		    sample->node >= profile->nodes_used || sample->node == INCSTACK_PROFILE_ROOT)
			return false;
	}
	return true;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct incstack__profile_sample *left = a, *right = b;

	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	return left->time_ns < right->time_ns ? -1 : left->time_ns > right->time_ns;
}

static int copy_threads(struct incstack_profile *profile, struct incstack__timeline *made,
			const struct incstack__profile_timeline *from)
{
	made->threads = calloc(from->thread_count + 1, sizeof(*made->threads));
	if (!made->threads)
		return INCSTACK_ENOMEM;
	for (size_t i = 0; i < from->thread_count; i++) {
		const struct incstack__profile_thread *thread = &from->threads[i];
		int error = INCSTACK_EFORMAT;

		made->threads[i].id = thread->id;
		if (incstack__string_valid(thread->name))
			error = incstack__name_intern(profile, thread->name, strlen(thread->name),
						      &made->threads[i].name);
		if (error)
			return error;
	}
	made->thread_count = from->thread_count;
	return 0;
}

static int copy_samples(struct incstack__timeline *made,
			const struct incstack__profile_timeline *from)
{
	made->samples = calloc(from->sample_count + 1, sizeof(*made->samples));
	if (!made->samples)
		return INCSTACK_ENOMEM;
	if (from->sample_count)
		memcpy(made->samples, from->samples, from->sample_count * sizeof(*made->samples));
	made->sample_count = from->sample_count;
	qsort(made->samples, made->sample_count, sizeof(*made->samples), by_thread_and_time);
	for (size_t i = made->sample_count; i-- > 0;) {
		struct incstack__timeline_thread *thread = &made->threads[made->samples[i].thread];

		thread->first = i;
		thread->count++;
	}
	return 0;
}

int incstack__profile_set_timeline(struct incstack_profile *profile,
				   const struct incstack__profile_timeline *timeline)
{
	struct incstack__timeline *made;
	int error;

	if (!profile || (timeline && !is_valid(profile, timeline)))
		return INCSTACK_EINVAL;
	if (timeline && timeline->thread_count > UINT32_MAX)
		return INCSTACK_ELIMIT;
	if (!timeline) {
		incstack__timeline_drop(profile);
		return 0;
	}
	made = calloc(1, sizeof(*made));
	error = made ? copy_threads(profile, made, timeline) : INCSTACK_ENOMEM;
	if (!error)
		error = copy_samples(made, timeline);
	if (error) {
		release(made);
		return error;
	}
	incstack__timeline_drop(profile);
	profile->timeline = made;
	return 0;
}

int incstack__timeline_copy(const struct incstack_profile *from, const uint32_t *nodes,
			    struct incstack_profile *into)
{
	const struct incstack__timeline *old = from->timeline;
	struct incstack__profile_thread *threads;
	struct incstack__profile_sample *samples;
	int error = INCSTACK_ENOMEM;

	if (!old)
		return 0;
	threads = calloc(old->thread_count + 1, sizeof(*threads));
	samples = calloc(old->sample_count + 1, sizeof(*samples));
	for (size_t i = 0; threads && i < old->thread_count; i++)
		threads[i] = (struct incstack__profile_thread){
			incstack__text(from, old->threads[i].name), old->threads[i].id};
	for (size_t i = 0; samples && i < old->sample_count; i++) {
		samples[i] = old->samples[i];
		samples[i].node = nodes[samples[i].node];
	}
	if (threads && samples)
		error = incstack__profile_set_timeline(
			into, &(struct incstack__profile_timeline){
				      threads, samples, old->thread_count, old->sample_count});
	free(threads);
	free(samples);
	return error;
}

void incstack__timeline_move(struct incstack_profile *profile, const uint32_t *nodes)
{
	struct incstack__timeline *timeline = profile->timeline;
	size_t kept = 0;

	for (size_t i = 0; timeline && i < timeline->thread_count; i++) {
		struct incstack__timeline_thread *thread = &timeline->threads[i];
		const size_t first = thread->first, end = thread->first + thread->count;

		thread->first = kept;
		for (size_t k = first; k < end; k++) {
			struct incstack__profile_sample sample = timeline->samples[k];

			sample.node = nodes[sample.node];
			if (sample.node != INCSTACK_PROFILE_NONE)
				timeline->samples[kept++] = sample;
		}
		thread->count = kept - thread->first;
	}
	if (timeline)
		timeline->sample_count = kept;
}
