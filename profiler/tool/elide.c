/* SPDX-License-Identifier: MIT
 *
 * Arguments of templates and functions are what makes a name long. The innermost are left out first.
 */
#include "elide.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char dots[] = "...";

enum { DOTS = sizeof(dots) - 1, BEFORE_DIFFERENCE = 8 };

/* Returns how many bytes the name of an operator has after the word, for example of operator<<. */
static size_t operator_length(const char *name, const char *at)
{
	static const char word[] = "operator";
	const size_t length = sizeof(word) - 1;

	if ((size_t)(at - name) < length || memcmp(at - length, word, length) != 0)
		return 0;
	return strncmp(at, "()", 2) == 0 ? 2 : strspn(at, "<>=-");
}

static bool opens(char c)
{
	return c == '<' || c == '(' || c == '[' || c == '{';
}

static bool closes(const char *name, const char *at)
{
	if (*at == '>')
		return at == name || (at[-1] != '-' && at[-1] != '=');
	return *at == ')' || *at == ']' || *at == '}';
}

/* Writes the name without the arguments that are deeper than `most` others. There is room for it. */
static void leave_out(const char *name, unsigned most, char *text)
{
	unsigned depth = 0;

	for (const char *at = name; *at != 0; at++) {
		const size_t length = operator_length(name, at);

		if (length > 0 && depth <= most) {
			memcpy(text, at, length);
			text += length;
		}
		if (length > 0) {
			at += length - 1;
			continue;
		}
		if (closes(name, at) && depth > 0)
			depth--;
		if (depth <= most)
			*text++ = *at;
		if (opens(*at) && depth++ == most && !closes(name, at + 1)) {
			memcpy(text, dots, DOTS);
			text += DOTS;
		}
	}
	*text = 0;
}

/* Cuts off the start of a text; the end of a name says more. */
static void cut_start(char *text, size_t columns)
{
	const size_t length = strlen(text);
	size_t from = length - (columns > DOTS ? columns - DOTS : 0);

	while (((unsigned char)text[from] & 0xc0) == 0x80)
		from++; /* not within a character */
	memmove(text + DOTS, text + from, length - from + 1);
	memcpy(text, dots, DOTS);
}

/* Returns the name with as many of its arguments as fit, or the end of it. */
static char *shorten(const char *name, size_t columns)
{
	enum { DEPTH_MOST = 16 };
	char *text = malloc((1 + DOTS) * strlen(name) + DOTS + 1);

	if (text == NULL)
		return NULL;
	strcpy(text, name);
	for (unsigned most = DEPTH_MOST; strlen(text) > columns && most-- > 0;)
		leave_out(name, most, text);
	if (strlen(text) > columns)
		cut_start(text, columns);
	return text;
}

static size_t common(const char *a, const char *b)
{
	size_t length = 0;

	while (a[length] != 0 && a[length] == b[length])
		length++;
	return length;
}

/* Whether a shortened name looks the same as another one. */
static bool look_equal(const char *text, const char *name, size_t columns)
{
	char *other = shorten(name, columns);
	const bool is_equal = other != NULL && strcmp(text, other) == 0;

	free(other);
	return is_equal;
}

char *tool_elide(const char *name, const char *const *others, size_t count, size_t columns)
{
	char *text = shorten(name, columns);
	size_t same = 0;

	for (size_t i = 0; text != NULL && i < count; i++)
		if (strlen(name) > columns && strcmp(name, others[i]) != 0 &&
		    look_equal(text, others[i], columns) && common(name, others[i]) > same)
			same = common(name, others[i]);
	if (same <= BEFORE_DIFFERENCE + DOTS)
		return text;
	same -= BEFORE_DIFFERENCE;
	while (same > 0 && ((unsigned char)name[same] & 0xc0) == 0x80)
		same--; /* not within a character */
	memcpy(text, dots, DOTS);
	strcpy(text + DOTS, name + same);
	return text;
}
