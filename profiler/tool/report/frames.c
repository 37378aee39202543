/* SPDX-License-Identifier: MIT
 *
 * Prints the frames of a context of the tree.
 */
#include <string.h>

#include "report.h"

#define FRAMES 12 /* of a context, at most */

static void put_frame(const struct tool_report *report, const struct tool_symbols_frame *frame,
		      FILE *out)
{
	const unsigned columns = report->wish->columns;

	fprintf(out, "%20s", "");
	tool_report_place(frame->name, strlen(frame->name), frame->file, frame->line,
			  columns > 40 ? columns - 20 : 20, out);
}

void tool_report_frames(const struct tool_report *report, uint32_t node, FILE *out)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	size_t shown = 0;

	for (; node != INCSTACK__CCT_ROOT; node = nodes[node].parent) {
		size_t count;
		const struct tool_symbols_frame *frames =
			tool_symbols_frames(report->symbols, nodes[node].code, &count);

		if (shown >= FRAMES) {
			fprintf(out, "%20s... %u more\n", "", nodes[node].depth);
			return;
		}
		for (size_t i = 0; i < count; i++)
			put_frame(report, &frames[i], out);
		shown += count;
	}
}
