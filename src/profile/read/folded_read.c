/* SPDX-License-Identifier: MIT
 *
 * Reads folded stacks, one context per line. The reader trusts no input and holds one line
 * at a time.
 */
#include <string.h>

#include "lines.h"

/* Reads the weight at the end of a line. Shortens *length to the stack before it. */
static int parse_weight(struct incstack__reader *reader, const char *line, size_t *length,
			uint64_t *weight)
{
	size_t digits = 0;

	while (digits < *length && line[*length - digits - 1] >= '0' &&
	       line[*length - digits - 1] <= '9')
		digits++;
	if (!digits)
		return incstack__refuse(reader, "no weight at the end of the line");
	if (digits == *length || line[*length - digits - 1] != ' ')
		return incstack__refuse(reader, "no space before the weight");
	if (!incstack__line_number(&(struct incstack__line){line + *length - digits, digits}, 10,
				   weight))
		return incstack__refuse(reader, "weight too large");
	*length -= digits + 1;
	return 0;
}

static int add_frame(struct incstack__reader *reader, const char *text, size_t length,
		     uint32_t *node)
{
	uint32_t frame;
	int error;

	if (!length)
		return incstack__refuse(reader, "empty frame name");
	if (!incstack__text_valid(text, length))
		return incstack__refuse(reader, "not UTF-8, or a NUL byte");
	error = incstack__frame_named(reader->profile, text, length, &frame);
	return error ? error : incstack__node_child(reader->profile, *node, frame, node);
}

static int add_stack(struct incstack__reader *reader, const char *stack, size_t length,
		     uint64_t weight)
{
	uint32_t node = INCSTACK_PROFILE_ROOT;

	for (;;) {
		const char *semicolon = memchr(stack, ';', length);
		size_t part = semicolon ? (size_t)(semicolon - stack) : length;
		int error = add_frame(reader, stack, part, &node);

		if (error)
			return error;
		if (!semicolon)
			return incstack__weigh(reader, node, 0, weight);
		stack += part + 1;
		length -= part + 1;
	}
}

static int add_line(struct incstack__reader *reader, const char *line, size_t length)
{
	uint64_t weight;
	int error;

	if (!length)
		return 0;
	error = parse_weight(reader, line, &length, &weight);
	return error ? error : add_stack(reader, line, length, weight);
}

int incstack__read_folded(struct incstack__reader *reader)
{
	static const struct incstack_profile_kind samples = {"samples", "count"};
	struct incstack__lines lines = {.reader = reader};
	struct incstack__line line = {"", 0};
	int error = incstack_profile_create(&samples, 1, &reader->profile);

	while (!error && line.text) {
		error = incstack__lines_next(&lines, &line);
		if (!error && line.text)
			error = add_line(reader, line.text, line.length);
		if (!error)
			error = incstack__room(reader, UINT32_MAX);
	}
	incstack__lines_free(&lines);
	return error;
}
