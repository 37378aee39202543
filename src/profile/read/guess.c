/* SPDX-License-Identifier: MIT
 *
 * Recognizes the files of other programs.
 */
#include "guess.h"

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

int incstack__guess(const char *text)
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
	return is_perf_script(text) ? INCSTACK_FORMAT_PERF_SCRIPT : 0;
}
