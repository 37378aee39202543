/* SPDX-License-Identifier: MIT
 *
 * Splits a stream into lines, and lines into numbers.
 */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 18 };

/* Moves the unread bytes to the front and reads more behind them. */
static int fill(struct incstack__lines *lines)
{
	size_t got;
	int error;

	if (lines->start)
		memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
	lines->end -= lines->start;
	lines->start = 0;
	if (lines->end > INCSTACK_FOLDED_LINE_MAX)
		return incstack__refuse(lines->reader, "line too long");
	error = incstack__reserve((void **)&lines->buffer, &lines->room, lines->end + CHUNK, 1);
	if (error)
		return error;
	got = fread(lines->buffer + lines->end, 1, lines->room - lines->end, lines->reader->stream);
	if (!got && ferror(lines->reader->stream))
		return INCSTACK_EIO;
	lines->over = !got;
	lines->end += got;
	lines->taken += got;
	incstack__progress(lines->reader, lines->taken);
	return 0;
}

static int find_end(struct incstack__lines *lines, const char **newline)
{
	size_t searched = 0;
	int error = 0;

	for (;;) {
		const size_t unread = lines->end - lines->start;

		*newline = unread > searched ? memchr(lines->buffer + lines->start + searched, '\n',
						      unread - searched)
					     : NULL;
		if (*newline || lines->over || error)
			return error;
		searched = unread;
		error = fill(lines);
	}
}

int incstack__lines_next(struct incstack__lines *lines, struct incstack__line *line)
{
	const char *newline;
	int error;

	lines->reader->at.offset += lines->current;
	lines->reader->at.line++;
	lines->start += lines->current;
	lines->current = 0;
	error = find_end(lines, &newline);
	*line = (struct incstack__line){0};
	if (error)
		return error;
	if (!newline)
		return lines->start == lines->end
			       ? 0
			       : incstack__refuse(lines->reader,
						  "the last line is cut off: it has no newline");
	line->text = lines->buffer + lines->start;
	line->length = (size_t)(newline - line->text);
	lines->current = line->length + 1;
	if (line->length > INCSTACK_FOLDED_LINE_MAX)
		return incstack__refuse(lines->reader, "line too long");
	if (line->length && line->text[line->length - 1] == '\r')
		line->length--;
	return 0;
}

void incstack__lines_free(struct incstack__lines *lines)
{
	free(lines->buffer);
}

bool incstack__line_skip(struct incstack__line *line, const char *text)
{
	const size_t length = strlen(text);

	if (line->length < length || memcmp(line->text, text, length) != 0)
		return false;
	line->text += length;
	line->length -= length;
	return true;
}

void incstack__line_skip_spaces(struct incstack__line *line)
{
	while (line->length && (*line->text == ' ' || *line->text == '\t')) {
		line->text++;
		line->length--;
	}
}

/* Returns the value of a digit, or a large number. */
static unsigned digit_of(char digit)
{
	if (digit >= '0' && digit <= '9')
		return (unsigned)(digit - '0');
	if (digit >= 'a' && digit <= 'f')
		return (unsigned)(digit - 'a') + 10;
	return digit >= 'A' && digit <= 'F' ? (unsigned)(digit - 'A') + 10 : 255;
}

size_t incstack__line_skip_digits(struct incstack__line *line)
{
	const char *first = line->text;

	while (line->length && digit_of(*line->text) < 16) {
		line->text++;
		line->length--;
	}
	return (size_t)(line->text - first);
}

bool incstack__line_number(struct incstack__line *line, unsigned base, uint64_t *number)
{
	const char *first = line->text;

	*number = 0;
	for (; line->length && digit_of(*line->text) < base; line->text++, line->length--) {
		const unsigned digit = digit_of(*line->text);

		if (*number > ((uint64_t)INT64_MAX - digit) / base)
			return false;
		*number = *number * base + digit;
	}
	return line->text != first;
}
