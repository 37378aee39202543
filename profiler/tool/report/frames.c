/* SPDX-License-Identifier: MIT
 *
 * Prints the frames of a context.
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

void tool_report_context(const struct tool_report *report, uint32_t number, FILE *out)
{
	struct incstack_profile_node node = {.size = sizeof(node)};
	unsigned more = 0;

	for (unsigned i = 0; number != INCSTACK_PROFILE_ROOT; i++, number = node.parent) {
		char *name = NULL;

		(void)incstack_profile_node(report->profile, number, &node);
		if (i >= FRAMES)
			more++;
		else
			name = strndup(node.frame.name, node.frame.name_length);
		if (name != NULL)
			put_frame(report, name, out);
		free(name);
	}
	if (more > 0)
		fprintf(out, "%20s... %u more\n", "", more);
}
