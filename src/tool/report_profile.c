/* SPDX-License-Identifier: MIT
 *
 * From the replayed calling context tree to a profile, which the profile library
 * writes as flame graph and folded stacks. Contexts that differ only in where a
 * function calls become one.
 */
#include <stdlib.h>
#include <string.h>

#include "report.h"

static const struct incstack_profile_kind kinds[] = {
	{"allocated", "bytes"},
	{"allocations", "count"},
	{"live at peak", "bytes"},
	{"live at exit", "bytes"},
};

/* What add_tree folds: an object for each node, a trace for each that has values. */
struct forest {
	struct incstack_frame_object *objects;
	struct incstack_trace *traces;
	struct incstack_tree tree;
};

static int has_values(const struct incstack__cct_values *values)
{
	return values->bytes != 0 || values->calls != 0 || values->live != 0 || values->peak != 0;
}

/* A function's name is there once: where it lies is the method. */
static void plant(struct forest *forest, const struct tool_report *report)
{
	const struct incstack__cct *cct = &report->replay->cct;

	for (uint32_t node = 1; node < cct->count; node++) {
		const uint32_t parent = cct->nodes[node].parent;
		struct incstack_trace *trace = &forest->traces[forest->tree.count];

		forest->objects[node] = (struct incstack_frame_object){
			.parent = parent == INCSTACK__CCT_ROOT ? NULL : &forest->objects[parent],
			.method = (uintptr_t)tool_symbols_name(report->symbols,
							       cct->nodes[node].code),
			.bci = -1,
			.flags = INCSTACK_OBJECT_FILLED |
				 (parent == INCSTACK__CCT_ROOT ? INCSTACK_OBJECT_BASE : 0u),
		};
		if (!has_values(&cct->nodes[node].values))
			continue;
		*trace = (struct incstack_trace){.id = node, .top = &forest->objects[node]};
		if (forest->tree.count++ > 0)
			trace[-1].next = trace;
	}
	forest->tree.objects = cct->count;
	forest->tree.traces = forest->tree.count > 0 ? forest->traces : NULL;
}

static void weigh(void *context, const struct incstack_trace *trace, uint64_t *weights)
{
	const struct tool_report *report = context;
	const struct incstack__cct_values *values = &report->replay->cct.nodes[trace->id].values;

	weights[0] = values->bytes;
	weights[1] = values->calls;
	weights[2] = values->peak;
	weights[3] = values->live;
}

static size_t put_name(uint64_t method, char *text, size_t size, int ascii)
{
	const char *name = (const char *)(uintptr_t)method;
	const size_t length = strlen(name) < size ? strlen(name) : size;

	for (size_t i = 0; i < length; i++)
		text[i] = name[i];
	for (size_t i = 0; ascii && i < length; i++)
		if (text[i] & 0x80)
			text[i] = '?';
	return length;
}

static size_t name_of(void *context, uint64_t method, int32_t bci, uint32_t flags, char *text,
		      size_t size)
{
	(void)bci;
	(void)flags;
	return put_name(method, text, size, *(const int *)context);
}

/* Symbols and paths may be any bytes; what is not UTF-8 is shown as question marks. */
static int name_frames(struct incstack_profile *profile)
{
	int ascii = 0;
	int error = incstack_profile_name_frames(profile, name_of, &ascii);

	if (error != INCSTACK_EFORMAT)
		return error;
	ascii = 1;
	return incstack_profile_name_frames(profile, name_of, &ascii);
}

static int describe(struct incstack_profile *profile, const struct tool_report *report)
{
	const struct incstack__trace_totals *totals = incstack__trace_reader_totals(report->reader);
	const struct incstack__trace_header *header = incstack__trace_reader_header(report->reader);
	struct incstack_profile_meta meta = {
		.program = header->command,
		.mode = tool_mode_name(totals->tally.mode),
		.time_ns = header->start_ns <= INT64_MAX ? header->start_ns : 0,
		.lost = tool_report_lost(totals),
		.truncated = totals->truncated,
	};
	int error = incstack_profile_set_meta(profile, &meta);

	if (error != INCSTACK_EFORMAT)
		return error;
	meta.program = NULL;
	return incstack_profile_set_meta(profile, &meta);
}

static int fill(struct incstack_profile *profile, const struct tool_report *report,
		struct forest *forest)
{
	struct tool_report context = *report;
	int error;

	if (forest->objects == NULL || forest->traces == NULL)
		return INCSTACK_ENOMEM;
	plant(forest, report);
	error = incstack_profile_add_tree(profile, &forest->tree, weigh, &context);
	if (error == 0)
		error = name_frames(profile);
	return error != 0 ? error : describe(profile, report);
}

int tool_report_profile(const struct tool_report *report, struct incstack_profile **profile)
{
	const size_t count = report->replay->cct.count;
	struct forest forest = {.objects = calloc(count, sizeof(*forest.objects)),
				.traces = calloc(count, sizeof(*forest.traces))};
	int error = incstack_profile_create(kinds, sizeof(kinds) / sizeof(kinds[0]), profile);

	if (error == 0) {
		error = fill(*profile, report, &forest);
		if (error != 0)
			incstack_profile_destroy(*profile);
	}
	free(forest.objects);
	free(forest.traces);
	return error;
}
