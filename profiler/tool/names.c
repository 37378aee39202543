/* SPDX-License-Identifier: MIT
 *
 * Shows names character by character, so that the columns of escapes are counted, too.
 */
#include "names.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_MOST = 12 };

/* The next character of a name. */
struct character {
	size_t bytes; /* in the name */
	bool is_valid;
	char escape[ESCAPE_MOST]; /* empty: it is printed as it is */
};

/* Characters that a terminal obeys instead of printing them, or that hide or reorder others. */
static bool is_control(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0, 0x1f},          /* C0: escape sequences begin with one */
		{0x7f, 0x9f},       /* delete, and C1: the same as escape sequences */
		{0xad, 0xad},       /* soft hyphen */
		{0x34f, 0x34f},     /* invisible */
		{0x600, 0x605},     /* Arabic marks of numbers */
		{0x61c, 0x61c},     /* direction: Arabic letter mark */
		{0x6dd, 0x6dd},     /* a mark of verses, */
		{0x70f, 0x70f},     /* and of abbreviations */
		{0x890, 0x891},     /* Arabic marks of currencies */
		{0x8e2, 0x8e2},     /* and of verses */
		{0x115f, 0x1160},   /* invisible fillers */
		{0x17b4, 0x17b5},   /* invisible vowels */
		{0x180b, 0x180f},   /* invisible selectors */
		{0x200b, 0x200d},   /* zero width space, joiners */
		{0x200e, 0x200f},   /* direction: marks */
		{0x2028, 0x202e},   /* separators of lines; direction: embeddings and overrides */
		{0x2060, 0x206f},   /* invisible; direction: isolates */
		{0x3164, 0x3164},   /* an invisible filler */
		{0xfe00, 0xfe0f},   /* invisible selectors */
		{0xfeff, 0xfeff},   /* byte order mark */
		{0xffa0, 0xffa0},   /* an invisible filler */
		{0xfff0, 0xfffb},   /* annotations */
		{0x110bd, 0x110bd}, /* Kaithi marks of numbers */
		{0x110cd, 0x110cd}, {0x13430, 0x13455}, /* controls of hieroglyphs, */
		{0x1bca0, 0x1bca3},                     /* of shorthand, */
		{0x1d173, 0x1d17a},                     /* and of music */
		{0xe0000, 0xe0fff},                     /* tags */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

/* Returns how many bytes the character has that begins with this one; 0 if none begins so. */
static size_t length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if ((first & 0xf0) == 0xe0)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Returns the bytes of the character; 0 if it is none: cut off, too long for its number, a surrogate, or
 * beyond Unicode. */
static size_t decode(const unsigned char *at, size_t left, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	static const unsigned char bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const size_t length = length_of(at[0]);

	if (length == 0 || length > left)
		return 0;
	*code = at[0] & bits[length];
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (at[i] & 0x3f);
	}
	return *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff)
		       ? 0
		       : length;
}

static struct character next(const char *name, size_t left)
{
	struct character c = {.is_valid = true};
	uint32_t code = 0;

	c.bytes = decode((const unsigned char *)name, left, &code);
	if (c.bytes == 0) {
		c = (struct character){.bytes = 1};
		snprintf(c.escape, sizeof(c.escape), "\\x%02x", (unsigned char)*name);
	} else if (is_control(code)) {
		snprintf(c.escape, sizeof(c.escape), code < 0x80 ? "\\x%02x" : "\\u{%x}", code);
	}
	return c;
}

static size_t columns_of(const struct character *c)
{
	return c->escape[0] != 0 ? strlen(c->escape) : 1;
}

static size_t columns(const char *name)
{
	size_t sum = 0;

	for (size_t left = strlen(name); left > 0;) {
		const struct character c = next(name, left);

		sum += columns_of(&c);
		name += c.bytes;
		left -= c.bytes;
	}
	return sum;
}

static void put(const char *name, const struct character *c, FILE *out)
{
	if (c->escape[0] != 0)
		fputs(c->escape, out);
	else
		fwrite(name, 1, c->bytes, out);
}

void tool_name_put(const char *name, size_t bytes, FILE *out)
{
	while (bytes > 0) {
		const struct character c = next(name, bytes);

		put(name, &c, out);
		name += c.bytes;
		bytes -= c.bytes;
	}
}

/* Prints the characters in the columns from `first` on, before `end`. None is printed in part. */
static void put_columns(const char *name, size_t first, size_t end, FILE *out)
{
	size_t at = 0;

	for (size_t left = strlen(name); left > 0 && at < end;) {
		const struct character c = next(name, left);
		const size_t behind = at + columns_of(&c);

		if (at >= first && behind <= end)
			put(name, &c, out);
		at = behind;
		name += c.bytes;
		left -= c.bytes;
	}
}

void tool_name_clip(const char *name, size_t width, char cut, FILE *out)
{
	static const char dots[] = "...";
	const size_t all = columns(name);
	const size_t kept = width > strlen(dots) ? width - strlen(dots) : 0;

	if (all <= width) {
		put_columns(name, 0, all, out);
	} else if (cut == '<') {
		fputs(dots, out);
		put_columns(name, all - kept, all, out);
	} else {
		put_columns(name, 0, kept, out);
		fputs(dots, out);
	}
}

static bool is_plain(const char *name)
{
	for (size_t left = strlen(name); left > 0;) {
		const struct character c = next(name, left);

		if (c.escape[0] != 0)
			return false;
		name += c.bytes;
		left -= c.bytes;
	}
	return true;
}

/* What tool_name() has made. A message has few names. */
static struct kept {
	struct kept *before;
	char *text;
} * kept;

const char *tool_name(const char *name)
{
	struct kept *one;
	size_t size;
	FILE *out;

	if (is_plain(name))
		return name;
	one = calloc(1, sizeof(*one));
	out = one != NULL ? open_memstream(&one->text, &size) : NULL;
	if (out == NULL) {
		free(one);
		return "?";
	}
	tool_name_put(name, strlen(name), out);
	one->before = kept;
	kept = one;
	return fclose(out) == 0 ? one->text : "?";
}

size_t tool_name_valid(const char *name, char *text, size_t size)
{
	size_t length = 0;

	for (size_t left = strlen(name); left > 0;) {
		const struct character c = next(name, left);
		const size_t bytes = c.is_valid ? c.bytes : strlen(c.escape);

		if (bytes > size - length)
			break;
		memcpy(text + length, c.is_valid ? name : c.escape, bytes);
		length += bytes;
		name += c.bytes;
		left -= c.bytes;
	}
	return length;
}

const char *tool_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}
