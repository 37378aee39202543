/* SPDX-License-Identifier: MIT
 *
 * Gives the profile of a heap trace file the curve of its live memory.
 */
#include <stdlib.h>

#include "tracefile/notes.h"
#include "report.h"
#include "profile/curve.h"

static int set(const struct incstack__curve *from, const struct incstack__replay *replay,
	       const struct incstack__profile_piece *pieces, struct incstack_profile *profile)
{
	const struct incstack__profile_curve curve = {
		.width_ns = from->width,
		.peak = replay->peak,
		.peak_ns = replay->peak_stamp > from->start ? replay->peak_stamp - from->start : 0,
		.highest = from->highest,
		.moments = from->moment + 1,
		.pieces = pieces,
		.piece_count = from->count,
	};

	return incstack__profile_set_curve(profile, &curve);
}

int tool_report_curve(const struct tool_report *report, const uint32_t *nodes,
		      struct incstack_profile *profile)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const struct incstack__curve *from = &report->replay->curve;
	struct incstack__profile_piece *pieces = NULL;
	int error;

	if (!from->width || incstack__tracefile_has_note(totals, INCSTACK__NOTE_NO_TSC))
		return 0;
	if (!from->without_pieces)
		pieces = calloc(from->count + 1, sizeof(*pieces));
	for (size_t i = 0; pieces && i < from->count; i++)
		pieces[i] = (struct incstack__profile_piece){
			.allocated = from->pieces[i].allocated,
			.freed = from->pieces[i].freed,
			.node = nodes[from->pieces[i].node],
			.moment = from->pieces[i].moment,
		};
	error = set(from, report->replay, pieces, profile);
	free(pieces);
	return error == INCSTACK_ENOMEM ? 0 : error;
}
