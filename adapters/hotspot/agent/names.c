/* SPDX-License-Identifier: MIT
 *
 * Names of output files, from templates.
 */
#include "names.h"

#include <stdio.h>
#include <string.h>

#include <incstack/profile.h>

bool agent_name_valid(const char *pattern, char *wrong)
{
	for (const char *at = strchr(pattern, '%'); at; at = strchr(at + 2, '%'))
		if (!at[1] || !strchr("ptn%", at[1])) {
			*wrong = at[1];
			return false;
		}
	return true;
}

/* Writes the text that replaces one letter. */
static void expand(char letter, const struct agent_name_values *values, char *text, size_t size)
{
	struct tm local;

	if (letter == 'p')
		snprintf(text, size, "%ld", values->process);
	else if (letter == 'n')
		snprintf(text, size, "%u", (unsigned)values->part);
	else if (letter == 't' && localtime_r(&values->start, &local))
		strftime(text, size, "%Y%m%d-%H%M%S", &local);
	else
		snprintf(text, size, "%%");
}

static bool append(char *name, size_t size, size_t *length, const char *text, size_t bytes)
{
	if (bytes >= size - *length)
		return false;
	memcpy(name + *length, text, bytes);
	*length += bytes;
	name[*length] = 0;
	return true;
}

static bool expand_all(const char *pattern, const struct agent_name_values *values, char *name,
		       size_t size, size_t *length)
{
	for (*length = 0; *pattern; pattern++) {
		char text[32];

		if (*pattern != '%' || !pattern[1]) {
			if (!append(name, size, length, pattern, 1))
				return false;
			continue;
		}
		expand(*++pattern, values, text, sizeof(text));
		if (!append(name, size, length, text, strlen(text)))
			return false;
	}
	return true;
}

static bool names_parts(const char *pattern)
{
	for (const char *at = strchr(pattern, '%'); at && at[1]; at = strchr(at + 2, '%'))
		if (at[1] == 'n')
			return true;
	return false;
}

/* Returns where the ending of the file's own name begins: at the first dot that is not the first
 * character. "out.pb.gz" has the ending ".pb.gz". */
static size_t ending(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *file = slash ? slash + 1 : name;
	const char *dot = *file ? strchr(file + 1, '.') : NULL;

	return dot ? (size_t)(dot - name) : strlen(name);
}

static bool insert_part(char *name, size_t size, size_t length, uint32_t part)
{
	char text[16];
	size_t at = ending(name);
	size_t bytes = (size_t)snprintf(text, sizeof(text), "-%u", (unsigned)part);

	if (length + bytes >= size)
		return false;
	memmove(name + at + bytes, name + at, length + 1 - at);
	memcpy(name + at, text, bytes);
	return true;
}

bool agent_name_make(const char *pattern, const struct agent_name_values *values, char *name,
		     size_t size)
{
	size_t length;

	if (!size)
		return false;
	name[0] = 0;
	if (!expand_all(pattern, values, name, size, &length))
		return false;
	return !values->has_parts || names_parts(pattern) ||
	       insert_part(name, size, length, values->part);
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t length = strlen(name), bytes = strlen(suffix);

	return length > bytes && !strcmp(name + length - bytes, suffix);
}

int agent_name_format(const char *name)
{
	int format = strchr(name, '.') ? incstack_profile_format_of(name) : 0;

	if (!format && ends_with(name, ".collapsed"))
		format = INCSTACK_FORMAT_FOLDED;
	if (!format && ends_with(name, ".json"))
		format = INCSTACK_FORMAT_FIREFOX;
	return format;
}

const char *agent_name_ending(int format)
{
	static const char *const endings[] = {
		[INCSTACK_FORMAT_FOLDED] = ".folded",
		[INCSTACK_FORMAT_PPROF] = ".pb.gz",
		[INCSTACK_FORMAT_SPEEDSCOPE] = ".speedscope.json",
		[INCSTACK_FORMAT_FIREFOX] = ".firefox.json",
		[INCSTACK_FORMAT_HTML] = ".html",
	};

	return endings[format];
}
