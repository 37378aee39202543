/* SPDX-License-Identifier: MIT
 *
 * incstack heap: reads its options.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/attach/broker/attach.h"
#include "tracefile/format.h"
#include "names.h"
#include "option.h"

static const char help[] =
	"usage: incstack heap [OPTIONS] [--] PROGRAM [ARGS]\n"
	"       incstack heap [-o FILE] [-t] [--folded] [--resolve] [-d SECONDS] -p PID\n"
	"\n"
	"Runs PROGRAM and records where it allocates and frees memory: a stack trace at\n"
	"every malloc, calloc, realloc, aligned_alloc, operator new, on every thread.\n"
	"When PROGRAM has ended, prints the hottest calling contexts on stderr, and writes\n"
	"FILE.html (a flame graph for a browser).\n"
	"\n"
	"  -o, --output FILE     the trace file (default: incstack.PID.heap)\n"
	"  --interval BYTES      take one sample per BYTES allocated on average, so that totals\n"
	"                        are estimates; suffixes k and M are allowed (default: 1,\n"
	"                        every allocation)\n"
	"  --mode MODE           patch (default): intercepts returns, fastest\n"
	"                        validate: writes nothing to the program's stacks\n"
	"                        full: walks the whole stack each time, for comparison\n"
	"  --crosscheck[=WALKER] compare each trace with a full walk; WALKER is\n"
	"                        libunwind (default): very slow\n"
	"                        own: the recorder's own walk; every 997th trace of a thread\n"
	"                        is compared with libunwind instead\n"
	"  --resident            when the recording ends, look which memory is resident: the "
	"report\n"
	"                        then tells it for each context, and what the allocator keeps\n"
	"  -t, --threads         begin each calling context with the name of its thread\n"
	"      --folded          also write FILE.folded: one line per context, for other tools\n"
	"      --resolve         write names, lines and inlined functions into FILE, so that\n"
	"                        reports can be made on a machine without the program's files\n"
	"      --skip FUNCTION   look through FUNCTION, too: its callers get its own weight; *\n"
	"                        stands for any text; may be repeated\n"
	"      --allocators      do not look through functions that hand out memory\n"
	"      --focus FUNCTION  report only contexts in which FUNCTION is; may be repeated\n"
	"      --suppressions FILE  take known leaks out of 'live at exit': lines leak:PATTERN,\n"
	"                        as for LeakSanitizer and heaptrack; may be repeated\n"
	"  --follow-children     also record child processes, each in FILE.PID.N\n"
	"  -p, --pid PID         record the process PID, which runs already, until Ctrl-C or its\n"
	"                        end: what it allocates during the recording. Nothing is\n"
	"                        loaded into it: the kernel puts breakpoints on malloc, free\n"
	"                        and so on, which needs root. The process is much slower during\n"
	"                        the recording, because each call costs microseconds\n"
	"  -d, --duration SECS   with -p: end after that time, for example 10 or 0.5\n"
	"  -h, --help            this text\n"
	"\n"
	"If the process executes other programs, FILE belongs to the last program; the files of\n"
	"the programs before it are FILE.PID.N. `incstack report FILE` repeats the reports.\n"
	"\n"
	"The last line on stderr is for scripts. It has the sums over all files:\n"
	"  incstack: traces=N crosschecked=N mismatches=N lost=N truncated=N returns=N\n"
	"            stale=N mode=M depth_mean=X popped_mean=X      (on one line)\n"
	"With -p a line before it counts what became of the calls that allocate:\n"
	"  incstack: expected=N taken=N queued=N failed=N merged=N\n"
	"The exit status is PROGRAM's exit status; 128 + N if signal N ended PROGRAM; 126 or\n"
	"127 if it could not be run; 2 for wrong options. With -p it is 0; 126 if the process\n"
	"cannot be recorded, 127 if it does not exist.\n"
	"\n"
	"Example: incstack heap -o /tmp/py -- python3 script.py\n";

/* Reads a number of bytes above 0, with an optional k or M. Returns 0 for anything else. */
static unsigned long long bytes_of(const char *text)
{
	char *end = NULL;
	unsigned long long bytes;
	int shift = 0;

	errno = 0;
	bytes = strtoull(text, &end, 10);
	if (*end == 'k' || *end == 'K')
		shift = 10;
	else if (*end == 'm' || *end == 'M')
		shift = 20;
	if (errno != 0 || text[0] < '0' || text[0] > '9' || end[shift != 0] != 0 ||
	    bytes > (uint64_t)INT64_MAX >> shift)
		return 0;
	return bytes << shift;
}

static int check_interval(const struct tool_record_options *options)
{
	if (options->interval != 0)
		return 0;
	fprintf(stderr, "incstack: --interval takes a number of bytes above 0, for example "
			"4096 or 64k\n");
	return TOOL_STATUS_USAGE;
}

/* A file with a wrong name is to be known before the program runs. */
static int check_suppressions(const struct tool_record_options *options)
{
	const struct tool_texts *files = &options->filter.files;

	for (size_t i = 0; i < files->count; i++)
		if (access(files->at[i], R_OK) != 0) {
			fprintf(stderr, "incstack: cannot read %s: %s\n", tool_name(files->at[i]),
				strerror(errno));
			return TOOL_STATUS_USAGE;
		}
	return 0;
}

int tool_heap(int argc, char **argv)
{
	static const struct option names[] = {TOOL_RECORD_LONG_OPTIONS,
					      TOOL_RECORD_HEAP_OPTIONS,
					      {"interval", required_argument, NULL, 'i'},
					      {"resident", no_argument, NULL, 'r'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	struct tool_record_options options = {
		.command = "heap", .kind = INCSTACK__TRACEFILE_OF_HEAP, .interval = 1};
	int option;
	int status;

	while ((option = tool_option_next(argc, argv, "+:o:p:d:th", names)) != -1) {
		switch (option) {
		case 'i':
			options.interval = bytes_of(optarg);
			break;
		case 'r':
			options.is_resident = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			if (tool_record_take_option(&options, option, optarg))
				break;
			fprintf(stderr, "incstack: see incstack heap --help\n");
			return TOOL_STATUS_USAGE;
		}
	}
	options.program = argv + optind;
	status = check_interval(&options);
	if (status == 0)
		status = check_suppressions(&options);
	return status != 0 ? status : tool_attach_or_record(&options);
}
