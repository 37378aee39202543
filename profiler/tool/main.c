/* SPDX-License-Identifier: MIT
 *
 * The command line of incstack: picks the subcommand.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <incstack/version.h>

#include "tool/record/record.h"
#include "tool/profile/profile.h"
#include "tool/snapshot/snapshot.h"
#include "names.h"
#include "printed.h"
#include "profile_io.h"

static const char help[] =
	"usage: incstack COMMAND [OPTIONS]\n"
	"\n"
	"  cpu [OPTIONS] -- PROGRAM [ARGS]    profile where PROGRAM spends CPU time\n"
	"  heap [OPTIONS] -- PROGRAM [ARGS]   profile what PROGRAM allocates\n"
	"  snapshot PID [NAME]                copy what a recorded process has recorded so far\n"
	"  report FILE [OPTIONS]              print the hot spots of a profile or trace file\n"
	"  convert INPUT OUTPUT               write a profile in another format\n"
	"  compare BEFORE AFTER               print what grew and what shrank\n"
	"  merge -o OUTPUT INPUT...           add up profiles\n"
	"  resolve TRACE-FILE                 write the names of functions into a trace file\n"
	"  help [COMMAND]                     list the options of COMMAND, or this\n"
	"  --version, -V, --help, -h\n"
	"\n"
	"incstack COMMAND --help lists the options of COMMAND.\n"
	"Exit status: 0 success, 1 failure, 2 wrong usage.\n";

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
	{"cpu", tool_cpu},       {"heap", tool_heap},       {"snapshot", tool_snapshot},
	{"report", tool_report}, {"convert", tool_convert}, {"compare", tool_compare},
	{"merge", tool_merge},   {"help", print_help},      {"resolve", tool_resolve_file},
	{"--help", print_help},  {"-h", print_help},        {"--version", print_version},
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
		fprintf(stderr, "incstack: unknown command '%s'; see incstack --help\n",
			tool_name(name));
	else
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

/* A daemon may start the tool without them. Then no other file must get their numbers: the tool would print
 * into it. Programs that the tool starts do not get them either. */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null",
				   (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	const struct command *command = argc > 1 ? find(argv[1]) : NULL;

	occupy_standard_descriptors();
	if (!command)
		return refuse(argc > 1 ? argv[1] : NULL);
	return tool_printed(command->run(argc - 1, argv + 1));
}
