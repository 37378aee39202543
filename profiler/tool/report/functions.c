/* SPDX-License-Identifier: MIT
 *
 * The table of functions of a heap profile. What a function owns is what it requested itself; with callees,
 * what the functions that it called requested is added, and recursion counts once.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/elide.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "report.h"

/* A column of the table. */
struct column {
	const char *title;
	const char *kind;
	bool is_total; /* with callees */
};

static const struct column all_columns[] = {
	{"bytes", "allocated", false},   {"calls", "allocations", false},
	{"temp", "temporary", false},    {"peak", "live at peak", false},
	{"exit", "live at exit", false}, {"bytes", "allocated", true},
	{"calls", "allocations", true},  {"temp", "temporary", true},
	{"peak", "live at peak", true},  {"exit", "live at exit", true},
};

enum { COLUMNS = sizeof(all_columns) / sizeof(all_columns[0]), OWN = COLUMNS / 2, WIDTH = 8 };

/* Which of them are shown. A page has room for some; the others are in the full report. */
static bool is_shown(const struct tool_report *report, unsigned i)
{
	const bool is_temporary = i == 2 || i == 2 + OWN;

	if (is_temporary && report->replay->interval > 1)
		return false; /* a sampled allocation does not show the thread's next */
	if (i < OWN)
		return true;
	return report->wish->columns >= 100 &&
	       (i == 5 || i == 8 || i == 9 || report->wish->is_full);
}

/* The numbers of a column's kind; 0 if there is none. */
static uint32_t kind_of(const struct tool_report *report, const struct column *column)
{
	uint32_t kind;

	return tool_kind_number(report->profile, column->kind, &kind) == TOOL_DONE ? kind : 0;
}

static uint64_t value_of(const struct incstack__profile_sum *sum, const struct column *column,
			 uint32_t kind)
{
	return column->is_total ? sum->total[kind] : sum->own[kind];
}

int tool_report_by_kind(const void *a, const void *b, void *kind)
{
	const struct incstack__profile_sum *left = a;
	const struct incstack__profile_sum *right = b;
	const uint32_t k = *(const uint32_t *)kind;

	if (left->own[k] != right->own[k])
		return left->own[k] < right->own[k] ? 1 : -1;
	if (left->total[k] != right->total[k])
		return left->total[k] < right->total[k] ? 1 : -1;
	return left->name != NULL && right->name != NULL ? strcmp(left->name, right->name) : 0;
}

/* Writes an amount in at most seven characters: 5.9K, 1234. */
static void short_amount(uint64_t value, bool is_bytes, char text[16])
{
	static const char units[] = "KMGTPE";
	const double step = is_bytes ? 1024 : 1000;
	const double least = is_bytes ? 1000 : 1e7;
	double scaled = (double)value;
	unsigned unit = 0;

	if (scaled < least) {
		snprintf(text, 16, "%" PRIu64, value);
		return;
	}
	for (scaled /= step; scaled >= 999.95 && unit + 2 < sizeof(units); unit++)
		scaled /= step;
	snprintf(text, 16, "%.1f%c", scaled, units[unit]);
}

static void print_titles(const struct tool_report *report, FILE *out)
{
	unsigned own = 0;
	unsigned total = 0;

	for (unsigned i = 0; i < COLUMNS; i++)
		*(i < OWN ? &own : &total) += is_shown(report, i);
	fprintf(out, "\n%*s", (int)own * WIDTH, "by itself");
	if (total > 0)
		fprintf(out, "%*s", (int)total * WIDTH, "with callees");
	fputc('\n', out);
	for (unsigned i = 0; i < COLUMNS; i++)
		if (is_shown(report, i))
			fprintf(out, "%*s", WIDTH, all_columns[i].title);
	fputs("  function\n", out);
}

static unsigned print_values(const struct tool_report *report,
			     const struct incstack__profile_sum *sum, FILE *out)
{
	unsigned columns = 0;
	char text[16];

	for (unsigned i = 0; i < COLUMNS; i++) {
		const struct column *column = &all_columns[i];
		const uint32_t kind = kind_of(report, column);
		struct incstack_profile_kind about = {"", ""};

		if (!is_shown(report, i))
			continue;
		(void)incstack_profile_kind(report->profile, kind, &about);
		short_amount(value_of(sum, column, kind), strcmp(about.unit, "bytes") == 0, text);
		fprintf(out, "%*s", WIDTH, text);
		columns += WIDTH;
	}
	return columns + 2;
}

static void print_row(const struct tool_report *report, const struct incstack__profile_sum *sum,
		      const char *const *names, size_t count, FILE *out)
{
	const unsigned columns = report->wish->columns;
	const unsigned taken = print_values(report, sum, out);
	const unsigned left = columns > taken + 10 ? columns - taken : 10;
	char *text = sum->name != NULL ? tool_elide(sum->name, names, count, left) : NULL;

	fputs("  ", out);
	tool_name_clip(text != NULL ? text : "?", left, '>', out);
	fputc('\n', out);
	free(text);
}

/* Prints the rows. `names` has room for the names of all of them, so that rows differ in what is shown. */
static void print_rows(const struct tool_report *report, const struct incstack__profile_sum *rows,
		       size_t count, const char **names, FILE *out)
{
	size_t named = 0;

	for (size_t i = 0; i < count; i++)
		if (rows[i].name != NULL)
			names[named++] = rows[i].name;
	for (size_t i = 0; i < count; i++)
		if (rows[i].own[report->kind] > 0 || report->wish->is_full)
			print_row(report, &rows[i], names, named, out);
}

void tool_report_functions(const struct tool_report *report, FILE *out)
{
	const size_t all = report->sums.count;
	const size_t count = all < report->wish->functions ? all : report->wish->functions;
	struct incstack__profile_sum *rows = calloc(all + 1, sizeof(*rows));
	const char **names = calloc(count + 1, sizeof(*names));

	if (rows != NULL && names != NULL && count > 0) {
		memcpy(rows, report->sums.rows, all * sizeof(*rows));
		qsort_r(rows, all, sizeof(*rows), tool_report_by_kind, &(uint32_t){report->kind});
		print_titles(report, out);
		print_rows(report, rows, count, names, out);
	}
	free(names);
	free(rows);
}
