/* SPDX-License-Identifier: MIT
 *
 * incstack resolve: writes names, lines and inlined functions into a trace file, so that it can be carried to
 * another machine.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tool/record/record.h"
#include "tool/report/report.h"
#include "tool/report/trace_map.h"
#include "files.h"
#include "names.h"
#include "option.h"
#include "profile_io.h"

static const char help[] =
	"usage: incstack resolve [-o OUTPUT] TRACE-FILE\n"
	"\n"
	"Looks up the functions, lines and inlined functions of all code in a trace file of\n"
	"incstack heap or cpu, and writes them into it. Its reports can then be made on any\n"
	"machine, without the program, its libraries and their debug information.\n"
	"incstack heap --resolve and incstack cpu --resolve do so at the end of a recording.\n"
	"\n"
	"  -o, --output OUTPUT   write another file, and leave TRACE-FILE as it is\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0 success, 1 a file could not be read or written, 2 wrong usage.\n";

struct resolving {
	const char *file;
	const char *output; /* null: the file itself */
};

static int write_names(const struct resolving *resolving, const struct tool_resolved *names)
{
	if (resolving->output != NULL)
		return tool_trace_name_copy(resolving->file, names, resolving->output);
	if (tool_trace_pack(resolving->file, names))
		return TOOL_DONE;
	fprintf(stderr,
		"incstack: %s cannot be replaced: a process writes it, or it belongs to another "
		"user; give another file with -o\n",
		tool_name(resolving->file));
	return TOOL_FAILED;
}

static int resolve(void *context)
{
	const struct resolving *resolving = context;
	struct tool_resolved names = {0};
	int status = tool_trace_resolve(resolving->file, &names);

	if (status == 0)
		status = write_names(resolving, &names);
	free(names.block);
	return status;
}

static int run(struct resolving *resolving)
{
	const struct tool_files files = {
		.inputs = &resolving->file,
		.input_count = 1,
		.outputs = &resolving->output,
		.output_count = resolving->output != NULL,
		.completes = resolving->output == NULL,
	};

	return tool_files_run(&files, resolve, resolving);
}

int tool_resolve_file(int argc, char **argv)
{
	static const struct option names[] = {{"output", required_argument, NULL, 'o'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	struct resolving resolving = {0};
	int option;

	while ((option = tool_option_next(argc, argv, ":o:h", names)) != -1) {
		if (option == 'o') {
			resolving.output = optarg;
		} else if (option == 'h') {
			fputs(help, stdout);
			return TOOL_DONE;
		} else {
			fprintf(stderr, "incstack: see incstack resolve --help\n");
			return TOOL_USAGE;
		}
	}
	resolving.file = argv[optind];
	if (argc - optind == 1)
		return run(&resolving);
	fprintf(stderr, "incstack: no trace file given, or several; see incstack resolve --help\n");
	return TOOL_USAGE;
}
