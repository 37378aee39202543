/* SPDX-License-Identifier: MIT
 *
 * Reads amounts. Suffixes of bytes are powers of 1024, as in the reports; those of counts are powers of 1000.
 */
#include "amount.h"

#include <stdlib.h>
#include <string.h>

static const struct suffix {
	const char *unit; /* null: any other unit */
	const char *suffix;
	double factor;
} suffixes[] = {
	{"bytes", "", 1},
	{"bytes", "B", 1},
	{"bytes", "k", 0x1p10},
	{"bytes", "K", 0x1p10},
	{"bytes", "KiB", 0x1p10},
	{"bytes", "M", 0x1p20},
	{"bytes", "MiB", 0x1p20},
	{"bytes", "G", 0x1p30},
	{"bytes", "GiB", 0x1p30},
	{"bytes", "T", 0x1p40},
	{"bytes", "TiB", 0x1p40},
	{"nanoseconds", "", 1},
	{"nanoseconds", "ns", 1},
	{"nanoseconds", "us", 1e3},
	{"nanoseconds", "ms", 1e6},
	{"nanoseconds", "s", 1e9},
	{NULL, "", 1},
	{NULL, "k", 1e3},
	{NULL, "K", 1e3},
	{NULL, "M", 1e6},
	{NULL, "G", 1e9},
};
enum { SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]) };

/* Returns the unit as the table has it. */
static const char *known_unit(const char *unit)
{
	for (size_t i = 0; i < SUFFIXES; i++)
		if (suffixes[i].unit && !strcmp(suffixes[i].unit, unit))
			return suffixes[i].unit;
	return NULL;
}

bool tool_amount_read(const char *text, const char *unit, uint64_t whole, double *amount)
{
	const char *known = known_unit(unit);
	char *end;

	if (text[strspn(text, "0123456789.")] == 'x') /* strtod reads hexadecimal digits, too */
		return false;
	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	*amount = strtod(text, &end);
	if (end == text || !(*amount < 1e18))
		return false;
	if (!strcmp(end, "%")) {
		*amount *= (double)whole / 100;
		return true;
	}
	for (size_t i = 0; i < SUFFIXES; i++)
		if (suffixes[i].unit == known && !strcmp(suffixes[i].suffix, end)) {
			*amount *= suffixes[i].factor;
			return true;
		}
	return false;
}

bool tool_amount_is_one(const char *text)
{
	double amount;

	return tool_amount_read(text, "bytes", 0, &amount) ||
	       tool_amount_read(text, "nanoseconds", 0, &amount) ||
	       tool_amount_read(text, "count", 0, &amount);
}
