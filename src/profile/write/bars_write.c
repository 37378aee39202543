/* SPDX-License-Identifier: MIT
 *
 * Writes the timeline for the page of the flame graph: how much weight each thread got in each of
 * BARS intervals of time. The threads with the most weight have a row each. All others share one
 * row. With each row is which boxes got the weight, so that the page can show an interval.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "packed.h"
#include "page.h"

enum { BARS = 300, ROWS = 60 };

/* With more pieces of samples than that, the page has the bars alone. */
#define PIECES_MOST (1u << 21)

struct span {
	uint64_t low, high;
	uint64_t width; /* of a bar */
};

/* What a box got in a bar of a row. */
struct piece {
	uint64_t weight;
	uint32_t row, bar, box;
};

struct pieces {
	struct piece *piece; /* null: they are only counted */
	size_t count;
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

/* Spreads the weight of a sample over the bars of the time that it stands for. */
static void spread(const struct span *span, const struct incstack__profile_sample *sample,
		   bool is_time, void (*add)(void *context, uint32_t bar, uint64_t weight),
		   void *context)
{
	uint64_t at = begin_of(sample, is_time) - span->low, end = sample->time_ns - span->low;
	uint64_t last = end / span->width < BARS ? end / span->width : BARS - 1;

	if (!is_time) {
		add(context, (uint32_t)last, sample->weight);
		return;
	}
	for (uint64_t bar = at / span->width; at < end && bar < BARS; bar++) {
		uint64_t stop = (bar + 1) * span->width < end ? (bar + 1) * span->width : end;

		add(context, (uint32_t)bar, stop - at);
		at = stop;
	}
}

static void add_to_bar(void *context, uint32_t bar, uint64_t weight)
{
	uint64_t *bars = context;

	bars[bar] += weight;
}

static void add_thread(uint64_t bars[BARS], const struct incstack__timeline *timeline,
		       const struct span *span, const struct incstack__timeline_thread *thread,
		       bool is_time)
{
	for (size_t i = 0; i < thread->count; i++)
		spread(span, &timeline->samples[thread->first + i], is_time, add_to_bar, bars);
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

/* ---- which boxes got the weight of the bars ------------------------------------------------------ */

/* What a visit of all samples needs to know about the sample that it is at. */
struct cursor {
	struct pieces *pieces;
	uint32_t row, box;
};

static void add_piece(void *context, uint32_t bar, uint64_t weight)
{
	const struct cursor *cursor = context;
	struct pieces *pieces = cursor->pieces;

	if (!weight)
		return;
	if (pieces->piece)
		pieces->piece[pieces->count] =
			(struct piece){weight, cursor->row, bar, cursor->box};
	pieces->count++;
}

/* Adds the pieces of all samples, or as many as tell that they are too many. */
static void visit(const struct incstack__page *page, const struct row *rows, size_t count,
		  const struct span *span, bool is_time, struct pieces *pieces)
{
	const struct incstack__timeline *timeline = page->profile->timeline;

	pieces->count = 0;
	for (uint32_t i = 0; i < count; i++)
		for (size_t k = 0; k < rows[i].thread->count && pieces->count <= PIECES_MOST; k++) {
			const struct incstack__profile_sample *sample =
				&timeline->samples[rows[i].thread->first + k];
			struct cursor cursor = {pieces, i < ROWS ? i : ROWS,
						page->number[page->boxes.of_node[sample->node]]};

			spread(span, sample, is_time, add_piece, &cursor);
		}
}

static int by_place(const void *a, const void *b)
{
	const struct piece *left = a, *right = b;

	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	if (left->bar != right->bar)
		return left->bar < right->bar ? -1 : 1;
	return left->box < right->box ? -1 : left->box > right->box;
}

/* Makes the pieces of one place one piece. */
static void join(struct pieces *pieces)
{
	size_t used = 0;

	for (size_t i = 0; i < pieces->count; i++)
		if (used && !by_place(&pieces->piece[used - 1], &pieces->piece[i]))
			pieces->piece[used - 1].weight += pieces->piece[i].weight;
		else
			pieces->piece[used++] = pieces->piece[i];
	pieces->count = used;
}

/* Writes, for each bar of each row, how many boxes have a piece of it, and each box with its weight. A box is
 * given as how much its number is above the number before. */
static void pack(const struct pieces *pieces, size_t rows, FILE *stream)
{
	struct incstack__packed packed;
	size_t at = 0;

	incstack__packed_begin(&packed, stream);
	for (size_t bar = 0; bar < rows * BARS; bar++) {
		size_t end = at;
		uint32_t box = 0;

		while (end < pieces->count &&
		       (size_t)pieces->piece[end].row * BARS + pieces->piece[end].bar == bar)
			end++;
		incstack__packed_number(&packed, end - at);
		for (; at < end; at++) {
			incstack__packed_number(&packed, pieces->piece[at].box - box);
			incstack__packed_number(&packed, pieces->piece[at].weight);
			box = pieces->piece[at].box;
		}
	}
	incstack__packed_end(&packed);
}

static int put_pieces(const struct incstack__page *page, const struct row *rows, size_t count,
		      const struct span *span, bool is_time)
{
	struct pieces pieces = {0};

	visit(page, rows, count, span, is_time, &pieces);
	if (pieces.count > PIECES_MOST) {
		fputs("null", page->stream);
		return 0;
	}
	pieces.piece = calloc(pieces.count + 1, sizeof(*pieces.piece));
	if (!pieces.piece)
		return INCSTACK_ENOMEM;
	visit(page, rows, count, span, is_time, &pieces);
	qsort(pieces.piece, pieces.count, sizeof(*pieces.piece), by_place);
	join(&pieces);
	pack(&pieces, count > ROWS ? ROWS + 1 : count, page->stream);
	free(pieces.piece);
	return 0;
}

int incstack__write_bars(const struct incstack__page *page)
{
	const struct incstack_profile *profile = page->profile;
	const struct incstack__timeline *timeline = profile->timeline;
	struct row *rows = calloc(timeline->thread_count + 1, sizeof(*rows));
	struct incstack_profile_kind kind = {"", ""};
	struct span span;
	size_t count;
	bool is_time;
	int error;

	if (!rows)
		return INCSTACK_ENOMEM;
	(void)incstack_profile_kind(profile, 0, &kind);
	is_time = !strcmp(kind.unit, "nanoseconds");
	span = span_of(timeline, is_time);
	count = rank(timeline, rows);
	fprintf(page->stream, "{\"width\":%" PRIu64 ",\"others\":%zu,\"rows\":[", span.width,
		count > ROWS ? count - ROWS : 0);
	put_rows(profile, rows, count, &span, is_time, page->stream);
	fputs("],\n\"samples\":", page->stream);
	error = put_pieces(page, rows, count, &span, is_time);
	putc_unlocked('}', page->stream);
	free(rows);
	return error;
}
