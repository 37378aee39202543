/* SPDX-License-Identifier: MIT
 *
 * The report on a heap profile for the terminal: totals, the functions that allocate most, then the
 * contexts that matter most.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tool/names.h"
#include "tool/profile_io.h"
#include "report.h"

/* The kinds of the profile, in its order. */
static const struct {
	const char *title;
	size_t offset; /* in struct incstack__cct_values */
} kinds[] = {
	{"Allocated", offsetof(struct incstack__cct_values, bytes)},
	{"Allocations", offsetof(struct incstack__cct_values, calls)},
	{"Live at the peak", offsetof(struct incstack__cct_values, peak)},
	{"Still live at exit", offsetof(struct incstack__cct_values, live)},
};

/* ---- functions ------------------------------------------------------------------- */

struct function {
	const char *name; /* equal names are one pointer */
	const char *module;
	struct incstack__cct_values values;
};

static int by_name(const void *a, const void *b)
{
	const uintptr_t left = (uintptr_t)((const struct function *)a)->name;
	const uintptr_t right = (uintptr_t)((const struct function *)b)->name;

	return left < right ? -1 : left > right;
}

static uint64_t value_of(const struct function *function, uint32_t kind)
{
	return *(const uint64_t *)(const void *)((const char *)&function->values +
						 kinds[kind].offset);
}

static int by_kind(const void *a, const void *b, void *kind)
{
	const uint64_t left = value_of(a, *(const uint32_t *)kind);
	const uint64_t right = value_of(b, *(const uint32_t *)kind);

	return left < right ? 1 : -(left > right);
}

static void add_values(struct incstack__cct_values *sum, const struct incstack__cct_values *more)
{
	sum->bytes += more->bytes;
	sum->calls += more->calls;
	sum->temporary += more->temporary;
	sum->live += more->live;
	sum->peak += more->peak;
}

/* Functions of one name are one function, as in the contexts. */
static void add_function(struct function *sum, const struct function *more)
{
	add_values(&sum->values, &more->values);
	if (strcmp(sum->module, more->module) != 0)
		sum->module = "several files";
}

/* Returns the function that requested the memory. operator new only passes on requests. */
static uint32_t site_of(const struct tool_report *report, uint32_t node)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	static const char new[] = "operator new";

	while (nodes[node].parent != INCSTACK__CCT_ROOT &&
	       strncmp(tool_symbols_name(report->symbols, nodes[node].code), new,
		       sizeof(new) - 1) == 0)
		node = nodes[node].parent;
	return node;
}

static struct function function_of(const struct tool_report *report, uint32_t node)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	const uint64_t code = nodes[site_of(report, node)].code;

	return (struct function){tool_symbols_name(report->symbols, code),
				 tool_symbols_module(report->symbols, code), nodes[node].values};
}

/* Finds the functions that call the allocator, by the kind of the report. The caller frees them. */
static size_t find_functions(const struct tool_report *report, struct function **out)
{
	const struct incstack__cct *cct = &report->replay->cct;
	struct function *functions = calloc(cct->count, sizeof(*functions));
	size_t count = 0;
	size_t kept = 0;

	*out = functions;
	for (uint32_t node = 1; functions != NULL && node < cct->count; node++)
		if (cct->nodes[node].values.calls > 0)
			functions[count++] = function_of(report, node);
	if (count == 0)
		return 0;
	qsort(functions, count, sizeof(*functions), by_name);
	for (size_t i = 1; i < count; i++) {
		if (functions[i].name == functions[kept].name)
			add_function(&functions[kept], &functions[i]);
		else
			functions[++kept] = functions[i];
	}
	qsort_r(functions, kept + 1, sizeof(*functions), by_kind, &(uint32_t){report->kind});
	return kept + 1;
}

static void print_functions(const struct tool_report *report, FILE *out)
{
	const unsigned columns = report->wish->columns;
	struct function *functions;
	const size_t count = find_functions(report, &functions);
	const unsigned width = columns > 68 ? columns - 48 : 20;

	if (count > 0)
		fprintf(out, "\n%11s %10s %10s %11s   %s\n", "allocated", "calls", "temporary",
			"at exit", "function (module)");
	for (size_t i = 0; i < count && i < report->wish->functions; i++) {
		const struct function *f = &functions[i];
		char bytes[32];
		char live[32];
		char text[512];

		tool_amount(f->values.bytes, "bytes", bytes, sizeof(bytes));
		tool_amount(f->values.live, "bytes", live, sizeof(live));
		if (*f->module && strncmp(f->name, f->module, strlen(f->module)) != 0)
			snprintf(text, sizeof(text), "%s (%s)", f->name, f->module);
		else
			snprintf(text, sizeof(text), "%s", f->name);
		fprintf(out, "%11s %10" PRIu64 " %10" PRIu64 " %11s   ", bytes, f->values.calls,
			f->values.temporary, live);
		tool_name_clip(text, width, '>', out);
		fputc('\n', out);
	}
	free(functions);
}

/* ---- all of it ------------------------------------------------------------------- */

static void print_totals(const struct tool_report *report, FILE *out)
{
	const struct incstack__replay *replay = report->replay;
	char bytes[32];
	char peak[32];
	char live[32];

	tool_amount(replay->bytes, "bytes", bytes, sizeof(bytes));
	tool_amount(replay->peak, "bytes", peak, sizeof(peak));
	tool_amount(replay->live, "bytes", live, sizeof(live));
	fprintf(out, "allocated %s in %" PRIu64 " calls%s\nat the peak %s, still live at exit %s\n",
		bytes, replay->calls, replay->interval > 1 ? " (estimated)" : "", peak, live);
	if (replay->interval <= 1)
		fprintf(out,
			"temporary: %" PRIu64 " calls (%.1f%%), freed before the thread's next\n",
			replay->temporary,
			replay->calls > 0
				? 100.0 * (double)replay->temporary / (double)replay->calls
				: 0.0);
}

void tool_report_heap(const struct tool_report *report, FILE *out)
{
	tool_report_head(report, "Heap profile", out);
	print_totals(report, out);
	if (tool_report_is_attached(report))
		tool_report_ticks(report, out);
	print_functions(report, out);
	for (uint32_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		tool_report_contexts(report, kinds[kind].title, kind, out);
}
