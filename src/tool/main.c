/* SPDX-License-Identifier: MIT
 *
 * The command line of incstack: picks the subcommand.
 */
#include <stdio.h>
#include <string.h>

#include <incstack/version.h>

#include "tool/record/record.h"
#include "tool/profile/profile.h"
#include "profile_io.h"
#include "tool/report/report.h"

static const char help[] =
	"usage: incstack COMMAND [OPTIONS]\n"
	"\n"
	"  cpu [OPTIONS] -- PROGRAM [ARGS]    profile where PROGRAM spends CPU time\n"
	"  heap [OPTIONS] -- PROGRAM [ARGS]   profile what PROGRAM allocates\n"
	"  report FILE [OPTIONS]              print the hot spots of a profile or trace file\n"
	"  convert INPUT OUTPUT               write a profile in another format\n"
	"  compare A B [C...]                 compute how similar profiles are\n"
	"  merge -o OUTPUT INPUT...           add up profiles\n"
	"  help [COMMAND]                     list the options of COMMAND, or this\n"
	"  --version, -V, --help, -h\n"
	"\n"
	"incstack COMMAND --help lists the options of COMMAND.\n"
	"Exit status: 0 success, 1 failure, 2 wrong usage.\n";

/* Whether the arguments concern a profile and not a trace file: they name a format, or a file whose
 * name indicates its format, or ask for help. */
static int is_profile(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (incstack_profile_format_of(argv[i]) || strcmp(argv[i], "-") == 0 ||
		    strncmp(argv[i], "--format", 8) == 0 || strncmp(argv[i], "-f", 2) == 0 ||
		    strncmp(argv[i], "-h", 2) == 0 || strcmp(argv[i], "--help") == 0)
			return 1;
	return argc < 2;
}

struct trace_report {
	const char *file, *prefix;
	int by_thread;
};

static int report_trace(void *context)
{
	const struct trace_report *report = context;

	return tool_report_make(report->file, report->prefix, report->by_thread, stdout,
				tool_columns(stdout), NULL);
}

int tool_report(int argc, char **argv)
{
	struct tool_options options;
	struct trace_report report;
	int status;

	if (is_profile(argc, argv))
		return tool_profile_report(argc, argv);
	status = tool_options_read(argc, argv, &options);
	if (status)
		return status;
	if (argc - optind != 1) {
		fprintf(stderr, "incstack: no trace file given: incstack report FILE\n");
		return TOOL_USAGE;
	}
	report.file = argv[optind];
	report.prefix = options.output ? options.output : argv[optind];
	report.by_thread = options.threads;
	return tool_report_run(&report.file, 1, &report.prefix, false, report_trace, &report);
}

static int print_help(int argc, char **argv);

static int print_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("incstack %d.%d.%d\n", INCSTACK_VERSION_MAJOR, INCSTACK_VERSION_MINOR,
	       INCSTACK_VERSION_PATCH);
	return 0;
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"cpu", tool_cpu},         {"heap", tool_heap},
	{"report", tool_report},   {"convert", tool_convert},
	{"compare", tool_compare}, {"merge", tool_merge},
	{"help", print_help},      {"--help", print_help},
	{"-h", print_help},        {"--version", print_version},
	{"-V", print_version},
};

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static int refuse(const char *name)
{
	if (name)
		fprintf(stderr, "incstack: unknown command '%s'\n", name);
	fputs(help, stderr);
	return TOOL_USAGE;
}

static int print_help(int argc, char **argv)
{
	char option[] = "--help";
	char *of_command[] = {argc > 1 ? argv[1] : NULL, option, NULL};
	const struct command *command = argc > 1 ? find(argv[1]) : NULL;

	if (argc > 1 && !command)
		return refuse(argv[1]);
	if (command && command->run != print_help)
		return command->run(2, of_command);
	fputs(help, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	const struct command *command = argc > 1 ? find(argv[1]) : NULL;

	return command ? command->run(argc - 1, argv + 1) : refuse(argc > 1 ? argv[1] : NULL);
}
