/* SPDX-License-Identifier: MIT
 *
 * Says how much of a profile depends on frame pointers, and how many traces they have ended.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "report.h"

/* What lies below a node. */
enum { BY_POINTER = 1, LED_NOWHERE = 2 };

struct sum {
	uint64_t calls, bytes;
};

static void add(struct sum *sum, const struct incstack__cct_values *values)
{
	sum->calls += values->calls;
	sum->bytes += values->bytes;
}

/* Whether a context has frames whose callers were found by frame pointers, and whether it begins where a frame
 * pointer led nowhere. */
static unsigned char kind_of(const struct incstack__cct_node *node, unsigned char parent)
{
	return (unsigned char)(parent | (node->by_pointer ? BY_POINTER : 0) |
			       (node->code == INCSTACK__CCT_POINTER ? LED_NOWHERE : 0));
}

static void sum_up(const struct incstack__cct *cct, struct sum *found, struct sum *nowhere)
{
	unsigned char *kinds = calloc(cct->count, sizeof(*kinds));

	for (uint32_t i = 1; kinds != NULL && i < cct->count; i++) {
		const struct incstack__cct_node *node = &cct->nodes[i];

		kinds[i] = kind_of(node, kinds[node->parent]);
		if (kinds[i] & LED_NOWHERE)
			add(nowhere, &node->values);
		else if (kinds[i] & BY_POINTER)
			add(found, &node->values);
	}
	free(kinds);
}

void tool_report_pointers(const struct tool_report *report, FILE *out)
{
	const struct incstack__replay *replay = report->replay;
	const double all = replay->bytes > 0 ? (double)replay->bytes : 1;
	const char *what = tool_report_is_cpu(report) ? "time" : "bytes";
	struct sum found = {0, 0};
	struct sum nowhere = {0, 0};

	sum_up(&replay->cct, &found, &nowhere);
	if (nowhere.calls > 0)
		fprintf(out,
			"warning: %" PRIu64 " traces (%.1f%% of the %s) end where a frame pointer "
			"leads nowhere: their code has no unwind rules, and keeps none there\n",
			nowhere.calls, 100.0 * (double)nowhere.bytes / all, what);
	if (found.calls > 0)
		fprintf(out,
			"note: %.1f%% of the %s ran below code without unwind rules; (fp) marks "
			"frames whose callers were found by frame pointers, which may leave out "
			"one\n",
			100.0 * (double)found.bytes / all, what);
}
