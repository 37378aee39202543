/* SPDX-License-Identifier: MIT
 *
 * Turns the replayed calling context tree into a profile, which the profile library writes as flame
 * graph and folded stacks. Contexts that differ only in the place of a call within a line become
 * one.
 */
#include <stdlib.h>
#include <string.h>

#include "tool/names.h"
#include "report.h"
#include "profile/files.h"

enum {
	KIND_PEAK = 3, /* which users see first */
	KIND_RESIDENT = 5,
};

static const struct incstack_profile_kind kinds[] = {
	{"allocated", "bytes"},
	{"allocations", "count"},
	{"temporary", "count"},
	[KIND_PEAK] = {"live at peak", "bytes"},
	{"live at exit", "bytes"},
	/* If somebody has looked which memory was resident. */
	[KIND_RESIDENT] = {"resident", "bytes"},
	{"swapped", "bytes"},
};

static const struct incstack_profile_kind cpu_kinds[] = {
	{"CPU time", "nanoseconds"},
	{"samples", "count"},
};

/* The states follow. */
static const struct incstack_profile_kind wall_kinds[] = {
	{"wall-clock time", "nanoseconds"},
	{"samples", "count"},
};

_Static_assert(sizeof(wall_kinds) / sizeof(wall_kinds[0]) == TOOL_KIND_STATES, "the states follow");

static int has_values(const struct incstack__cct_values *values)
{
	return values->bytes != 0 || values->calls != 0 || values->live != 0 || values->peak != 0;
}

/* Finds or adds the node of a frame. */
static int child(struct incstack_profile *profile, uint32_t parent,
		 const struct tool_symbols_frame *from, uint32_t flags, uint32_t *node)
{
	const struct incstack_profile_frame frame = {
		.size = sizeof(frame),
		.name = from->name,
		.name_length = strlen(from->name),
		.file = from->file,
		.line = from->line,
		.module = from->module,
		.build_id = from->build_id,
		.address = from->address,
		.flags = flags | (from->is_inlined ? (uint32_t)INCSTACK_OBJECT_VIRTUAL : 0)};

	return incstack_profile_add_node(profile, parent, &frame, node);
}

/* Finds or adds the nodes of a code: one for its function, and below it one for each that is inlined there. */
static int child_of_code(struct incstack_profile *profile, const struct tool_report *report,
			 uint32_t parent, const struct incstack__cct_node *context, uint32_t *node)
{
	const uint32_t flags = context->by_pointer ? INCSTACK_OBJECT_POINTER : 0;
	size_t count;
	const struct tool_symbols_frame *frames =
		tool_symbols_frames(report->symbols, context->code, &count);
	int error = 0;

	*node = parent;
	while (count-- > 0 && error == 0)
		error = child(profile, *node, &frames[count], flags, node);
	return error;
}

/* Adds the weights of a node of the tree. */
static int weigh(struct incstack_profile *profile, const struct tool_report *report, uint32_t node,
		 const struct incstack__cct_node *of)
{
	const struct incstack__resident *resident = &report->replay->resident;
	const struct incstack__cct_values *values = &of->values;
	const ptrdiff_t number = of - report->replay->cct.nodes;
	uint64_t weights[TOOL_KIND_STATES + INCSTACK__STATES] = {
		values->bytes,
		values->calls,
		values->temporary,
		values->peak,
		values->live,
		resident->resident != NULL ? resident->resident[number] : 0,
		resident->resident != NULL ? resident->swapped[number] : 0,
	};

	if (tool_report_is_wall(report))
		memcpy(weights + TOOL_KIND_STATES,
		       incstack__times_of(&report->replay->times, (uint32_t)number),
		       INCSTACK__STATES * sizeof(*weights));
	return incstack_profile_add_weights(profile, node, weights);
}

/* ---- contexts that are deeper than a file can have them ------------------------------ */

/* Lines and towers of thousands of frames cannot be read, but a program that recurses so deeply has
 * thousands of them. Contexts that differ only in how often the middle repeats become one, because
 * the frame that replaces the middle does not say how long it was. */
#define INNERMOST 64

/* Returns the node of the outermost part of a context that is TOOL_DEPTH_MAX deep. */
static uint32_t outer_of(const struct tool_report *report, const uint32_t *nodes, uint32_t context)
{
	for (unsigned i = 0; i < INNERMOST; i++)
		context = report->replay->cct.nodes[context].parent;
	return nodes[context];
}

static int add_deep(struct incstack_profile *profile, const struct tool_report *report,
		    uint32_t outer, uint32_t context)
{
	static const struct tool_symbols_frame middle = {.name = "[frames left out]"};
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	const struct incstack__cct_node *inner[INNERMOST];
	uint32_t node;
	int error = child(profile, outer, &middle, 0, &node);

	inner[0] = &nodes[context];
	for (unsigned i = 1; i < INNERMOST; i++)
		inner[i] = &nodes[inner[i - 1]->parent];
	for (unsigned i = INNERMOST; i-- > 0 && error == 0;)
		error = child_of_code(profile, report, node, inner[i], &node);
	return error != 0 ? error : weigh(profile, report, node, &nodes[context]);
}

uint64_t tool_report_deep(const struct tool_report *report)
{
	const struct incstack__cct *cct = &report->replay->cct;
	uint64_t count = 0;

	for (uint32_t i = 1; i < cct->count; i++)
		count += cct->nodes[i].depth > TOOL_DEPTH_MAX && has_values(&cct->nodes[i].values);
	return count;
}

/* ---- the profile --------------------------------------------------------------------- */

static int describe(struct incstack_profile *profile, const struct tool_report *report)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const struct incstack__tracefile_header *header =
		incstack__tracefile_reader_header(report->reader);
	char program[4 * sizeof(header->command)] = ""; /* an escape takes four bytes */
	struct incstack_profile_meta meta = {
		.size = sizeof(meta),
		.program = program,
		.mode = tool_mode_name(totals->tally.mode),
		.time_ns = header->start_ns <= INT64_MAX ? header->start_ns : 0,
		.lost = tool_report_lost(totals),
		.truncated = totals->truncated,
	};

	tool_name_valid(header->command, program, sizeof(program) - 1);
	return incstack_profile_set_meta(profile, &meta);
}

/* Whether a frame is a function of the recorder that the program called in place of one of libc, which it then called.
 * What is the recorder's own work stays visible. */
static bool is_passed_on(const struct tool_report *report, const struct incstack__cct_node *context)
{
	static const char ours[] = "libincstack_preload.so";

	return !has_values(&context->values) &&
	       strcmp(tool_symbols_module(report->symbols, context->code), ours) == 0;
}

/* Adds context i. nodes[i] becomes its node, or for a deep context the node of its outer part. A
 * parent precedes its children. */
static int add_context(struct incstack_profile *profile, const struct tool_report *report,
		       uint32_t *nodes, uint32_t i)
{
	const struct incstack__cct_node *context = &report->replay->cct.nodes[i];
	const uint32_t parent = nodes[context->parent];
	int error;

	if (context->depth > TOOL_DEPTH_MAX) {
		nodes[i] = context->depth == TOOL_DEPTH_MAX + 1
				   ? outer_of(report, nodes, context->parent)
				   : parent;
		return has_values(&context->values) ? add_deep(profile, report, nodes[i], i) : 0;
	}
	if (is_passed_on(report, context)) {
		nodes[i] = parent;
		return 0;
	}
	error = child_of_code(profile, report, parent, context, &nodes[i]);
	return error != 0 ? error : weigh(profile, report, nodes[i], context);
}

static int fill(struct incstack_profile *profile, const struct tool_report *report)
{
	const uint32_t count = report->replay->cct.count;
	uint32_t *nodes = calloc(count, sizeof(*nodes));
	int error = nodes != NULL ? 0 : INCSTACK_ENOMEM;

	for (uint32_t i = 1; i < count && error == 0; i++)
		error = add_context(profile, report, nodes, i);
	if (error == 0)
		error = tool_report_is_cpu(report) ? tool_report_timeline(report, nodes, profile)
						   : tool_report_curve(report, nodes, profile);
	free(nodes);
	return error != 0 ? error : describe(profile, report);
}

/* Says which kind users see first, and what a sample stands for. */
static int set_default(struct incstack_profile *profile, const struct tool_report *report)
{
	static const struct incstack_profile_kind space = {"space", "bytes"};
	const uint64_t interval = report->replay->interval;

	return tool_report_is_cpu(report)
		       ? incstack__profile_set_default(profile, 0, &cpu_kinds[0], interval)
		       : incstack__profile_set_default(profile, KIND_PEAK, &space,
						       interval > 0 ? interval : 1);
}

#define CREATE(kinds, profile) \
	incstack_profile_create(kinds, sizeof(kinds) / sizeof((kinds)[0]), profile)

static int create_wall(struct incstack_profile **profile)
{
	struct incstack_profile_kind all[TOOL_KIND_STATES + INCSTACK__STATES];

	memcpy(all, wall_kinds, sizeof(wall_kinds));
	for (uint32_t i = 0; i < INCSTACK__STATES; i++)
		all[TOOL_KIND_STATES + i] =
			(struct incstack_profile_kind){incstack__state_name(i), "nanoseconds"};
	return CREATE(all, profile);
}

/* Returns how many kinds a heap profile has. */
static uint32_t heap_kinds(const struct tool_report *report)
{
	const struct incstack__resident *resident = &report->replay->resident;

	if (resident->resident == NULL)
		return KIND_RESIDENT;
	return resident->live_swapped > 0 ? KIND_RESIDENT + 2 : KIND_RESIDENT + 1;
}

int tool_report_profile(const struct tool_report *report, struct incstack_profile **profile)
{
	int error = tool_report_is_wall(report) ? create_wall(profile)
		    : tool_report_is_cpu(report)
			    ? CREATE(cpu_kinds, profile)
			    : incstack_profile_create(kinds, heap_kinds(report), profile);

	if (error == 0) {
		error = fill(*profile, report);
		if (error == 0)
			error = set_default(*profile, report);
		if (error != 0)
			incstack_profile_destroy(*profile);
	}
	return error;
}
