/* SPDX-License-Identifier: MIT
 *
 * Prints the frames of a context of the tree.
 */
#include <stdlib.h>
#include <string.h>

#include "tool/names.h"
#include "report.h"

#define FRAMES 12 /* of a context, at most */

static void put_frame(const struct tool_report *report, const char *name, FILE *out)
{
	const unsigned columns = report->wish->columns;

	fprintf(out, "%20s", "");
	tool_name_clip(name, columns > 40 ? columns - 20 : 20, '>', out);
	fputc('\n', out);
}

void tool_report_frames(const struct tool_report *report, uint32_t node, FILE *out)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;

	for (unsigned i = 0; node != INCSTACK__CCT_ROOT; i++, node = nodes[node].parent) {
		if (i == FRAMES) {
			fprintf(out, "%20s... %u more\n", "", nodes[node].depth);
			return;
		}
		put_frame(report, tool_symbols_name(report->symbols, nodes[node].code), out);
	}
}
