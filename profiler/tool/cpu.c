/* SPDX-License-Identifier: MIT
 *
 * incstack cpu: its options.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/attach/broker/attach.h"
#include "option.h"
#include "tool/names.h"
#include "tracefile/format.h"
#include "tool/record/record.h"

static const char help[] =
	"usage: incstack cpu [OPTIONS] [--] PROGRAM [ARGS]\n"
	"       incstack cpu [-o FILE] [-i TIME] [--wall] [-t] [--folded] [--resolve] [-d SECONDS] "
	"-p PID\n"
	"\n"
	"Runs PROGRAM and takes a stack trace of each of its threads whenever the thread has\n"
	"used CPU time for an interval. When PROGRAM has ended, prints the hottest functions\n"
	"and calling contexts on stderr, and writes FILE.html (a flame graph for a browser).\n"
	"\n"
	"  -o, --output FILE     the trace file (default: incstack.PID.cpu)\n"
	"  -i, --interval TIME   CPU time between two samples of a thread, for example 1ms\n"
	"                        (default), 500us; at least 100us. The report says which\n"
	"                        interval was reached\n"
	"  --ticks SOURCE        events: the kernel's events, which keep the interval and\n"
	"                        interrupt no system call; needs Linux 6.1 and\n"
	"                        kernel.perf_event_paranoid=2 or less, or root\n"
	"                        timers: tick as often as the kernel's clock, usually every\n"
	"                        4ms; the times are still right\n"
	"                        (default)\n"
	"                        any: events where the kernel permits them and PROGRAM\n"
	"                        does not use SIGTRAP, otherwise timers\n"
	"  --wall[=WAY]          also sample the time in which a thread waits: for a lock, I/O, a\n"
	"                        timer, a page or a processor. Waiting threads cost nothing, and\n"
	"                        no system call is interrupted. WAY is\n"
	"                        kernel: the kernel reports each wait. Needs root or sysctl\n"
	"                        kernel.perf_event_paranoid=1; no child processes\n"
	"                        calls: the calls of libc's functions that wait are measured,\n"
	"                        but no others. Needs no rights\n"
	"                        (default: kernel if it is permitted, else calls)\n"
	"  --mode MODE           patch (default): intercepts returns, fastest\n"
	"                        validate: writes nothing to the program's stacks\n"
	"                        full: walks the whole stack each time, for comparison\n"
	"  --crosscheck[=WALKER] compare each trace with a full walk; WALKER is\n"
	"                        libunwind (default) or own: the recorder's own walk; every\n"
	"                        997th trace of a thread is compared with libunwind instead\n"
	"  -t, --threads         begin each calling context with the name of its thread\n"
	"      --folded          also write FILE.folded: one line per context, for other tools\n"
	"      --resolve         write names, lines and inlined functions into FILE, so that\n"
	"                        reports can be made on a machine without the program's files\n"
	"      --skip FUNCTION   look through FUNCTION: its callers get its own time; * stands\n"
	"                        for any text; may be repeated\n"
	"      --focus FUNCTION  report only contexts in which FUNCTION is; may be repeated\n"
	"  --follow-children     also record child processes, each in FILE.PID.N\n"
	"  -p, --pid PID         sample the process PID, which runs already, until Ctrl-C or its\n"
	"                        end. Nothing is loaded into it and it is never stopped,\n"
	"                        because the kernel takes the samples (perf_event_open). PID\n"
	"                        must run x86-64 code and, unless you are root, belong to you\n"
	"  -d, --duration SECS   with -p: end after that time, for example 10 or 0.5\n"
	"  -h, --help            this text\n"
	"\n"
	"Code without unwind rules, such as JavaScript of node --interpreted-frames-native-stack\n"
	"and Go, is followed by its frame pointers; the report marks these frames (fp). A static\n"
	"PROGRAM is sampled by the kernel, as with -p.\n"
	"\n"
	"Events use SIGTRAP; if PROGRAM begins to use it, timers take over. The timers use\n"
	"signal 33, which no program can use or block. So a program may use SIGPROF and timers\n"
	"of its own. A signal of a timer may make a system call of PROGRAM fail with EINTR.\n"
	"\n"
	"If the process executes other programs, FILE belongs to the last program; the files of\n"
	"the programs before it are FILE.PID.N. `incstack report FILE` repeats the reports.\n"
	"\n"
	"The last two lines on stderr are for scripts. They have the sums over all files:\n"
	"  incstack: expected=N taken=N queued=N failed=N merged=N reached_ns=N\n"
	"  incstack: traces=N crosschecked=N mismatches=N lost=N truncated=N returns=N\n"
	"            stale=N mode=M depth_mean=X popped_mean=X      (on one line)\n"
	"The exit status is PROGRAM's exit status; 128 + N if signal N ended PROGRAM; 126 or\n"
	"127 if it could not be run; 2 for wrong options. With -p it is 0; 126 if the process\n"
	"cannot be sampled, 127 if it does not exist.\n"
	"\n"
	"Example: incstack cpu -o /tmp/py -- python3 script.py\n";

enum { LEAST_NS = 100000 };

/* A time with its unit, in nanoseconds; 0: it is none. */
static unsigned long long time_of(const char *text)
{
	static const struct {
		const char *unit;
		unsigned long long ns;
	} units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	char *end = NULL;
	unsigned long long number;

	errno = 0;
	number = strtoull(text, &end, 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].unit) == 0 && errno == 0 && text[0] >= '0' &&
		    text[0] <= '9' && number <= 3600 * 1000000000ull / units[i].ns)
			return number * units[i].ns;
	return 0;
}

/* Takes the way in which waits are measured; null: what is permitted. Returns non-zero after a message. */
static int take_wall(struct tool_record_options *options, const char *way)
{
	options->is_wall = 1;
	options->by_calls = way != NULL && strcmp(way, "calls") == 0;
	options->by_kernel = way != NULL && strcmp(way, "kernel") == 0;
	if (way == NULL || options->by_calls || options->by_kernel)
		return 0;
	fprintf(stderr, "incstack: --wall takes kernel or calls, for example --wall=calls\n");
	return TOOL_STATUS_USAGE;
}

/* The kernel makes the ticks of -p and --wall. */
static int check_ticks(const struct tool_record_options *options)
{
	const char *ticks = options->ticks;

	if (ticks != NULL && (options->pid != NULL || options->is_wall)) {
		fprintf(stderr, "incstack: --ticks does not go with -p or --wall\n");
		return TOOL_STATUS_USAGE;
	}
	if (ticks == NULL || strcmp(ticks, "events") == 0 || strcmp(ticks, "timers") == 0 ||
	    strcmp(ticks, "any") == 0)
		return 0;
	fprintf(stderr, "incstack: --ticks takes events, timers or any, not '%s'\n",
		tool_name(ticks));
	fprintf(stderr, "incstack: see incstack cpu --help\n");
	return TOOL_STATUS_USAGE;
}

static int check_interval(const struct tool_record_options *options)
{
	if (options->interval >= LEAST_NS)
		return 0;
	fprintf(stderr, "incstack: --interval takes a time from 100us to 3600s, for example 1ms\n");
	return TOOL_STATUS_USAGE;
}

int tool_cpu(int argc, char **argv)
{
	static const struct option names[] = {TOOL_RECORD_LONG_OPTIONS,
					      {"interval", required_argument, NULL, 'i'},
					      {"ticks", required_argument, NULL, 'k'},
					      {"wall", optional_argument, NULL, 'w'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	struct tool_record_options options = {
		.command = "cpu", .kind = INCSTACK__TRACEFILE_OF_CPU, .interval = 1000000};
	int option;
	int status;

	while ((option = tool_option_next(argc, argv, "+:o:i:p:d:th", names)) != -1) {
		switch (option) {
		case 'i':
			options.interval = time_of(optarg);
			break;
		case 'k':
			options.ticks = optarg;
			break;
		case 'w':
			if (take_wall(&options, optarg) != 0)
				return TOOL_STATUS_USAGE;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			if (tool_record_take_option(&options, option, optarg))
				break;
			fprintf(stderr, "incstack: see incstack cpu --help\n");
			return TOOL_STATUS_USAGE;
		}
	}
	options.program = argv + optind;
	status = check_ticks(&options);
	if (status == 0)
		status = check_interval(&options);
	return status != 0 ? status : tool_attach_or_record(&options);
}
