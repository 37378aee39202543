/* SPDX-License-Identifier: MIT
 *
 * The table of functions. Its columns are the kinds of weight of the profile: what a function owns is what happened in it
 * itself; with callees, what the functions that it called did is added, and recursion counts once.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/elide.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "report.h"

enum {
	WIDTH = 8,          /* of a column */
	NAMES_PERCENT = 35, /* of the terminal, for names, before the columns of further kinds */
};

/* How a kind is shown. */
struct view {
	const char *kind;
	const char *title;
	bool is_own_on_page, is_total_on_page;
	bool has_share; /* in percent */
};

static const struct view views[] = {
	{"allocated", "bytes", true, true, false},     {"allocations", "calls", true, false, false},
	{"temporary", "temp", true, false, false},     {"live at peak", "peak", true, true, false},
	{"live at exit", "exit", true, true, false},   {"resident", "resid", true, false, false},
	{"swapped", "swap", true, false, false},       {"CPU time", "time", true, true, true},
	{"wall-clock time", "time", true, true, true}, {"samples", "samples", false, false, false},
};

/* The titles of further kinds whose names are too long. */
static const char *const titles[][2] = {
	{"runnable", "ready"}, {"page fault", "fault"}, {"other wait", "other"}};

static const char *title_of(const char *kind)
{
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (strcmp(titles[i][0], kind) == 0)
			return titles[i][1];
	return kind;
}

struct column {
	char title[WIDTH];
	uint32_t kind;
	const char *unit;
	bool is_total; /* with callees */
	bool is_share; /* in percent of all */
};

struct columns {
	struct column all[4 * INCSTACK_PROFILE_KINDS_MAX];
	unsigned count;
	uint64_t totals[INCSTACK_PROFILE_KINDS_MAX]; /* of all functions, by kind */
};

/* ---- which columns --------------------------------------------------------------- */

static const struct view *find_view(const char *kind)
{
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
		if (strcmp(views[i].kind, kind) == 0)
			return &views[i];
	return NULL;
}

static void add_column(struct columns *columns, const char *title, uint32_t kind, const char *unit,
		       bool is_total, bool is_share)
{
	struct column *column = &columns->all[columns->count++];

	*column = (struct column){
		.kind = kind, .unit = unit, .is_total = is_total, .is_share = is_share};
	snprintf(column->title, sizeof(column->title), "%s", title);
}

static bool has_room(const struct tool_report *report, unsigned columns)
{
	const unsigned wide = report->wish->columns;

	return report->wish->is_full || (columns + 1) * WIDTH <= wide - wide * NAMES_PERCENT / 100;
}

/* A page has room for some; the others are in the full report. */
static bool is_shown(const struct tool_report *report, const struct view *view, bool is_total)
{
	if (report->wish->is_full)
		return !is_total || report->wish->columns >= 100;
	if (is_total)
		return view->is_total_on_page && (report->wish->columns >= 100 || view->has_share);
	return view->is_own_on_page;
}

/* Adds the columns of the kinds that are known, or those of the others, of which the first ones find room. */
static void add_columns(struct columns *columns, const struct tool_report *report, bool is_total,
			bool are_known)
{
	struct incstack_profile_kind about;

	for (uint32_t kind = 0; incstack_profile_kind(report->profile, kind, &about) == 0; kind++) {
		const struct view other = {about.name, title_of(about.name), true, false, false};
		const struct view *view = find_view(about.name);

		if ((view != NULL) != are_known)
			continue;
		view = view != NULL ? view : &other;
		if (!is_shown(report, view, is_total) ||
		    (!are_known &&
		     (columns->totals[kind] == 0 || !has_room(report, columns->count))))
			continue;
		add_column(columns, view->title, kind, about.unit, is_total, false);
		if (view->has_share)
			add_column(columns, "%", kind, about.unit, is_total, true);
	}
}

/* A sampled allocation does not show the thread's next one, so nothing is known to be temporary. */
static void drop_temporary(struct columns *columns, const struct tool_report *report)
{
	unsigned kept = 0;
	uint32_t temporary;

	if (report->replay->interval <= 1 ||
	    tool_kind_number(report->profile, "temporary", &temporary) != TOOL_DONE)
		return;
	for (unsigned i = 0; i < columns->count; i++)
		if (columns->all[i].kind != temporary)
			columns->all[kept++] = columns->all[i];
	columns->count = kept;
}

/* The columns of own weights stand before those with callees. */
static int by_total(const void *a, const void *b)
{
	const struct column *left = a;
	const struct column *right = b;

	if (left->is_total != right->is_total)
		return left->is_total ? 1 : -1;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return left->is_share - right->is_share;
}

static void choose_columns(struct columns *columns, const struct tool_report *report)
{
	*columns = (struct columns){.count = 0};
	for (size_t i = 0; i < report->sums.count; i++)
		for (uint32_t k = 0; k < INCSTACK_PROFILE_KINDS_MAX; k++)
			columns->totals[k] += report->sums.rows[i].own[k];
	add_columns(columns, report, false, true);
	add_columns(columns, report, true, true);
	add_columns(columns, report, false, false);
	if (report->wish->is_full)
		add_columns(columns, report, true, false);
	drop_temporary(columns, report);
	qsort(columns->all, columns->count, sizeof(columns->all[0]), by_total);
}

/* ---- rows ------------------------------------------------------------------------ */

/* Orders by own weight, then with callees, then by name. */
static int by_kind(const void *a, const void *b, void *kind)
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

static void scale(uint64_t value, double step, double least, const char *const *units, size_t count,
		  char text[32])
{
	double scaled = (double)value;
	size_t unit = 0;

	if (scaled < least) {
		snprintf(text, 32, "%" PRIu64 "%s", value, units[0]);
		return;
	}
	do
		scaled /= step;
	while (++unit + 1 < count && scaled >= 999.95);
	snprintf(text, 32, "%.1f%s", scaled, units[unit]);
}

/* Writes an amount in at most seven characters: 5.9K, 12.3ms, 1234. */
static void short_amount(uint64_t value, const char *unit, char text[32])
{
	static const char *const powers[] = {"", "K", "M", "G", "T", "P", "E"};
	static const char *const times[] = {"ns", "us", "ms", "s"};

	if (strcmp(unit, "nanoseconds") == 0 && value > 0)
		scale(value, 1000, 1000, times, 4, text);
	else if (strcmp(unit, "bytes") == 0)
		scale(value, 1024, 1000, powers, 7, text);
	else
		scale(value, 1000, 1e7, powers, 7, text);
}

static void print_value(const struct columns *columns, const struct column *column,
			const struct incstack__profile_sum *sum, FILE *out)
{
	const uint64_t value = column->is_total ? sum->total[column->kind] : sum->own[column->kind];
	const uint64_t all = columns->totals[column->kind];
	char text[32];

	short_amount(value, column->unit, text);
	if (column->is_share)
		snprintf(text, sizeof(text), "%.1f%%",
			 all > 0 ? 100.0 * (double)value / (double)all : 0.0);
	fprintf(out, "%*s", WIDTH, text);
}

static void print_titles(const struct columns *columns, FILE *out)
{
	unsigned own = 0;

	for (unsigned i = 0; i < columns->count; i++)
		own += !columns->all[i].is_total;
	fprintf(out, "\n%*s", (int)own * WIDTH, "by itself");
	if (columns->count > own)
		fprintf(out, "%*s", (int)(columns->count - own) * WIDTH, "with callees");
	fputc('\n', out);
	for (unsigned i = 0; i < columns->count; i++)
		fprintf(out, "%*s", WIDTH, columns->all[i].title);
	fputs("  function\n", out);
}

static void print_row(const struct tool_report *report, const struct columns *columns,
		      const struct incstack__profile_sum *sum, const char *const *names,
		      size_t count, FILE *out)
{
	const unsigned wide = report->wish->columns;
	const unsigned taken = columns->count * WIDTH + 2;
	const unsigned left = wide > taken + 10 ? wide - taken : 10;
	char *text = sum->name != NULL ? tool_elide(sum->name, names, count, left) : NULL;

	for (unsigned i = 0; i < columns->count; i++)
		print_value(columns, &columns->all[i], sum, out);
	fputs("  ", out);
	tool_name_clip(text != NULL ? text : "?", left, '>', out);
	fputc('\n', out);
	free(text);
}

/* Prints the rows. `names` has room for the names of all of them, so that rows differ in what is shown. */
static void print_rows(const struct tool_report *report, const struct incstack__profile_sum *rows,
		       size_t count, const char **names, FILE *out)
{
	const bool is_all = report->wish->is_full || report->form->shows_callers;
	struct columns columns;
	size_t named = 0;

	choose_columns(&columns, report);
	print_titles(&columns, out);
	for (size_t i = 0; i < count; i++)
		if (rows[i].name != NULL)
			names[named++] = rows[i].name;
	for (size_t i = 0; i < count; i++)
		if (rows[i].own[report->kind] > 0 || is_all)
			print_row(report, &columns, &rows[i], names, named, out);
}

void tool_report_functions(const struct tool_report *report, FILE *out)
{
	const size_t all = report->sums.count;
	const size_t count = all < report->wish->functions ? all : report->wish->functions;
	struct incstack__profile_sum *rows = calloc(all + 1, sizeof(*rows));
	const char **names = calloc(count + 1, sizeof(*names));

	if (rows != NULL && names != NULL && count > 0) {
		memcpy(rows, report->sums.rows, all * sizeof(*rows));
		qsort_r(rows, all, sizeof(*rows), by_kind, &(uint32_t){report->kind});
		print_rows(report, rows, count, names, out);
	}
	free(names);
	free(rows);
}
