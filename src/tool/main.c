/* SPDX-License-Identifier: MIT
 *
 * The command line of incstack: picks the subcommand.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <incstack/version.h>

#include "heap.h"
#include "report.h"

static const char help[] = "usage: incstack COMMAND [OPTIONS]\n"
			   "\n"
			   "  heap [OPTIONS] -- PROGRAM [ARGS]   profile what PROGRAM allocates\n"
			   "  report FILE [-o PREFIX]            report on a trace file once more\n"
			   "  --version, --help\n"
			   "\n"
			   "incstack heap --help tells more.\n";

static const char report_help[] =
	"usage: incstack report FILE [-o PREFIX]\n"
	"\n"
	"Prints the hottest calling contexts of a trace file and writes PREFIX.folded and\n"
	"PREFIX.html; PREFIX is FILE if not given.\n";

int tool_report(int argc, char **argv)
{
	static const struct option names[] = {{"output", required_argument, NULL, 'o'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	const char *prefix = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "o:h", names, NULL)) != -1) {
		if (option == 'h') {
			fputs(report_help, stdout);
			return 0;
		}
		if (option != 'o')
			return 2;
		prefix = optarg;
	}
	if (argc - optind != 1) {
		fprintf(stderr, "incstack: which trace file? incstack report FILE\n");
		return 2;
	}
	return tool_report_make(argv[optind], prefix != NULL ? prefix : argv[optind], stdout,
				tool_columns(stdout), NULL);
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";

	if (strcmp(command, "heap") == 0)
		return tool_heap(argc - 1, argv + 1);
	if (strcmp(command, "report") == 0)
		return tool_report(argc - 1, argv + 1);
	if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
		fputs(help, stdout);
		return 0;
	}
	if (strcmp(command, "--version") == 0) {
		printf("incstack %d.%d.%d\n", INCSTACK_VERSION_MAJOR, INCSTACK_VERSION_MINOR,
		       INCSTACK_VERSION_PATCH);
		return 0;
	}
	if (argc > 1)
		fprintf(stderr, "incstack: there is no command '%s'\n", command);
	fputs(help, stderr);
	return 2;
}
