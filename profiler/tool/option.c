/* SPDX-License-Identifier: MIT
 *
 * The messages for options that getopt_long refuses.
 */
#include <stdio.h>
#include <string.h>

#include "names.h"
#include "option.h"

static void refuse(const char *argument, int result)
{
	const char letter[] = {'-', (char)optopt, 0};
	const int is_long = strncmp(argument, "--", 2) == 0;
	const char *option = is_long ? argument : letter;

	if (result == ':')
		fprintf(stderr, "incstack: option '%s' needs a value\n", tool_name(option));
	else if (is_long && optopt != 0)
		fprintf(stderr, "incstack: option '%s' takes no value\n", tool_name(option));
	else
		fprintf(stderr, "incstack: unknown%s option '%s'\n", is_long ? " or ambiguous" : "",
			tool_name(option));
}

int tool_option_next(int argc, char **argv, const char *letters, const struct option *names)
{
	int result;

	opterr = 0;
	result = getopt_long(argc, argv, letters, names, NULL);
	if (result != '?' && result != ':')
		return result;
	refuse(argv[optind - 1], result);
	return '?';
}
