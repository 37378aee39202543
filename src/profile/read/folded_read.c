/* SPDX-License-Identifier: MIT
 *
 * Reads folded stacks, one context per line. The reader trusts no input and holds one line
 * at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "reader.h"

struct reader {
	struct incstack__reader *common;
	char *buffer;
	size_t room, start, end; /* unread bytes are [start, end) */
	uint64_t taken;          /* bytes, from the stream */
	bool over;               /* the stream has ended */
};

enum { CHUNK = 1 << 18 };

static int refuse(struct reader *reader, const char *why)
{
	return incstack__refuse(reader->common, why);
}

/* Reads the weight at the end of a line. Shortens *length to the stack before it. */
static int parse_weight(struct reader *reader, const char *line, size_t *length, uint64_t *weight)
{
	size_t digits = 0;

	*weight = 0;
	while (digits < *length && line[*length - digits - 1] >= '0' &&
	       line[*length - digits - 1] <= '9')
		digits++;
	if (!digits)
		return refuse(reader, "no weight at the end of the line");
	if (digits == *length || line[*length - digits - 1] != ' ')
		return refuse(reader, "no space before the weight");
	for (size_t i = *length - digits; i < *length; i++) {
		unsigned digit = (unsigned)(line[i] - '0');

		if (*weight > ((uint64_t)INT64_MAX - digit) / 10)
			return refuse(reader, "weight too large");
		*weight = *weight * 10 + digit;
	}
	*length -= digits + 1;
	return 0;
}

static int add_frame(struct reader *reader, const char *text, size_t length, uint32_t *node)
{
	uint32_t frame;
	int error;

	if (!length)
		return refuse(reader, "empty frame name");
	if (!incstack__text_valid(text, length))
		return refuse(reader, "not UTF-8, or a NUL byte");
	error = incstack__frame_named(reader->common->profile, text, length, &frame);
	return error ? error : incstack__node_child(reader->common->profile, *node, frame, node);
}

static int add_stack(struct reader *reader, const char *stack, size_t length, uint64_t weight)
{
	uint32_t node = INCSTACK_PROFILE_ROOT;

	for (;;) {
		const char *semicolon = memchr(stack, ';', length);
		size_t part = semicolon ? (size_t)(semicolon - stack) : length;
		int error = add_frame(reader, stack, part, &node);

		if (error)
			return error;
		if (!semicolon)
			return incstack__weigh(reader->common, node, 0, weight);
		stack += part + 1;
		length -= part + 1;
	}
}

static int add_line(struct reader *reader, const char *line, size_t length)
{
	uint64_t weight;
	int error;

	if (length && line[length - 1] == '\r')
		length--;
	if (!length)
		return 0;
	error = parse_weight(reader, line, &length, &weight);
	return error ? error : add_stack(reader, line, length, weight);
}

/* Moves the unread bytes to the front and reads more behind them. */
static int fill(struct reader *reader)
{
	size_t got;
	int error;

	if (reader->start)
		memmove(reader->buffer, reader->buffer + reader->start,
			reader->end - reader->start);
	reader->end -= reader->start;
	reader->start = 0;
	if (reader->end > INCSTACK_FOLDED_LINE_MAX)
		return refuse(reader, "line too long");
	error = incstack__reserve((void **)&reader->buffer, &reader->room, reader->end + CHUNK, 1);
	if (error)
		return error;
	got = fread(reader->buffer + reader->end, 1, reader->room - reader->end,
		    reader->common->stream);
	if (!got && ferror(reader->common->stream))
		return INCSTACK_EIO;
	reader->over = !got;
	reader->end += got;
	reader->taken += got;
	incstack__progress(reader->common, reader->taken);
	return 0;
}

/* Adds the complete lines in the buffer. */
static int add_lines(struct reader *reader)
{
	for (;;) {
		const char *line = reader->buffer + reader->start;
		const char *newline = memchr(line, '\n', reader->end - reader->start);
		size_t length;
		int error;

		if (!newline)
			return 0;
		length = (size_t)(newline - line);
		if (length > INCSTACK_FOLDED_LINE_MAX)
			return refuse(reader, "line too long");
		error = add_line(reader, line, length);
		if (!error)
			error = incstack__room(reader->common, UINT32_MAX);
		if (error)
			return error;
		reader->start += length + 1;
		reader->common->at.offset += length + 1;
		reader->common->at.line++;
	}
}

static int read_all(struct reader *reader)
{
	int error;

	do {
		error = fill(reader);
		if (!error)
			error = add_lines(reader);
	} while (!error && !reader->over);
	if (!error && reader->start < reader->end)
		return refuse(reader, "the last line is cut off: it has no newline");
	return error;
}

int incstack__read_folded(struct incstack__reader *common)
{
	static const struct incstack_profile_kind samples = {"samples", "count"};
	struct reader reader = {.common = common};
	int error = incstack_profile_create(&samples, 1, &common->profile);

	common->at.line = 1;
	if (!error)
		error = read_all(&reader);
	free(reader.buffer);
	return error;
}
