/* SPDX-License-Identifier: MIT
 *
 * Prints the frames of a context.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/names.h"
#include "report.h"

#define FRAMES 12 /* of a context, at most */

/* Prints the name, and if it is known the place in the source, without the folders of the file. */
static void put_frame(const struct tool_report *report, const char *name, const char *file,
		      int32_t line, FILE *out)
{
	const unsigned columns = report->wish->columns;
	char place[64] = "";

	if (file != NULL && line > 0)
		snprintf(place, sizeof(place), "  %s:%" PRId32, tool_base_name(file), line);
	fprintf(out, "%20s", "");
	tool_name_clip(name, columns > 40 + strlen(place) ? columns - 20 - strlen(place) : 20, '>',
		       out);
	tool_name_clip(place, sizeof(place), '>', out);
	fputc('\n', out);
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
			put_frame(report, frames[i].name, frames[i].file, frames[i].line, out);
		shown += count;
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
			put_frame(report, name, node.frame.file, node.frame.line, out);
		free(name);
	}
	if (more > 0)
		fprintf(out, "%20s... %u more\n", "", more);
}
