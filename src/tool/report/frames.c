/* SPDX-License-Identifier: MIT
 *
 * Prints the frames of a context.
 */
#include <string.h>

#include "report.h"

#define FRAMES 12 /* of a context, at most */

static void put_frame(const struct tool_report *report, const char *name, size_t length, FILE *out)
{
	const size_t columns = report->wish->columns;
	const size_t width = (columns > 40 ? columns - 20 : 20) - 3;

	fprintf(out, "%20s%.*s%s\n", "", (int)(length < width ? length : width), name,
		length > width ? "..." : "");
}

void tool_report_frames(const struct tool_report *report, uint32_t node, FILE *out)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;

	for (unsigned i = 0; node != INCSTACK__CCT_ROOT; i++, node = nodes[node].parent) {
		const char *name = tool_symbols_name(report->symbols, nodes[node].code);

		if (i == FRAMES) {
			fprintf(out, "%20s... %u more\n", "", nodes[node].depth);
			return;
		}
		put_frame(report, name, strlen(name), out);
	}
}

void tool_report_context(const struct tool_report *report, uint32_t node, FILE *out)
{
	const struct incstack_profile *profile = report->profile;
	unsigned more = 0;

	for (unsigned i = 0; node != INCSTACK_PROFILE_ROOT;
	     i++, node = incstack_profile_parent(profile, node)) {
		struct incstack_profile_frame frame = {.name = "?", .name_length = 1};

		(void)incstack_profile_frame(profile, node, &frame);
		if (i < FRAMES)
			put_frame(report, frame.name, frame.name_length, out);
		else
			more++;
	}
	if (more > 0)
		fprintf(out, "%20s... %u more\n", "", more);
}
