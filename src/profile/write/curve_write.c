/* SPDX-License-Identifier: MIT
 *
 * Writes the curve of the live memory, and what boxes allocated and freed in each moment.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "packed.h"
#include "page.h"

/* `node` is the number of a box in the page. */
static int by_moment(const void *a, const void *b)
{
	const struct incstack__profile_piece *left = a, *right = b;

	if (left->moment != right->moment)
		return left->moment < right->moment ? -1 : 1;
	return left->node < right->node ? -1 : left->node > right->node;
}

/* Makes the pieces of a box in a moment one piece. Returns how many there are. */
static size_t join(struct incstack__profile_piece *pieces, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		struct incstack__profile_piece *last = used ? &pieces[used - 1] : NULL;

		if (last && !by_moment(last, &pieces[i])) {
			last->allocated += pieces[i].allocated;
			last->freed += pieces[i].freed;
		} else {
			pieces[used++] = pieces[i];
		}
	}
	return used;
}

/* Writes how many boxes each moment has, and each box as how much its number is above the number before, with
 * what it allocated and freed. */
static void pack(const struct incstack__profile_piece *pieces, size_t count, size_t moments,
		 FILE *stream)
{
	struct incstack__packed packed;
	size_t at = 0;

	incstack__packed_begin(&packed, stream);
	for (size_t moment = 0; moment < moments; moment++) {
		size_t end = at;
		uint32_t box = 0;

		while (end < count && pieces[end].moment == moment)
			end++;
		incstack__packed_number(&packed, end - at);
		for (; at < end; at++) {
			incstack__packed_number(&packed, pieces[at].node - box);
			incstack__packed_number(&packed, pieces[at].allocated);
			incstack__packed_number(&packed, pieces[at].freed);
			box = pieces[at].node;
		}
	}
	incstack__packed_end(&packed);
}

static int put_pieces(const struct incstack__page *page)
{
	const struct incstack__profile_curve *curve = page->profile->curve;
	struct incstack__profile_piece *pieces;
	size_t count = curve->piece_count;

	if (!curve->pieces) {
		fputs("null", page->stream);
		return 0;
	}
	pieces = calloc(count + 1, sizeof(*pieces));
	if (!pieces)
		return INCSTACK_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		pieces[i] = curve->pieces[i];
		pieces[i].node = page->number[page->boxes.of_node[pieces[i].node]];
	}
	qsort(pieces, count, sizeof(*pieces), by_moment);
	count = join(pieces, count);
	pack(pieces, count, curve->moments, page->stream);
	free(pieces);
	return 0;
}

int incstack__write_curve(const struct incstack__page *page)
{
	const struct incstack__profile_curve *curve = page->profile->curve;
	int error;

	fprintf(page->stream,
		"{\"width\":%" PRIu64 ",\"peak\":%" PRIu64 ",\"peakAt\":%" PRIu64 ",\"highest\":[",
		curve->width_ns, curve->peak, curve->peak_ns);
	for (size_t i = 0; i < curve->moments; i++) {
		if (i)
			putc_unlocked(',', page->stream);
		incstack__json_number(curve->highest[i], page->stream);
	}
	fputs("],\n\"pieces\":", page->stream);
	error = put_pieces(page);
	putc_unlocked('}', page->stream);
	return error;
}
