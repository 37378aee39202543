/* SPDX-License-Identifier: MIT
 *
 * Prints what grew and what shrank between two profiles: as text, or as JSON.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "amount.h"
#include "compare.h"
#include "tool/names.h"
#include "tool/report/report.h"
#include "profile/delta.h"

enum { CONTEXTS = 5, LINES = 10 };

/* A kind that both profiles have, with its numbers in them. */
struct pair {
	uint32_t before, after;
};

struct comparison {
	const struct tool_options *options;
	struct incstack_profile **profiles;
	struct incstack__delta *delta;
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];
	struct pair pairs[INCSTACK_PROFILE_KINDS_MAX];
	size_t count;
	unsigned columns;
};

/* One kind of it. */
struct part {
	const struct comparison *in;
	const struct incstack_profile_kind *kind;
	struct incstack__kind_delta of;
	double least; /* smaller differences are left out */
};

/* ---- amounts ------------------------------------------------------------------------- */

/* Writes an amount with its sign. */
static const char *signed_amount(uint64_t before, uint64_t after, const char *unit, char text[40])
{
	char amount[32];

	(void)tool_amount(after < before ? before - after : after - before, unit, amount,
			  sizeof(amount));
	(void)snprintf(text, 40, "%s%s", after < before ? "-" : after > before ? "+" : "", amount);
	return text;
}

static double percent(uint64_t weight, uint64_t total)
{
	return total ? 100 * (double)weight / (double)total : 0;
}

static void print_shares(const struct part *part, const struct incstack__change *change)
{
	printf("%+11.2f%% %10.2f%% %10.2f%%   ", 100 * change->by,
	       percent(change->before, part->of.before), percent(change->after, part->of.after));
}

static void print_weights(const struct part *part, const struct incstack__change *change)
{
	const char *unit = part->kind->unit;
	char by[40], before[32], after[32];

	if (part->in->options->normalize) {
		print_shares(part, change);
		return;
	}
	printf("%12s %11s %11s   ", signed_amount(change->before, change->after, unit, by),
	       tool_amount(change->before, unit, before, sizeof(before)),
	       tool_amount(change->after, unit, after, sizeof(after)));
}

/* ---- what is shown ------------------------------------------------------------------- */

/* Returns how many of the changes are shown, which are the largest. */
static size_t shown_of(const struct part *part, const struct incstack__changes *changes,
		       size_t most)
{
	size_t low = 0, high = changes->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (fabs(changes->at[middle].by) >= part->least)
			low = middle + 1;
		else
			high = middle;
	}
	return low < most ? low : most;
}

static size_t most_of(const struct part *part, size_t most)
{
	const struct tool_options *options = part->in->options;

	return tool_options_given(options, 'n') ? options->top : most;
}

/* Says what is not shown. */
static void print_hidden(const struct part *part, const struct incstack__changes *changes,
			 size_t shown, const char *what)
{
	uint64_t grown = 0, shrunk = 0;
	char more[40], less[40];

	for (size_t i = shown; i < changes->count; i++) {
		const struct incstack__change *c = &changes->at[i];

		grown += c->after > c->before ? c->after - c->before : 0;
		shrunk += c->after < c->before ? c->before - c->after : 0;
	}
	if (shown < changes->count)
		printf("  not shown: %zu smaller difference%s of %s, %s and %s together\n",
		       changes->count - shown, changes->count - shown > 1 ? "s" : "", what,
		       signed_amount(0, grown, part->kind->unit, more),
		       signed_amount(shrunk, 0, part->kind->unit, less));
}

/* ---- text ---------------------------------------------------------------------------- */

static const char *novelty(const struct incstack__change *change)
{
	if (!change->before)
		return " (new)";
	return change->after ? "" : " (gone)";
}

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash && slash[1] ? slash + 1 : file;
}

static void print_place(const struct incstack__change *line)
{
	printf("%s:%" PRId32, line->file ? tool_name(base_name(line->file)) : "line", line->line);
}

static void print_line(const struct part *part, const struct incstack__change *line)
{
	print_weights(part, line);
	fputs("  at ", stdout);
	print_place(line);
	printf("%s\n", novelty(line));
}

/* Prints a function. If the difference is that of one of its lines, the line is beside it, else its lines are
 * below it. */
static void print_function(const struct part *part, const struct incstack__change *function)
{
	const struct incstack__change *lines = part->of.lines.at + function->first;
	const bool is_one = function->count == 1 && lines->by == function->by;
	const uint32_t most = function->count < LINES ? function->count : LINES;

	print_weights(part, function);
	tool_name_clip(function->name, part->in->columns - 60, '>', stdout);
	if (is_one) {
		fputs(" at ", stdout);
		print_place(lines);
	}
	printf("%s\n", novelty(function));
	for (uint32_t i = 0; i < most && !is_one; i++)
		print_line(part, &lines[i]);
	if (most < function->count)
		printf("%40s and %" PRIu32 " more lines\n", "", function->count - most);
}

static void print_functions(const struct part *part)
{
	const struct incstack__changes *changes = &part->of.functions;
	const size_t shown = shown_of(part, changes, most_of(part, part->in->options->top));

	if (shown)
		printf("%12s %11s %11s   function\n", "difference", "before", "after");
	for (size_t i = 0; i < shown; i++)
		print_function(part, &changes->at[i]);
	print_hidden(part, changes, shown, "functions");
}

static void print_contexts(const struct part *part)
{
	const struct incstack__changes *changes = &part->of.contexts;
	const size_t shown = shown_of(part, changes, most_of(part, CONTEXTS));

	if (shown)
		printf("\n%12s %11s %11s   context\n", "difference", "before", "after");
	for (size_t i = 0; i < shown; i++) {
		char *text = tool_context_text(incstack__delta_contexts(part->in->delta),
					       changes->at[i].node);

		print_weights(part, &changes->at[i]);
		tool_name_clip(text ? text : "?", part->in->columns - 46, '<', stdout);
		printf("%s\n", novelty(&changes->at[i]));
		free(text);
	}
	print_hidden(part, changes, shown, "contexts");
}

static void print_totals(const struct part *part)
{
	const struct incstack__kind_delta *of = &part->of;
	const char *unit = part->kind->unit;
	char before[32], after[32], by[40];

	(void)tool_amount(of->before, unit, before, sizeof(before));
	if (!of->contexts.count) {
		printf("\n%s: %s before, %s after, no difference%s\n", tool_name(part->kind->name),
		       before, tool_amount(of->after, unit, after, sizeof(after)),
		       part->in->options->normalize ? " of shares" : "");
		return;
	}
	printf("\n%s: %s before, %s after, difference %s", tool_name(part->kind->name), before,
	       tool_amount(of->after, unit, after, sizeof(after)),
	       signed_amount(of->before, of->after, unit, by));
	if (of->before)
		printf(" (%+.1f%%)", percent(of->after, of->before) - 100);
	putchar('\n');
}

/* ---- each kind ----------------------------------------------------------------------- */

static int print_text(const struct part *part)
{
	print_totals(part);
	print_functions(part);
	print_contexts(part);
	return 0;
}

static int print_json(const struct part *part, bool first, int is_exceeded)
{
	const size_t all = SIZE_MAX;
	const struct incstack__delta_shown shown = {
		.kind = *part->kind,
		.functions = shown_of(part, &part->of.functions, most_of(part, all)),
		.contexts = shown_of(part, &part->of.contexts, most_of(part, CONTEXTS)),
		.is_exceeded = is_exceeded,
		.first = first,
	};

	return incstack__delta_json_kind(part->in->delta, &part->of, &shown, stdout);
}

/* Sets what the threshold is in the unit of the kind. Returns whether it is an amount of this unit. */
static bool set_least(struct part *part)
{
	const uint64_t larger = part->of.before > part->of.after ? part->of.before : part->of.after;

	part->least = 0;
	if (!part->in->options->threshold)
		return true;
	return tool_amount_read(part->in->options->threshold, part->kind->unit,
				part->in->options->normalize ? 1 : larger, &part->least);
}

/* Prints a kind. *is_exceeded becomes 1 if its limit is exceeded. */
static int print_kind(const struct comparison *in, size_t i, int *is_exceeded)
{
	const struct tool_options *options = in->options;
	struct part part = {.in = in, .kind = &in->kinds[i]};
	int exceeded;
	int error = incstack__delta_weigh(in->delta, in->pairs[i].before, in->pairs[i].after,
					  options->normalize, &part.of);

	if (error)
		return error;
	(void)set_least(&part);
	exceeded = tool_limits_check(options, part.kind, part.of.before, part.of.after);
	*is_exceeded |= exceeded > 0;
	error = options->json ? print_json(&part, i == 0, exceeded) : print_text(&part);
	incstack__kind_delta_free(&part.of);
	return error;
}

static void begin(const struct comparison *in, char *const *paths)
{
	char names[2][4096];

	for (int i = 0; i < 2; i++)
		names[i][tool_name_valid(paths[i], names[i], sizeof(names[i]) - 1)] = 0;
	if (in->options->json) {
		incstack__delta_json_begin(names[0], names[1], in->options->normalize, stdout);
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct incstack_profile_meta meta = {.size = sizeof(meta)};

		(void)incstack_profile_meta(in->profiles[i], &meta);
		printf("%s %s", i ? "After: " : "Before:", tool_name(paths[i]));
		if (meta.program)
			printf(" (%s)", tool_name(meta.program));
		putchar('\n');
	}
}

static int print_kinds(struct comparison *in, char *const *paths)
{
	int is_exceeded = 0;
	int error = incstack__delta_create(in->profiles[0], in->profiles[1], &in->delta);

	if (!error)
		begin(in, paths);
	for (size_t i = 0; i < in->count && !error; i++)
		error = print_kind(in, i, &is_exceeded);
	if (!error && in->options->json)
		incstack__delta_json_end(stdout);
	incstack__delta_destroy(in->delta);
	if (error)
		fprintf(stderr, "incstack: cannot compare: %s\n", incstack_error_text(error));
	return error ? TOOL_FAILED : is_exceeded ? TOOL_EXCEEDED : TOOL_DONE;
}

/* ---- which kinds --------------------------------------------------------------------- */

static int refuse_units(const struct incstack_profile_kind *a,
			const struct incstack_profile_kind *b)
{
	fprintf(stderr,
		"incstack: cannot compare '%s' (%s) with '%s' (%s); --kind names a kind that "
		"both profiles have\n",
		tool_name(a->name), tool_name(a->unit), tool_name(b->name), tool_name(b->unit));
	return TOOL_USAGE;
}

/* Adds the kind with number `before`, if the other profile has it. A kind that only one profile has is
 * told, not compared. */
static int add_kind(struct comparison *in, uint32_t before, uint32_t *matched)
{
	struct incstack_profile_kind kind = {"", ""}, other = {"", ""};
	struct pair pair = {before, 0};

	(void)incstack_profile_kind(in->profiles[0], before, &kind);
	if (tool_kind_number(in->profiles[1], kind.name, &pair.after))
		return TOOL_DONE;
	(void)incstack_profile_kind(in->profiles[1], pair.after, &other);
	if (strcmp(kind.unit, other.unit) != 0)
		return refuse_units(&kind, &other);
	*matched |= 1u << pair.after;
	in->kinds[in->count] = kind;
	in->pairs[in->count++] = pair;
	return TOOL_DONE;
}

/* Tells which kinds only one of the profiles has. */
static void tell_alone(const struct comparison *in, uint32_t matched)
{
	struct incstack_profile_kind kind;
	uint32_t number;

	for (uint32_t i = 0; !incstack_profile_kind(in->profiles[0], i, &kind); i++)
		if (tool_kind_number(in->profiles[1], kind.name, &number))
			fprintf(stderr,
				"incstack: not compared: '%s', which only the first "
				"profile has\n",
				tool_name(kind.name));
	for (uint32_t i = 0; !incstack_profile_kind(in->profiles[1], i, &kind); i++)
		if (!(matched >> i & 1))
			fprintf(stderr,
				"incstack: not compared: '%s', which only the second "
				"profile has\n",
				tool_name(kind.name));
}

static int find_kinds(struct comparison *in)
{
	const char *wanted = in->options->kind;
	struct incstack_profile_kind kind = {"", ""}, other = {"", ""};
	uint32_t matched = 0, number;
	int status = TOOL_DONE;

	if (wanted && (tool_kind_find(in->profiles[0], wanted, &number) ||
		       tool_kind_find(in->profiles[1], wanted, &number)))
		return TOOL_USAGE;
	for (uint32_t i = 0; !status && !incstack_profile_kind(in->profiles[0], i, &kind); i++)
		if (!wanted || !strcmp(kind.name, wanted))
			status = add_kind(in, i, &matched);
	if (status || in->count) {
		if (!status && !wanted)
			tell_alone(in, matched);
		return status;
	}
	(void)incstack_profile_kind(in->profiles[0], 0, &kind);
	(void)incstack_profile_kind(in->profiles[1], 0, &other);
	return refuse_units(&kind, &other);
}

/* Refuses a threshold that is no amount of any kind that is compared. */
static int refuse_threshold(const struct comparison *in)
{
	for (size_t i = 0; i < in->count; i++) {
		struct part part = {.in = in, .kind = &in->kinds[i]};

		if (set_least(&part))
			return TOOL_DONE;
	}
	fprintf(stderr, "incstack: --threshold: '%s' is no amount of %s\n",
		tool_name(in->options->threshold), tool_name(in->kinds[0].unit));
	return TOOL_USAGE;
}

int tool_difference_print(struct incstack_profile **profiles, char *const *paths,
			  const struct tool_options *options)
{
	struct comparison in = {
		.options = options, .profiles = profiles, .columns = tool_columns(stdout)};
	int status = find_kinds(&in);

	if (!status)
		status = tool_limits_refuse(options, in.kinds, in.count);
	if (!status)
		status = refuse_threshold(&in);
	return status ? status : print_kinds(&in, paths);
}
