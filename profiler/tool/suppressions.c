/* SPDX-License-Identifier: MIT
 *
 * Reads files of suppressions. A pattern matches any part of a text, unless ^ and $ bind it to the ends; `*` stands for
 * any text.
 */
#include "suppressions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "names.h"
#include "profile_io.h"

enum { LINE_MAX_BYTES = 4096, LINES_MAX = 10000 };

/* Returns the text without the spaces around it, whose end becomes a zero byte. */
static char *trimmed(char *text)
{
	char *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		*--end = 0;
	return text;
}

/* Makes a pattern for a whole text. */
static char *whole_of(const char *pattern)
{
	const bool is_bound = *pattern == '^';
	const size_t length = strlen(pattern + is_bound);
	const bool ends = length && pattern[is_bound + length - 1] == '$';
	char *whole = NULL;

	if (asprintf(&whole, "%s%.*s%s", is_bound ? "" : "*", (int)(length - ends),
		     pattern + is_bound, ends ? "" : "*") < 0)
		return NULL;
	return whole;
}

static int add(struct tool_suppressions *list, const char *pattern)
{
	if (list->count == list->room) {
		const size_t room = 2 * list->room + 16;
		char **grown = reallocarray(list->patterns, room, sizeof(*grown));

		if (!grown)
			return INCSTACK_ENOMEM;
		list->patterns = grown;
		list->room = room;
	}
	list->patterns[list->count] = whole_of(pattern);
	return list->patterns[list->count++] ? 0 : INCSTACK_ENOMEM;
}

/* Says what is wrong with a line; null if nothing is. */
static const char *read_line(struct tool_suppressions *list, char *line, size_t bytes)
{
	static const char leak[] = "leak:";
	const bool is_text = strlen(line) == bytes;
	char *text = trimmed(line);

	if (!is_text)
		return "is not text";
	if (!*text || *text == '#')
		return NULL;
	if (strncmp(text, leak, sizeof(leak) - 1) != 0)
		return "is no suppression of a leak; a line is leak:PATTERN, or a comment after #";
	text = trimmed(text + sizeof(leak) - 1);
	if (!text[strspn(text, "^$")])
		return "has no pattern after leak:";
	if (list->count == LINES_MAX)
		return "is one suppression too many; at most 10,000 are read";
	return add(list, text) ? "does not fit into the memory" : NULL;
}

static int read_lines(struct tool_suppressions *list, const char *path, FILE *stream)
{
	const char *why = NULL;
	char *line = NULL;
	size_t room = 0, number = 0;
	ssize_t bytes;

	while (!why && (bytes = getline(&line, &room, stream)) >= 0) {
		number++;
		why = bytes > LINE_MAX_BYTES ? "is too long" : read_line(list, line, (size_t)bytes);
	}
	free(line);
	if (!why && ferror(stream)) {
		fprintf(stderr, "incstack: cannot read %s: %s\n", tool_name(path), strerror(errno));
		return TOOL_FAILED;
	}
	if (!why)
		return TOOL_DONE;
	fprintf(stderr, "incstack: %s:%zu: the line %s\n", tool_name(path), number, why);
	return TOOL_USAGE;
}

int tool_suppressions_read(struct tool_suppressions *list, const char *path)
{
	const int fd = tool_files_input(path);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
	int status;

	if (!stream) {
		fprintf(stderr, "incstack: cannot read %s: %s\n", tool_name(path), strerror(errno));
		return TOOL_FAILED;
	}
	status = read_lines(list, path, stream);
	fclose(stream);
	return status;
}

void tool_suppressions_free(struct tool_suppressions *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->patterns[i]);
	free(list->patterns);
	*list = (struct tool_suppressions){0};
}
