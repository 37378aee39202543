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

/* A function's name is there once: where it lies is the method. The address is that which the
 * frame would have on a stack whose every frame takes a word. */
static struct incstack_frame_object
object_of(const char *name, const struct incstack_frame_object *parent, uint32_t depth)
{
	return (struct incstack_frame_object){
		.parent = parent,
		.address = UINT32_MAX - depth,
		.method = (uintptr_t)name,
		.bci = -1,
		.flags = INCSTACK_OBJECT_FILLED | (parent == NULL ? INCSTACK_OBJECT_BASE : 0u),
	};
}

static void add_trace(struct forest *forest, uint32_t node, const struct incstack_frame_object *top)
{
	struct incstack_trace *trace = &forest->traces[forest->tree.count];

	*trace = (struct incstack_trace){.id = node, .top = top};
	if (forest->tree.count++ > 0)
		trace[-1].next = trace;
	forest->tree.traces = forest->traces;
}

static void plant(struct forest *forest, const struct tool_report *report)
{
	const struct incstack__cct *cct = &report->replay->cct;

	for (uint32_t i = 1; i < cct->count; i++) {
		const struct incstack__cct_node *node = &cct->nodes[i];

		forest->objects[i] = object_of(
			tool_symbols_name(report->symbols, node->code),
			node->parent == INCSTACK__CCT_ROOT ? NULL : &forest->objects[node->parent],
			node->depth);
		if (node->depth <= TOOL_DEPTH_MAX && has_values(&node->values))
			add_trace(forest, i, &forest->objects[i]);
	}
	forest->tree.objects = cct->count;
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

/* ---- contexts that are deeper than a file can have them ------------------------------ */

/* Lines and towers of thousands of frames are of no use, and a program that recurses so deeply has
 * as many of them. All contexts that differ only in how often the middle repeats
 * become one, because the frame that stands for the middle does not say how long it was. */
#define INNERMOST 64
#define OUTERMOST (TOOL_DEPTH_MAX - INNERMOST)
#define BATCH 1024

struct deep {
	struct incstack_frame_object (*objects)[INNERMOST + 1]; /* of each trace */
	struct forest forest;
	uint32_t *outer; /* of each node: its ancestor that is OUTERMOST deep */
};

static void plant_deep(struct deep *deep, const struct tool_report *report,
		       const struct forest *forest, uint32_t node)
{
	static const char middle[] = "[frames left out]";
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	struct incstack_frame_object *objects = deep->objects[deep->forest.tree.count];
	uint32_t at = node;

	objects[INNERMOST] = object_of(middle, &forest->objects[deep->outer[node]], OUTERMOST + 1);
	for (unsigned i = 0; i < INNERMOST; i++, at = nodes[at].parent)
		objects[i] = object_of(tool_symbols_name(report->symbols, nodes[at].code),
				       &objects[i + 1], TOOL_DEPTH_MAX + 1 - i);
	add_trace(&deep->forest, node, &objects[0]);
}

static int add_batch(struct incstack_profile *profile, struct deep *deep,
		     struct tool_report *report)
{
	int error;

	deep->forest.tree.objects = deep->forest.tree.count * (INNERMOST + 1);
	error = incstack_profile_add_tree(profile, &deep->forest.tree, weigh, report);
	deep->forest.tree = (struct incstack_tree){0};
	return error;
}

static int add_deep(struct incstack_profile *profile, struct tool_report *report,
		    const struct forest *forest, struct deep *deep)
{
	const struct incstack__cct *cct = &report->replay->cct;
	int error = 0;

	for (uint32_t i = 1; i < cct->count && error == 0; i++) {
		const struct incstack__cct_node *node = &cct->nodes[i];

		deep->outer[i] = node->depth <= OUTERMOST ? i : deep->outer[node->parent];
		if (node->depth <= TOOL_DEPTH_MAX || !has_values(&node->values))
			continue;
		plant_deep(deep, report, forest, i);
		if (deep->forest.tree.count == BATCH)
			error = add_batch(profile, deep, report);
	}
	if (error == 0 && deep->forest.tree.count > 0)
		error = add_batch(profile, deep, report);
	return error;
}

uint64_t tool_report_deep(const struct tool_report *report)
{
	const struct incstack__cct *cct = &report->replay->cct;
	uint64_t count = 0;

	for (uint32_t i = 1; i < cct->count; i++)
		count += cct->nodes[i].depth > TOOL_DEPTH_MAX && has_values(&cct->nodes[i].values);
	return count;
}

static int fill_deep(struct incstack_profile *profile, struct tool_report *report,
		     const struct forest *forest)
{
	struct deep deep = {0};
	int error = INCSTACK_ENOMEM;

	if (tool_report_deep(report) == 0)
		return 0;
	deep.objects = calloc(BATCH, sizeof(*deep.objects));
	deep.forest.traces = calloc(BATCH, sizeof(*deep.forest.traces));
	deep.outer = calloc(report->replay->cct.count, sizeof(*deep.outer));
	if (deep.objects != NULL && deep.forest.traces != NULL && deep.outer != NULL)
		error = add_deep(profile, report, forest, &deep);
	free(deep.objects);
	free(deep.forest.traces);
	free(deep.outer);
	return error;
}

/* ---- the profile --------------------------------------------------------------------- */

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
	error = forest->tree.count == 0
			? 0
			: incstack_profile_add_tree(profile, &forest->tree, weigh, &context);
	if (error == 0)
		error = fill_deep(profile, &context, forest);
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
