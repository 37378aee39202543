/* SPDX-License-Identifier: MIT
 *
 * Matches patterns. After a mismatch, only the last `*` takes more text, because an earlier one has nothing to gain.
 */
#include "pattern.h"

#include <string.h>

bool incstack__pattern_matches(const char *pattern, const char *text, size_t length)
{
	const char *end = text + length, *star = NULL, *from = NULL;

	while (text < end) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool begins(const char *text, size_t length, const char *with)
{
	const size_t size = strlen(with);

	return length >= size && !memcmp(text, with, size);
}

static bool ends(const char *text, size_t length, const char *with)
{
	const size_t size = strlen(with);

	return length >= size && !memcmp(text + length - size, with, size);
}

/* Returns the length of what belongs to the name at this place, although it has characters that have another meaning
 * elsewhere: operators and unnamed namespaces. */
static size_t special_at(const char *name, size_t i, size_t length)
{
	static const char unnamed[] = "(anonymous namespace)", call[] = "()";

	if (begins(name + i, length - i, unnamed))
		return sizeof(unnamed) - 1;
	if (!ends(name, i, "operator"))
		return 0;
	if (begins(name + i, length - i, call))
		return sizeof(call) - 1;
	for (size_t end = i;; end++)
		if (end == length || !strchr("<>=-", name[end]))
			return end - i;
}

/* Returns where the parameters begin: at the first parenthesis that is not among the arguments of a template. */
static size_t parameters_of(const char *name, size_t length)
{
	size_t depth = 0;

	for (size_t i = 0; i < length; i++) {
		const size_t special = special_at(name, i, length);

		if (special) {
			i += special - 1;
			continue;
		}
		if (name[i] == '(' && !depth)
			return i;
		depth += name[i] == '<';
		depth -= name[i] == '>' && depth;
	}
	return length;
}

/* Whether the suffix, whose last character is before `at`, goes no further: ".part" is none in "sort.partition". */
static bool ends_word(const char *text, size_t length, size_t at)
{
	const char last = text[at - 1];

	return at == length || last == '.' || last == '_' || text[at] == '.' ||
	       (text[at] >= '0' && text[at] <= '9');
}

static bool is_suffix(const char *text, size_t length)
{
	static const char *const suffixes[] = {".constprop", ".isra", ".part",      ".cold",
					       ".llvm.",     ".lto_", ".localalias"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (begins(text, length, suffixes[i]) &&
		    ends_word(text, length, strlen(suffixes[i])))
			return true;
	return *text == '@'; /* a version, or an entry of the table that links procedures */
}

size_t incstack__function_base(const char *name, size_t length)
{
	const size_t parameters = parameters_of(name, length);

	for (size_t i = 1; i < parameters; i++)
		if ((name[i] == '.' || name[i] == '@') && is_suffix(name + i, length - i))
			return i;
	return parameters ? parameters : length;
}

bool incstack__pattern_function(const char *pattern, const char *name, size_t length)
{
	return incstack__pattern_matches(pattern, name, length) ||
	       incstack__pattern_matches(pattern, name, incstack__function_base(name, length));
}
