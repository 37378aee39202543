/* SPDX-License-Identifier: MIT
 *
 * Writes the timeline for the page of the flame graph: how much weight each thread got in each of
 * BARS intervals of time. The threads with the most weight have a row each. All others share one
 * row.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "writer.h"
#include "profile/timeline.h"

enum { BARS = 300, ROWS = 60 };

struct span {
	uint64_t low, high;
	uint64_t width; /* of a bar */
};

struct row {
	const struct incstack__timeline_thread *thread; /* null: all others */
	uint64_t total;
};

/* Returns when the weight of a sample began to add up. Returns the time of the sample if the weight
 * is not a time. */
static uint64_t begin_of(const struct incstack__profile_sample *sample, bool is_time)
{
	if (!is_time)
		return sample->time_ns;
	return sample->weight < sample->time_ns ? sample->time_ns - sample->weight : 0;
}

static struct span span_of(const struct incstack__timeline *timeline, bool is_time)
{
	struct span span = {UINT64_MAX, 0, 1};

	for (size_t i = 0; i < timeline->sample_count; i++) {
		const struct incstack__profile_sample *sample = &timeline->samples[i];
		uint64_t begin = begin_of(sample, is_time);

		span.low = begin < span.low ? begin : span.low;
		span.high = sample->time_ns > span.high ? sample->time_ns : span.high;
	}
	if (span.low < span.high)
		span.width = (span.high - span.low - 1) / BARS + 1;
	return span;
}

/* Spreads the weight of a sample over the time that it stands for. */
static void add_sample(uint64_t bars[BARS], const struct span *span,
		       const struct incstack__profile_sample *sample, bool is_time)
{
	uint64_t at = begin_of(sample, is_time) - span->low, end = sample->time_ns - span->low;
	uint64_t last = end / span->width < BARS ? end / span->width : BARS - 1;

	if (!is_time) {
		bars[last] += sample->weight;
		return;
	}
	for (uint64_t bar = at / span->width; at < end && bar < BARS; bar++) {
		uint64_t stop = (bar + 1) * span->width < end ? (bar + 1) * span->width : end;

		bars[bar] += stop - at;
		at = stop;
	}
}

static void add_thread(uint64_t bars[BARS], const struct incstack__timeline *timeline,
		       const struct span *span, const struct incstack__timeline_thread *thread,
		       bool is_time)
{
	for (size_t i = 0; i < thread->count; i++)
		add_sample(bars, span, &timeline->samples[thread->first + i], is_time);
}

static void put_row(const struct incstack_profile *profile, const struct row *row,
		    const uint64_t bars[BARS], FILE *stream)
{
	const struct incstack__timeline_thread *thread = row->thread;

	putc_unlocked('[', stream);
	if (thread)
		incstack__json_text(profile->texts + profile->names[thread->name].offset,
				    profile->names[thread->name].length, stream);
	else
		fputs("null", stream);
	fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",[", thread ? thread->id : 0, row->total);
	for (int i = 0; i < BARS; i++) {
		if (i)
			putc_unlocked(',', stream);
		incstack__json_number(bars[i], stream);
	}
	fputs("]]", stream);
}

static int by_total(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	if (left->total != right->total)
		return left->total > right->total ? -1 : 1;
	return left->thread < right->thread ? -1 : left->thread > right->thread;
}

/* Finds the threads that have samples, the one with the most weight first. Returns how many. */
static size_t rank(const struct incstack__timeline *timeline, struct row *rows)
{
	size_t used = 0;

	for (size_t i = 0; i < timeline->thread_count; i++) {
		const struct incstack__timeline_thread *thread = &timeline->threads[i];

		rows[used] = (struct row){.thread = thread};
		for (size_t k = 0; k < thread->count; k++)
			rows[used].total += timeline->samples[thread->first + k].weight;
		used += rows[used].total > 0;
	}
	qsort(rows, used, sizeof(*rows), by_total);
	return used;
}

static void put_rows(const struct incstack_profile *profile, const struct row *rows, size_t count,
		     const struct span *span, bool is_time, FILE *stream)
{
	struct row others = {0};
	uint64_t bars[BARS];

	for (size_t i = 0; i < count; i++) {
		if (i <= ROWS)
			memset(bars, 0, sizeof(bars));
		add_thread(bars, profile->timeline, span, rows[i].thread, is_time);
		others.total += i < ROWS ? 0 : rows[i].total;
		if (i >= ROWS && i + 1 < count)
			continue;
		fputs(i ? ",\n" : "\n", stream);
		put_row(profile, i < ROWS ? &rows[i] : &others, bars, stream);
	}
}

int incstack__write_bars(const struct incstack_profile *profile, FILE *stream)
{
	const struct incstack__timeline *timeline = profile->timeline;
	struct row *rows = calloc(timeline->thread_count + 1, sizeof(*rows));
	struct incstack_profile_kind kind = {"", ""};
	struct span span;
	size_t count;
	bool is_time;

	if (!rows)
		return INCSTACK_ENOMEM;
	(void)incstack_profile_kind(profile, 0, &kind);
	is_time = !strcmp(kind.unit, "nanoseconds");
	span = span_of(timeline, is_time);
	count = rank(timeline, rows);
	fprintf(stream, "{\"width\":%" PRIu64 ",\"others\":%zu,\"rows\":[", span.width,
		count > ROWS ? count - ROWS : 0);
	put_rows(profile, rows, count, &span, is_time, stream);
	fputs("]}", stream);
	free(rows);
	return 0;
}
