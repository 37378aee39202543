/* SPDX-License-Identifier: MIT
 *
 * Gives the profile of a trace file its timeline: the ticks of a CPU profile, by thread.
 */
#include <stdlib.h>
#include <string.h>

#include "tracefile/notes.h"
#include "tool/names.h"
#include "report.h"
#include "profile/timeline.h"

/* The threads that have samples, by their numbers. */
struct found {
	uint32_t *numbers;
	struct incstack__profile_thread *threads;
	size_t count;
};

static int by_number(const void *a, const void *b)
{
	const uint32_t left = *(const uint32_t *)a;
	const uint32_t right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

static struct incstack__profile_thread describe(const struct tool_report *report, uint32_t number)
{
	const struct incstack__tracefile_thread *thread =
		incstack__tracefile_reader_thread(report->reader, number);

	if (thread == NULL || thread->name[0] == 0)
		return (struct incstack__profile_thread){.name = "[unknown thread]"};
	return (struct incstack__profile_thread){.name = tool_name(thread->name),
						 .id = thread->tid};
}

static int find_threads(const struct tool_report *report, struct found *found)
{
	const struct incstack__replay *replay = report->replay;
	size_t used = 0;

	found->numbers = calloc(replay->sample_count + 1, sizeof(*found->numbers));
	if (found->numbers == NULL)
		return INCSTACK_ENOMEM;
	for (size_t i = 0; i < replay->sample_count; i++)
		found->numbers[i] = replay->samples[i].thread;
	qsort(found->numbers, replay->sample_count, sizeof(*found->numbers), by_number);
	for (size_t i = 0; i < replay->sample_count; i++)
		if (used == 0 || found->numbers[used - 1] != found->numbers[i])
			found->numbers[used++] = found->numbers[i];
	found->count = used;
	found->threads = calloc(used + 1, sizeof(*found->threads));
	for (size_t i = 0; i < used && found->threads != NULL; i++)
		found->threads[i] = describe(report, found->numbers[i]);
	return found->threads != NULL ? 0 : INCSTACK_ENOMEM;
}

static uint32_t place_of(const struct found *found, uint32_t number)
{
	const uint32_t *place =
		bsearch(&number, found->numbers, found->count, sizeof(*found->numbers), by_number);

	return (uint32_t)(place - found->numbers);
}

static int set(struct incstack_profile *profile, const struct tool_report *report,
	       const uint32_t *nodes, const struct found *found)
{
	const struct incstack__replay *replay = report->replay;
	struct incstack__profile_sample *samples =
		calloc(replay->sample_count + 1, sizeof(*samples));
	const struct incstack__profile_timeline timeline = {found->threads, samples, found->count,
							    replay->sample_count};
	int error;

	if (samples == NULL)
		return INCSTACK_ENOMEM;
	for (size_t i = 0; i < replay->sample_count; i++)
		samples[i] = (struct incstack__profile_sample){
			.time_ns = replay->samples[i].stamp,
			.weight = replay->samples[i].weight,
			.thread = place_of(found, replay->samples[i].thread),
			.node = nodes[replay->samples[i].node],
			.kind = tool_report_kind_of(report, replay->samples[i].state),
		};
	error = incstack__profile_set_timeline(profile, &timeline);
	free(samples);
	return error;
}

int tool_report_timeline(const struct tool_report *report, const uint32_t *nodes,
			 struct incstack_profile *profile)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	struct found found = {0};
	int error;

	if (report->replay->sample_count == INCSTACK__REPLAY_SAMPLES_MAX ||
	    incstack__tracefile_has_note(totals, INCSTACK__NOTE_NO_TSC))
		return 0;
	error = find_threads(report, &found);
	if (error == 0)
		error = set(profile, report, nodes, &found);
	free(found.numbers);
	free(found.threads);
	return error == INCSTACK_ENOMEM || error == INCSTACK_EFORMAT ? 0 : error;
}
