/* SPDX-License-Identifier: MIT
 *
 * Prints the frames of a context.
 */
#include "tool/names.h"
#include "report.h"

#define FRAMES 12 /* of a context, at most */

void tool_report_frames(const struct tool_report *report, uint32_t node, FILE *out,
			unsigned columns)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	const unsigned width = columns > 40 ? columns - 20 : 20;

	for (unsigned i = 0; node != INCSTACK__CCT_ROOT; i++, node = nodes[node].parent) {
		if (i == FRAMES) {
			fprintf(out, "%20s... %u more\n", "", nodes[node].depth);
			return;
		}
		fprintf(out, "%20s", "");
		tool_name_clip(tool_symbols_name(report->symbols, nodes[node].code), width, '>',
			       out);
		fputc('\n', out);
	}
}
