/* SPDX-License-Identifier: MIT
 *
 * Reads the files of heaptrack after their interpretation, which is what its commands leave behind. Each line
 * is an event: strings, instruction pointers with their functions, traces as a tree, kinds of allocations,
 * and calls of the allocator. All tables are filled in the order of their lines, and count from 1.
 */
#include <stdlib.h>
#include <string.h>

#include "foreign.h"

/* The frames of an instruction pointer, innermost first: [first, first + count) of `frames`. */
struct pointer {
	size_t first, count;
};

/* What is known of a node: what is live now, and was at the newest peak. */
struct live {
	uint64_t now, peak;
	uint64_t seen; /* the number of the peak that `peak` is of */
};

struct allocation {
	uint64_t bytes, alive;
	uint32_t node;
};

/* A trace of a few bytes adds a context for each function that is inlined at its pointer. */
enum { INLINED_MOST = 256, NODES_LEAST = 1 << 21, NODES_EACH = 16 };

struct heaptrack {
	struct incstack__reader *reader;
	struct incstack__lines lines;
	struct incstack__line line; /* what is left of the current line */
	uint32_t *strings;          /* numbers of names */
	size_t strings_used, strings_room;
	uint32_t unknown; /* the name of a function without one */
	uint32_t *frames;
	size_t frames_used, frames_room;
	struct pointer *pointers;
	size_t pointers_used, pointers_room;
	uint32_t *traces; /* the node of each */
	size_t traces_used, traces_room;
	struct allocation *allocations;
	size_t allocations_used, allocations_room;
	struct live *live; /* by node */
	size_t live_room;
	uint64_t total, peak,
		peaks;   /* bytes live now and at most; how often there was a new peak */
	bool is_counted; /* strings have their length before them */
};

static int refuse(const struct heaptrack *in, const char *why)
{
	return incstack__refuse(in->reader, why);
}

/* Takes the next number off the line. */
static bool next(struct heaptrack *in, uint64_t *number)
{
	incstack__line_skip_spaces(&in->line);
	return incstack__line_number(&in->line, 16, number);
}

static int on_version(struct heaptrack *in)
{
	uint64_t program, version;

	if (!next(in, &program) || !next(in, &version))
		return refuse(in, "a version that is no number");
	if (version < 1 || version > 3)
		return refuse(in, "a version of heaptrack's files other than 1 to 3");
	in->is_counted = version >= 3;
	return 0;
}

static int on_string(struct heaptrack *in)
{
	uint64_t length;
	int error;

	(void)incstack__line_skip(&in->line, " ");
	if (in->is_counted && (!next(in, &length) || !incstack__line_skip(&in->line, " ") ||
			       length != in->line.length))
		return refuse(in, "a string of another length");
	if (!incstack__text_valid(in->line.text, in->line.length))
		return refuse(in, "a string is not UTF-8, or has a NUL byte");
	error = incstack__reserve((void **)&in->strings, &in->strings_room, in->strings_used + 1,
				  sizeof(*in->strings));
	if (!error)
		error = incstack__name_intern(in->reader->profile, in->line.text, in->line.length,
					      &in->strings[in->strings_used++]);
	return error;
}

/* Turns the number of a string, 0 for none, into the number of its name + 1. */
static int name_of(const struct heaptrack *in, uint64_t string, uint32_t *name)
{
	if (string > in->strings_used)
		return refuse(in, "a string that is not there");
	*name = string ? in->strings[string - 1] + 1 : 0;
	return 0;
}

/* Reads a function with its file and line. If more follow on the line, it is inlined into the next. */
static int add_frame(struct heaptrack *in)
{
	struct incstack__frame key = {.position = -1};
	uint64_t function = 0, file = 0, line = 0;
	uint32_t name = 0;
	int error;

	if (next(in, &function) && next(in, &file) && !next(in, &line))
		return refuse(in, "a file without a line");
	incstack__line_skip_spaces(&in->line);
	key.line = line <= INT32_MAX ? (int32_t)line : 0;
	key.flags = in->line.length ? INCSTACK_OBJECT_VIRTUAL : 0;
	error = name_of(in, function, &name);
	if (!error)
		error = name_of(in, file, &key.file);
	if (!error)
		error = incstack__reserve((void **)&in->frames, &in->frames_room,
					  in->frames_used + 1, sizeof(*in->frames));
	key.key = function ? name - 1 : in->unknown;
	return error ? error
		     : incstack__frame_intern(in->reader->profile, &key,
					      &in->frames[in->frames_used++]);
}

/* "i ADDRESS MODULE [FUNCTION [FILE LINE]]..." */
static int on_pointer(struct heaptrack *in)
{
	struct pointer pointer = {.first = in->frames_used};
	uint64_t module;
	int error;

	incstack__line_skip_spaces(&in->line);
	if (!incstack__line_skip_digits(&in->line) || !next(in, &module))
		return refuse(in, "an instruction pointer without a module");
	do {
		if (in->frames_used - pointer.first == INLINED_MOST)
			return refuse(in, "more than 256 functions at an instruction pointer");
		error = add_frame(in);
	} while (!error && in->line.length);
	if (!error)
		error = incstack__reserve((void **)&in->pointers, &in->pointers_room,
					  in->pointers_used + 1, sizeof(*in->pointers));
	if (error)
		return error;
	pointer.count = in->frames_used - pointer.first;
	in->pointers[in->pointers_used++] = pointer;
	return 0;
}

/* "t POINTER CALLER": the caller is a trace that was there before, or 0. */
static int on_trace(struct heaptrack *in)
{
	uint64_t pointer, caller;
	uint32_t node = INCSTACK_PROFILE_ROOT;
	int error;

	if (!next(in, &pointer) || !next(in, &caller) || !pointer || pointer > in->pointers_used ||
	    caller > in->traces_used)
		return refuse(in, "a trace of something that is not there");
	if (in->reader->profile->nodes_used > NODES_LEAST + in->lines.taken * NODES_EACH)
		return refuse(in, "more contexts than a file of this size has");
	if (caller)
		node = in->traces[caller - 1];
	error = incstack__reserve((void **)&in->traces, &in->traces_room, in->traces_used + 1,
				  sizeof(*in->traces));
	for (size_t i = in->pointers[pointer - 1].count; i-- > 0 && !error;)
		error = incstack__node_child(in->reader->profile, node,
					     in->frames[in->pointers[pointer - 1].first + i],
					     &node);
	if (!error)
		in->traces[in->traces_used++] = node;
	return error;
}

/* "a BYTES TRACE" */
static int on_allocation(struct heaptrack *in)
{
	struct allocation allocation = {0};
	uint64_t trace;
	int error;

	if (!next(in, &allocation.bytes) || !next(in, &trace) || trace > in->traces_used)
		return refuse(in, "an allocation of a trace that is not there");
	error = incstack__unknown_node(in->reader->profile, &allocation.node);
	if (trace)
		allocation.node = in->traces[trace - 1];
	if (!error)
		error = incstack__reserve((void **)&in->allocations, &in->allocations_room,
					  in->allocations_used + 1, sizeof(*in->allocations));
	if (!error)
		in->allocations[in->allocations_used++] = allocation;
	return error;
}

/* Returns what is known of a node, with the value that it had at the newest peak. */
static int live_of(struct heaptrack *in, uint32_t node, struct live **live)
{
	const size_t room = in->live_room;
	int error = incstack__reserve((void **)&in->live, &in->live_room, (size_t)node + 1,
				      sizeof(*in->live));

	if (error)
		return error;
	memset(in->live + room, 0, (in->live_room - room) * sizeof(*in->live));
	*live = &in->live[node];
	if ((*live)->seen != in->peaks) {
		(*live)->peak = (*live)->now;
		(*live)->seen = in->peaks;
	}
	return 0;
}

/* "+ ALLOCATION" */
static int on_allocated(struct heaptrack *in, struct allocation *allocation)
{
	struct live *live;
	int error = incstack__weigh(in->reader, allocation->node, INCSTACK__FOREIGN_ALLOCATED,
				    allocation->bytes);

	if (!error)
		error = incstack__weigh(in->reader, allocation->node, INCSTACK__FOREIGN_ALLOCATIONS,
					1);
	if (!error)
		error = live_of(in, allocation->node, &live);
	if (error)
		return error;
	allocation->alive++;
	live->now += allocation->bytes;
	in->total += allocation->bytes;
	if (in->total > in->peak) {
		in->peak = in->total;
		in->peaks++;
	}
	return 0;
}

/* "- ALLOCATION". heaptrack may have missed the allocation, because it was attached late. */
static int on_freed(struct heaptrack *in, struct allocation *allocation)
{
	struct live *live;
	int error;

	if (!allocation->alive)
		return 0;
	error = live_of(in, allocation->node, &live);
	if (error)
		return error;
	allocation->alive--;
	live->now -= allocation->bytes;
	in->total -= allocation->bytes;
	return 0;
}

static int on_call(struct heaptrack *in, char sign)
{
	uint64_t number;

	if (!next(in, &number) || number >= in->allocations_used)
		return refuse(in, "a call for an allocation that is not there");
	return sign == '+' ? on_allocated(in, &in->allocations[number])
			   : on_freed(in, &in->allocations[number]);
}

static int on_line(struct heaptrack *in)
{
	const char kind = in->line.length ? *in->line.text : '#';

	if (in->line.length) {
		in->line.text++;
		in->line.length--;
	}
	switch (kind) {
	case 'v':
		return on_version(in);
	case 's':
		return on_string(in);
	case 'i':
		return on_pointer(in);
	case 't':
		return on_trace(in);
	case 'a':
		return on_allocation(in);
	case '+':
	case '-':
		return on_call(in, kind);
	default:
		return 0; /* comments, times, sizes of the process, what later versions may add */
	}
}

/* Adds what lives at the end, and what lived at the peak. */
static int add_live(struct heaptrack *in)
{
	int error = 0;

	for (uint32_t node = 1; node < in->reader->profile->nodes_used && !error; node++) {
		struct live *live;

		error = live_of(in, node, &live);
		if (!error && live->peak)
			error = incstack__weigh(in->reader, node, INCSTACK__FOREIGN_PEAK,
						live->peak);
		if (!error && live->now)
			error = incstack__weigh(in->reader, node, INCSTACK__FOREIGN_LIVE,
						live->now);
	}
	return error;
}

static int read_all(struct heaptrack *in)
{
	static const char unknown[] = "[unknown]";
	int error = incstack__name_intern(in->reader->profile, unknown, sizeof(unknown) - 1,
					  &in->unknown);

	if (!error)
		error = incstack__lines_next(&in->lines, &in->line);
	if (!error && (!in->line.text || *in->line.text != 'v'))
		return refuse(in, "not a file of heaptrack: it does not begin with a version");
	while (!error && in->line.text) {
		error = on_line(in);
		if (!error)
			error = incstack__lines_next(&in->lines, &in->line);
	}
	return error ? error : add_live(in);
}

int incstack__read_heaptrack(struct incstack__reader *reader)
{
	struct heaptrack in = {.reader = reader, .lines = {.reader = reader}};
	int error = incstack__foreign_heap(reader);

	if (!error)
		error = read_all(&in);
	incstack__lines_free(&in.lines);
	free(in.strings);
	free(in.frames);
	free(in.pointers);
	free(in.traces);
	free(in.allocations);
	free(in.live);
	return error;
}
