/* SPDX-License-Identifier: MIT
 *
 * Reads the files of valgrind's massif. The tree of the peak is what was live when the heap was largest. A
 * tree begins with the allocator; the children of a frame are its callers.
 */
#include <stdlib.h>
#include <string.h>

#include "foreign.h"

enum { DEPTH_MOST = 1024 };

/* A frame of the branch that is read now, with what its callers have not taken. */
struct branch_frame {
	uint64_t rest;
	uint32_t frame;
};

struct massif {
	struct incstack__reader *reader;
	struct incstack__lines lines;
	struct branch_frame branch[DEPTH_MOST];
	size_t depth;
	bool in_tree, has_peak;
};

/* Adds what the callers of the innermost frame of the branch have not taken, and removes the frame. */
static int leave(struct massif *in)
{
	const uint64_t rest = in->branch[--in->depth].rest;
	uint32_t node = INCSTACK_PROFILE_ROOT;
	int error = 0;

	/* The first frame is the allocation functions together, which no one calls by that name. */
	for (size_t i = in->depth + 1; rest && i-- > 1 && !error;)
		error = incstack__node_child(in->reader->profile, node, in->branch[i].frame, &node);
	return error || !rest ? error : incstack__weigh(in->reader, node, 0, rest);
}

static int leave_to(struct massif *in, size_t depth)
{
	int error = 0;

	while (in->depth > depth && !error)
		error = leave(in);
	return error;
}

/* "in 4 places, all below massif's threshold (1.00%)" */
static bool is_rest(struct incstack__line text)
{
	return incstack__line_skip(&text, "in ") &&
	       memmem(text.text, text.length, "below massif's threshold", 24) != NULL;
}

static int enter(struct massif *in, uint64_t bytes, struct incstack__line text)
{
	static const char rest[] = "[below massif's threshold]";
	struct incstack__foreign_frame frame = {.name = {rest, sizeof(rest) - 1}};

	if (in->depth == DEPTH_MOST)
		return incstack__refuse(in->reader, "a tree that is too deep");
	if (in->depth) {
		struct branch_frame *callee = &in->branch[in->depth - 1];

		if (bytes > callee->rest)
			return incstack__refuse(in->reader, "callers with more than their callee");
		callee->rest -= bytes;
	}
	if (!is_rest(text))
		frame = incstack__foreign_valgrind(text);
	in->branch[in->depth++].rest = bytes;
	return incstack__foreign_intern(in->reader, &frame, &in->branch[in->depth - 1].frame);
}

/* " n2: 150 0x109170: f (a.c:2)", with a space for each callee */
static int on_tree_line(struct massif *in, struct incstack__line line)
{
	const char *first = line.text;
	uint64_t children, bytes;
	size_t depth;
	int error;

	incstack__line_skip_spaces(&line);
	depth = (size_t)(line.text - first);
	if (!incstack__line_skip(&line, "n") || !incstack__line_number(&line, 10, &children) ||
	    !incstack__line_skip(&line, ": ") || !incstack__line_number(&line, 10, &bytes) ||
	    depth > in->depth)
		return incstack__refuse(in->reader, "not a line of massif's tree");
	incstack__line_skip_spaces(&line);
	error = leave_to(in, depth);
	return error ? error : enter(in, bytes, line);
}

static int on_line(struct massif *in, struct incstack__line line)
{
	if (in->in_tree && line.length && *line.text != '#')
		return on_tree_line(in, line);
	if (in->in_tree) {
		in->in_tree = false;
		return leave_to(in, 0);
	}
	if (incstack__line_skip(&line, "heap_tree=peak")) {
		if (in->has_peak)
			return incstack__refuse(in->reader, "two peaks");
		in->has_peak = in->in_tree = true;
	}
	return 0;
}

static int read_all(struct massif *in)
{
	struct incstack__line line;
	int error = incstack__lines_next(&in->lines, &line);

	if (!error && (!line.text || !incstack__line_skip(&line, "desc:")))
		return incstack__refuse(in->reader, "not a file of massif");
	while (!error && line.text) {
		error = incstack__lines_next(&in->lines, &line);
		if (!error && line.text)
			error = on_line(in, line);
	}
	if (!error)
		error = leave_to(in, 0);
	return error || in->has_peak
		       ? error
		       : incstack__refuse(in->reader, "no snapshot of the peak: the program ended "
						      "early, or allocated nothing");
}

int incstack__read_massif(struct incstack__reader *reader)
{
	static const struct incstack_profile_kind kind = {"live at peak", "bytes"};
	struct massif *in = calloc(1, sizeof(*in));
	int error;

	if (!in)
		return INCSTACK_ENOMEM;
	in->reader = reader;
	in->lines.reader = reader;
	error = incstack_profile_create(&kind, 1, &reader->profile);
	if (!error)
		error = read_all(in);
	incstack__lines_free(&in->lines);
	free(in);
	return error;
}
