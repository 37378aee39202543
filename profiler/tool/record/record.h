/* SPDX-License-Identifier: MIT
 *
 * The subcommands of incstack, each of which gets the arguments after its name and
 * returns an exit status; and what the files share that record a program.
 */
#ifndef INCSTACK_TOOL_RECORD_H
#define INCSTACK_TOOL_RECORD_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tool/filter.h"

#define TOOL_STATUS_USAGE 2
#define TOOL_STATUS_CANNOT_RUN 126
#define TOOL_STATUS_NOT_FOUND 127

struct tool_record_options {
	const char *command;         /* the name of the subcommand */
	unsigned kind;               /* enum incstack__tracefile_kind */
	const char *output;          /* the name of the trace file; null: the default */
	char *file;                  /* the trace file, absolute */
	unsigned long long interval; /* mean bytes, or nanoseconds, between samples */
	const char *ticks;           /* of incstack cpu: what makes them; null: the default */
	const char *mode;            /* null: "patch" */
	const char *crosscheck;      /* the walker that each trace is compared with; null: "no" */
	int follow;
	bool is_resident;          /* whether the pages are looked at when the recording ends */
	int is_wall;               /* whether the time in which a thread waits is sampled, too */
	bool by_calls;             /* whether the recorder does that, around the calls that wait */
	bool by_kernel;            /* or the kernel; none of both: what is permitted */
	int by_thread;             /* whether contexts begin with the name of their thread */
	bool folded;               /* whether FILE.folded is written */
	struct tool_filter filter; /* what the report looks through, and leaves out */
	bool resolves;             /* whether the names are written into the trace file */
	const char *pid;           /* of a process that runs already; null: a program is run */
	const char *duration;      /* of the recording of that; null: until it ends */
	char **program;            /* and its arguments */
};

/* The rows of a table for getopt_long that all commands have; and those that only a heap has. */
/* clang-format off */
#define TOOL_RECORD_LONG_OPTIONS \
	{"output", required_argument, NULL, 'o'}, \
	{"mode", required_argument, NULL, 'm'}, \
	{"crosscheck", optional_argument, NULL, 'c'}, \
	{"follow-children", no_argument, NULL, 'f'}, \
	{"pid", required_argument, NULL, 'p'}, \
	{"duration", required_argument, NULL, 'd'}, \
	{"folded", no_argument, NULL, 'L'}, \
	{"resolve", no_argument, NULL, 'R'}, \
	{"skip", required_argument, NULL, 'K'}, \
	{"focus", required_argument, NULL, 'O'}, \
	{"threads", no_argument, NULL, 't'}
#define TOOL_RECORD_HEAP_OPTIONS \
	{"allocators", no_argument, NULL, 'A'}, \
	{"suppressions", required_argument, NULL, 'E'}
/* clang-format on */

/* Returns the time of a clock in nanoseconds, as the recorder knows it: by the kernel's function, because
 * a library may have replaced libc's. */
static inline uint64_t tool_record_now(clockid_t clock)
{
	struct timespec time;

	syscall(SYS_clock_gettime, clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int tool_cpu(int argc, char **argv);
int tool_heap(int argc, char **argv);
int tool_resolve_file(int argc, char **argv);

/* Notes an option of TOOL_RECORD_LONG_OPTIONS or TOOL_RECORD_HEAP_OPTIONS. Returns whether it is one of them. */
int tool_record_take_option(struct tool_record_options *options, int option, const char *argument);

/* Checks the options, runs the program and reports. Returns an exit status. */
int tool_record(struct tool_record_options *options);

/* Names and reserves the trace file and removes an older one. Returns 0, or an exit status after a
 * message. */
int tool_record_prepare(struct tool_record_options *options);

/* Whether the dynamic loader cannot load the recorder into the program, because it is static or has another C
 * library. */
bool tool_record_is_unloadable(const char *program);
/* Returns 0, or an exit status after a message that says why the program cannot be profiled. */
int tool_record_check_program(const char *program);
/* Reserves the file for this run until the tool ends. The path is absolute. Returns 0, or an exit
 * status after a message that names the process that writes it. */
int tool_record_lock(const char *file);
/* How the program ended. */
struct tool_record_end {
	int started; /* whether the program was executed */
	int status;  /* of wait(2) */
};
/* Runs the program under the recorder until it ends. Returns the exit status. */
int tool_record_run(const struct tool_record_options *options, struct tool_record_end *end);
/* Returns how many samples all threads have begun, from the shared counters in the file. *bytes becomes the size of the
 * file. */
uint64_t tool_record_samples(const char *file, uint64_t *bytes);
/* Becomes the program. If that fails, prints why and returns the exit status. */
int tool_record_exec(char **program);
/* Says why nothing was recorded. `end` is null for a process that the tool did not start. */
void tool_record_say_nothing(const char *file, const struct tool_record_end *end);
/* Prints how the program has ended: `status` is that of wait(2). Returns the exit status. */
int tool_record_say_end(int status, const struct rusage *used);
/* Writes into the trace file how the process ended: a status of wait(2). */
void tool_record_note_end(const char *file, uint64_t pid, int status);
/* Adds a note to the file, one of enum incstack__tracefile_note. */
void tool_record_note(int fd, uint64_t pid, unsigned note);
/* Reports on every process that has recorded into the file and the files named after
 * it since start_ns (CLOCK_REALTIME). Returns an exit status. */
int tool_record_report(const struct tool_record_options *options, uint64_t start_ns,
		       const struct tool_record_end *end);

#endif
