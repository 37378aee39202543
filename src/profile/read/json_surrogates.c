/* SPDX-License-Identifier: MIT
 *
 * Makes lone surrogates of JSON text visible. A JSON string may name half a character, \ud800 without the
 * other half, which no UTF-8 text can express and of which the parser would lose the number (D115).
 */
#include "json_surrogates.h"

#include <ctype.h>
#include <string.h>

enum { ESCAPE = 6 }; /* the length of \ud800 */

static int digit(unsigned char c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

/* Returns the number of the escape \uXXXX at this place, or -1. */
static int unit_at(const unsigned char *text, size_t left)
{
	int unit = 0;

	if (left < ESCAPE || text[0] != '\\' || text[1] != 'u')
		return -1;
	for (int i = 2; i < ESCAPE; i++) {
		const int d = digit(text[i]);

		if (d < 0)
			return -1;
		unit = unit << 4 | d;
	}
	return unit;
}

static bool is_high(int unit)
{
	return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(int unit)
{
	return unit >= 0xdc00 && unit < 0xe000;
}

size_t incstack__json_show_surrogates(unsigned char *text, size_t size, bool is_last)
{
	size_t at = 0;

	while (at < size) {
		const unsigned char *escape = memchr(text + at, '\\', size - at);
		const size_t left = escape ? size - (size_t)(escape - text) : 0;

		if (!escape)
			return size;
		at = size - left;
		if (left < 2 * ESCAPE && !is_last)
			return at;
		const int unit = unit_at(text + at, left);

		if (is_high(unit) && is_low(unit_at(text + at + ESCAPE, left - ESCAPE))) {
			at += 2 * ESCAPE;
		} else if (is_high(unit) || is_low(unit)) {
			memmove(text + at + 1, text + at + 2, ESCAPE - 2);
			text[at] = '<';
			text[at + ESCAPE - 1] = '>';
			at += ESCAPE;
		} else {
			at += left < 2 ? left : 2;
		}
	}
	return size;
}
