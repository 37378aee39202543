/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the printing of names. The first byte of the input is the width; the rest is the name. What is
 * printed is valid UTF-8 without characters that control a terminal, and fits.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Counts the characters of what was printed, or aborts. Independent of the code under test. */
static size_t check(const char *text)
{
	size_t count = 0;

	for (const unsigned char *at = (const unsigned char *)text; *at != 0; count++) {
		const unsigned length = at[0] < 0x80   ? 1
					: at[0] < 0xc2 ? 0
					: at[0] < 0xe0 ? 2
					: at[0] < 0xf0 ? 3
					: at[0] < 0xf5 ? 4
						       : 0;

		if (length == 0 || at[0] < 0x20 || at[0] == 0x7f)
			abort();
		for (unsigned i = 1; i < length; i++)
			if ((at[i] & 0xc0) != 0x80)
				abort();
		if ((at[0] == 0xc2 && at[1] < 0xa0) || (at[0] == 0xd8 && at[1] == 0x9c) ||
		    (at[0] == 0xe2 && at[1] == 0x80 && at[2] >= 0x8e && at[2] <= 0x8f) ||
		    (at[0] == 0xe2 && at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) ||
		    (at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9))
			abort();
		at += length;
	}
	return count;
}

static void clip(const char *name, size_t width, char cut)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return;
	tool_name_clip(name, width, cut, out);
	fclose(out);
	if (check(text) > (width > 3 ? width : 3))
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = size > 0 ? malloc(size) : NULL;
	char text[64];

	if (name == NULL)
		return 0;
	memcpy(name, data + 1, size - 1);
	name[size - 1] = 0;
	clip(name, data[0], '<');
	clip(name, data[0], '>');
	clip(name, SIZE_MAX, '>');
	if (tool_name_valid(name, text, sizeof(text)) > sizeof(text))
		abort();
	free(name);
	return 0;
}
