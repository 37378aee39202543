/* SPDX-License-Identifier: MIT
 *
 * Prints a context of the profile, innermost frame first: both ends of a deep one, and what repeats only once.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/elide.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "own_source.h"
#include "report.h"
#include "profile/nodes.h"

/* The frames that repeat are at most so many functions that call one another. */
#define PERIOD_MOST 4u
/* Less often is not shorter. */
#define TIMES_LEAST 3u

/* A line of a context. */
struct line {
	const struct incstack_profile_frame *frame; /* null: the `period` lines before repeat */
	unsigned period, times;
};

void tool_report_place(const char *name, size_t length, const char *file, int32_t line,
		       size_t columns, FILE *out)
{
	char *text = strndup(name != NULL ? name : "?", name != NULL ? length : 1);
	char *place = NULL;
	char *elided;
	size_t taken = 0;

	if (file != NULL && line > 0 &&
	    asprintf(&place, "%s:%" PRId32, tool_base_name(file), line) > 0)
		taken = strlen(place) + 2 < columns / 2 ? strlen(place) + 2 : columns / 2;
	elided = text != NULL ? tool_elide(text, NULL, 0, columns - taken) : NULL;
	tool_name_clip(elided != NULL ? elided : "?", columns - taken, '>', out);
	if (place != NULL && taken > 2) {
		fputs("  ", out);
		tool_name_clip(place, taken - 2, '<', out);
	}
	fputc('\n', out);
	free(place);
	free(elided);
	free(text);
}

/* ---- what repeats ---------------------------------------------------------------- */

/* Equal names of a profile are one pointer. */
static bool is_equal(const struct incstack_profile_frame *a, const struct incstack_profile_frame *b,
		     unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (a[i].name != b[i].name || a[i].function != b[i].function)
			return false;
	return true;
}

static unsigned times_of(const struct incstack_profile_frame *frames, size_t count, unsigned period)
{
	unsigned times = 1;

	while ((times + 1) * (size_t)period <= count &&
	       is_equal(frames, frames + (size_t)times * period, period))
		times++;
	return times;
}

/* Finds how many of the first frames repeat: the period with which most of them do. */
static unsigned period_of(const struct incstack_profile_frame *frames, size_t count,
			  unsigned *times)
{
	unsigned best = 1;

	*times = times_of(frames, count, 1);
	for (unsigned period = 2; period <= PERIOD_MOST; period++) {
		const unsigned here = times_of(frames, count, period);

		if (here >= TIMES_LEAST && here * period > *times * best) {
			best = period;
			*times = here;
		}
	}
	if (*times < TIMES_LEAST)
		*times = 1;
	return *times == 1 ? 1 : best;
}

/* Makes the lines of some frames. `lines` has room for one more than there are frames. */
static size_t fold(const struct incstack_profile_frame *frames, size_t count, struct line *lines)
{
	size_t made = 0;

	for (size_t i = 0; i < count;) {
		unsigned times;
		const unsigned period = period_of(frames + i, count - i, &times);

		for (unsigned j = 0; j < period; j++)
			lines[made++] = (struct line){.frame = &frames[i + j]};
		if (times > 1)
			lines[made++] = (struct line){.period = period, .times = times};
		i += (size_t)period * times;
	}
	return made;
}

/* ---- a context ------------------------------------------------------------------- */

/* The mark of a frame whose caller was found by the frame pointer. */
static void put_frame(const struct tool_report *report, const struct incstack_profile_frame *frame,
		      FILE *out)
{
	static const char before[] = "(fp) ";
	size_t columns = report->wish->columns;

	columns = columns > 40 ? columns - 20 : 20;
	if (frame->flags & INCSTACK_OBJECT_POINTER) {
		fputs(before, out);
		columns -= sizeof(before) - 1;
	}
	tool_report_place(frame->name, frame->name_length, frame->file, frame->line, columns, out);
}

static void put_line(const struct tool_report *report, const struct line *line, FILE *out)
{
	if (line->frame != NULL)
		put_frame(report, line->frame, out);
	else if (line->period == 1)
		fprintf(out, "... which calls itself, %u deep\n", line->times);
	else
		fprintf(out, "... these %u again and again, %u times\n", line->period, line->times);
}

/* Returns the first line of the program's own source, or the number of all lines. */
static size_t own_of(const struct line *lines, size_t count)
{
	size_t i = 0;

	while (i < count && (lines[i].frame == NULL || !tool_source_is_own(lines[i].frame->file)))
		i++;
	return i;
}

/* Which lines of a context are shown: the first ones, the innermost one of the program's own source, the last
 * ones. */
struct shown {
	size_t first, own, last; /* below `first`, equal to `own`, or from `last` on */
};

static struct shown shown_of(const struct tool_report *report, const struct line *lines,
			     size_t count)
{
	const size_t most = report->wish->frames;
	const size_t outer = most / 4;
	const size_t inner = most - outer - 1;
	struct shown shown = {inner, own_of(lines, count), count - outer};

	if (count <= most)
		return (struct shown){count, count, count};
	if (shown.own >= inner && shown.own < shown.last && inner > 2)
		shown.first =
			inner - 2; /* the own line, and another line that says what is left out */
	return shown;
}

static void put_lines(const struct tool_report *report, const struct line *lines, size_t count,
		      FILE *out)
{
	const struct shown shown = shown_of(report, lines, count);
	size_t left_out = 0;

	for (size_t i = 0; i < count; i++) {
		if (i >= shown.first && i != shown.own && i < shown.last) {
			left_out++;
			continue;
		}
		if (i > 0)
			fprintf(out, "%20s", "");
		if (left_out > 0)
			fprintf(out, "... %zu more\n%20s", left_out, "");
		left_out = 0;
		put_line(report, &lines[i], out);
	}
}

/* Returns how many lists of contexts a page has. */
static size_t lists_on_page(const struct tool_report *report)
{
	const struct tool_report_sections *contexts = &report->form->contexts;
	size_t count = 0;
	uint32_t kind;

	for (size_t i = 0; i < contexts->count; i++)
		count += contexts->all[i].is_on_page &&
			 tool_kind_number(report->profile, contexts->all[i].kind, &kind) ==
				 TOOL_DONE;
	return count;
}

size_t tool_report_contexts_most(const struct tool_report *report)
{
	enum { OF_ONE_KIND = 5, OF_TWO_KINDS = 2 };
	const struct tool_report_wish *wish = report->wish;

	if (wish->contexts != TOOL_CONTEXTS_OF_PAGE)
		return wish->contexts;
	if (wish->kind != NULL || wish->is_json || lists_on_page(report) == 1)
		return OF_ONE_KIND;
	return OF_TWO_KINDS;
}

struct incstack_profile_frame *tool_report_path(const struct incstack_profile *profile,
						uint32_t number, size_t *count)
{
	struct incstack_profile_frame *frames;
	size_t depth = 0;

	for (uint32_t n = number; n != INCSTACK_PROFILE_ROOT;
	     n = incstack__profile_parent(profile, n))
		depth++;
	frames = calloc(depth + 1, sizeof(*frames));
	for (size_t i = 0; frames != NULL && i < depth; i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};

		(void)incstack_profile_node(profile, number, &node);
		frames[i] = node.frame;
		number = node.parent;
	}
	*count = frames != NULL ? depth : 0;
	return frames;
}

void tool_report_context(const struct tool_report *report, uint32_t number, FILE *out)
{
	size_t count;
	struct incstack_profile_frame *frames = tool_report_path(report->profile, number, &count);
	struct line *lines = calloc(2 * count + 1, sizeof(*lines));

	if (lines != NULL)
		put_lines(report, lines, fold(frames, count, lines), out);
	free(lines);
	free(frames);
}
