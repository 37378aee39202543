/* SPDX-License-Identifier: MIT
 *
 * Names of the JVM as names in a profile.
 */
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the length without an address at the end. */
static size_t without_address(const char *name, size_t length)
{
	size_t at = length;

	while (at && strchr("0123456789abcdef", name[at - 1]))
		at--;
	return at > 3 && at < length && name[at - 1] == 'x' && name[at - 2] == '0' &&
			       strchr("./+", name[at - 3])
		       ? at - 3
		       : length;
}

char *agent_method_name(const char *class_signature, const char *method)
{
	size_t length = strlen(class_signature);
	char *name = NULL;

	if (class_signature[0] == 'L' && length > 2) {
		class_signature++;
		length = without_address(class_signature, length - 2);
	}
	if (asprintf(&name, "%.*s.%s", (int)length, class_signature, method) < 0)
		return NULL;
	for (size_t i = 0; i < length; i++)
		if (name[i] == '/')
			name[i] = '.';
	agent_text_repair(name);
	return name;
}

/* Reads one character of up to three bytes. Returns 0 if there is none. */
static uint32_t read_character(const unsigned char *text, size_t *bytes)
{
	*bytes = 1;
	if (text[0] < 0x80)
		return text[0];
	if ((text[0] & 0xe0) == 0xc0 && (text[1] & 0xc0) == 0x80) {
		*bytes = 2;
		return (text[0] & 0x1fu) << 6 | (text[1] & 0x3fu);
	}
	if ((text[0] & 0xf0) == 0xe0 && (text[1] & 0xc0) == 0x80 && (text[2] & 0xc0) == 0x80) {
		*bytes = 3;
		return (text[0] & 0xfu) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3fu);
	}
	return 0;
}

static size_t write_character(uint32_t c, unsigned char *to)
{
	if (c < 0x80) {
		to[0] = (unsigned char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (unsigned char)(0xc0 | c >> 6);
		to[1] = (unsigned char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (unsigned char)(0xe0 | c >> 12);
		to[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (unsigned char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (unsigned char)(0xf0 | c >> 18);
	to[1] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (unsigned char)(0x80 | (c & 0x3f));
	return 4;
}

/* Returns the character that a high surrogate and the next one form, or 0 if they form none. */
static uint32_t join(uint32_t high, const unsigned char *text, size_t *bytes)
{
	size_t more;
	uint32_t low;

	if (high < 0xd800 || high > 0xdbff)
		return 0;
	low = read_character(text + *bytes, &more);
	if (low < 0xdc00 || low > 0xdfff)
		return 0;
	*bytes += more;
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static bool is_shown(uint32_t c, size_t bytes)
{
	const size_t shortest = c < 0x80 ? 1 : c < 0x800 ? 2 : 3;

	return c >= ' ' && c != 0x7f && bytes == shortest && (c < 0xd800 || c > 0xdfff);
}

/* The result is never longer than the original. */
void agent_text_repair(char *text)
{
	const unsigned char *from = (const unsigned char *)text;
	unsigned char *to = (unsigned char *)text;

	while (*from) {
		size_t bytes;
		uint32_t c = read_character(from, &bytes);
		uint32_t joined = join(c, from, &bytes);

		if (!joined && !is_shown(c, bytes))
			c = '?';
		from += bytes;
		to += write_character(joined ? joined : c, to);
	}
	*to = 0;
}
