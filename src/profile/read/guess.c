/* SPDX-License-Identifier: MIT
 *
 * Recognizes the files of other programs.
 */
#include "guess.h"

#include <stdbool.h>
#include <string.h>

#include "foreign.h"

/* Whether the first sample of a text has the head of perf script's samples. */
static bool is_perf_script(const char *text)
{
	while (*text == '#' || *text == '\n') {
		text = strchr(text, '\n');
		if (!text)
			return false;
		text++;
	}
	return incstack__perf_script_head((struct incstack__line){text, strcspn(text, "\n")});
}

/* Reads a number of protobuf, which has 7 bits in a byte. Returns the byte behind it, or null. */
static const unsigned char *take_number(const unsigned char *at, const unsigned char *end,
					uint64_t *number)
{
	*number = 0;
	for (unsigned shift = 0; at < end && shift < 63; shift += 7) {
		*number |= (uint64_t)(*at & 0x7f) << shift;
		if (!(*at++ & 0x80))
			return at;
	}
	return NULL;
}

/* Whether the bytes begin with fields of a pprof profile, each of its type. The last one may be cut off. */
static bool is_pprof(const unsigned char *at, size_t size)
{
	enum { LENGTH = 2, COMMENTS = 13, LEAST = 4 };
	static const unsigned char types[] = {9, LENGTH, LENGTH, LENGTH, LENGTH, LENGTH, LENGTH, 0,
					      0, 0,      0,      LENGTH, 0,      0,      0};
	const unsigned char *end = at + size;
	unsigned count = 0;
	uint64_t tag, value;

	for (; at && at < end; count++) {
		at = take_number(at, end, &tag);
		if (!at || tag >> 3 >= sizeof(types) ||
		    (types[tag >> 3] != (tag & 7) && tag != (COMMENTS << 3 | LENGTH)))
			return false;
		at = take_number(at, end, &value);
		if (at && (tag & 7) == LENGTH)
			at = value < (uint64_t)(end - at) ? at + value : NULL;
	}
	return count >= LEAST;
}

int incstack__guess(const char *text, size_t size)
{
	struct incstack__line first = {text, strcspn(text, "\n")};
	uint64_t number;

	if (!strncmp(text, "desc:", 5) && strstr(text, "\ncmd:"))
		return INCSTACK_FORMAT_MASSIF;
	if (*text == '{' && strstr(text, "\"dhatFileVersion\""))
		return INCSTACK_FORMAT_DHAT;
	if (incstack__line_skip(&first, "v ") && incstack__line_number(&first, 16, &number) &&
	    incstack__line_skip(&first, " ") && incstack__line_number(&first, 16, &number) &&
	    !first.length)
		return INCSTACK_FORMAT_HEAPTRACK;
	if (is_pprof((const unsigned char *)text, size))
		return INCSTACK_FORMAT_PPROF;
	return is_perf_script(text) ? INCSTACK_FORMAT_PERF_SCRIPT : 0;
}
