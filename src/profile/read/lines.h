/* SPDX-License-Identifier: MIT
 *
 * The lines of a text file, one at a time, with bounded memory.
 */
#ifndef INCSTACK_PROFILE_LINES_H
#define INCSTACK_PROFILE_LINES_H

#include "reader.h"

struct incstack__lines {
	struct incstack__reader *reader; /* its `at` becomes the place of the current line */
	char *buffer;
	size_t room, start, end; /* unread bytes are [start, end) */
	size_t current;          /* bytes of the current line, with its end */
	uint64_t taken;          /* bytes, from the stream */
	bool over;               /* the stream has ended */
};

/* A line without its newline, or with a carriage return without this, too. Not terminated. */
struct incstack__line {
	const char *text; /* null: there are no more lines */
	size_t length;
};

/* Reads the next line, which is valid until the next call. A line that is longer than
 * INCSTACK_FOLDED_LINE_MAX and a last line without a newline are EFORMAT. */
int incstack__lines_next(struct incstack__lines *lines, struct incstack__line *line);
void incstack__lines_free(struct incstack__lines *lines);

/* Whether a line begins with a text; if it does, the text is taken off. */
bool incstack__line_skip(struct incstack__line *line, const char *text);
void incstack__line_skip_spaces(struct incstack__line *line);
/* Takes hexadecimal digits off the line, as many as there are. Returns their number. */
size_t incstack__line_skip_digits(struct incstack__line *line);
/* Takes a number to a base of 10 or 16 off the line. False: there is none, or it exceeds INT64_MAX. */
bool incstack__line_number(struct incstack__line *line, unsigned base, uint64_t *number);

#endif
