/* SPDX-License-Identifier: MIT
 *
 * Folded stacks: what other flame graph tools read.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "report.h"

static void put_name(const char *name, FILE *out)
{
	for (; *name != 0; name++)
		fputc(*name == ';' || *name == '\n' ? ':' : *name, out);
}

/* From the root: the tree is as deep as the program's stack, so no recursion. */
static void put_path(const struct tool_report *report, uint32_t *path, uint32_t node, FILE *out)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	uint32_t length = 0;

	for (; node != INCSTACK__CCT_ROOT; node = nodes[node].parent)
		path[length++] = node;
	while (length-- > 0) {
		put_name(tool_symbols_name(report->symbols, nodes[path[length]].code), out);
		fputc(length == 0 ? ' ' : ';', out);
	}
}

void tool_report_folded(const struct tool_report *report, FILE *out)
{
	const struct incstack__cct *cct = &report->replay->cct;
	uint32_t *path = calloc(cct->count, sizeof(*path));

	for (uint32_t node = 1; path != NULL && node < cct->count; node++) {
		if (cct->nodes[node].values.calls == 0)
			continue;
		put_path(report, path, node, out);
		fprintf(out, "%" PRIu64 "\n", cct->nodes[node].values.bytes);
	}
	free(path);
}
