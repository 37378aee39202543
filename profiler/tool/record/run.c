/* SPDX-License-Identifier: MIT
 *
 * Runs a program with the recorder preloaded, and shows its progress.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tracefile/format.h"
#include "tool/foreign.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "record.h"

#define PRELOAD "libincstack_preload.so"
#define PRELOAD_OF_WAITS "libincstack_preload_waits.so" /* which also has the functions that wait */
#define PROGRESS_SECONDS 2

/* Finds the library to preload: in the tool's own directory, or where it is installed relative to
 * that. */
static int search_preload(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = {"", "/" INCSTACK_PRELOAD_FROM_BIN};
	char self[PATH_MAX - 64];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (length > 0) {
		self[length] = 0;
		slash = strrchr(self, '/');
		if (slash != NULL)
			*slash = 0;
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			snprintf(path, PATH_MAX, "%s%s/%s", self, places[i], name);
			if (access(path, R_OK) == 0)
				return 0;
		}
	}
	fprintf(stderr,
		"incstack: cannot find %s, neither in the directory of incstack nor "
		"relative to it in " INCSTACK_PRELOAD_FROM_BIN "; install it there\n",
		name);
	return TOOL_STATUS_CANNOT_RUN;
}

/* Finds it, and refuses a path that LD_PRELOAD cannot have: the loader would split it, or put another
 * folder in place of $ORIGIN, and look there. */
static int find_preload(const struct tool_record_options *options, char path[PATH_MAX])
{
	if (search_preload(options->by_calls ? PRELOAD_OF_WAITS : PRELOAD, path) != 0)
		return TOOL_STATUS_CANNOT_RUN;
	if (strpbrk(path, " :$") == NULL)
		return 0;
	fprintf(stderr,
		"incstack: cannot preload %s: LD_PRELOAD can name no path with a blank, a colon or "
		"a '$'; install incstack in another directory\n",
		tool_name(path));
	return TOOL_STATUS_CANNOT_RUN;
}

static void set_environment(const struct tool_record_options *options, const char *preload)
{
	const char *others = getenv("LD_PRELOAD");
	char *text = NULL;

	/* The file comes last: its name may contain anything. */
	if (asprintf(&text,
		     "kind=%u;interval=%llu;ticks=%s;mode=%s;crosscheck=%s;follow=%d;resident=%d;"
		     "wall=%d;"
		     "file=%s",
		     options->kind, options->interval,
		     options->ticks != NULL ? options->ticks : "timers", options->mode,
		     options->crosscheck, options->follow, options->is_resident, options->by_calls,
		     options->file) < 0)
		_exit(TOOL_STATUS_CANNOT_RUN);
	setenv("INCSTACK_HEAP", text, 1);
	if (asprintf(&text, "%s%s%s", preload, others != NULL && *others ? ":" : "",
		     others != NULL ? others : "") < 0)
		_exit(TOOL_STATUS_CANNOT_RUN);
	setenv("LD_PRELOAD", text, 1);
}

int tool_record_exec(char **program)
{
	int error;

	execvp(program[0], program);
	error = errno;
	fprintf(stderr, "incstack: cannot run %s: %s%s\n", tool_name(program[0]), strerror(error),
		error == ENOENT ? "; does its interpreter (#! line, or ELF loader) exist?" : "");
	return error == ENOENT ? TOOL_STATUS_NOT_FOUND : TOOL_STATUS_CANNOT_RUN;
}

/* The descriptor is closed without a word if the program is executed. */
_Noreturn static void run_child(const struct tool_record_options *options, const char *preload,
				int failed)
{
	int status;

	set_environment(options, preload);
	status = tool_record_exec(options->program);
	if (write(failed, "", 1) != 1) {
		/* The tool says then that the program ended early. */
	}
	_exit(status);
}

/* Waits until the program is executed. Returns whether it was. */
static int has_started(int failed)
{
	char byte;
	ssize_t got;

	do
		got = read(failed, &byte, 1);
	while (got < 0 && errno == EINTR);
	return got <= 0;
}

uint64_t tool_record_samples(const char *file, uint64_t *bytes)
{
	static struct incstack__tracefile_slot slots[INCSTACK__TRACEFILE_SLOTS];
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK};
	const char *why;
	struct stat status;
	const int fd = tool_foreign_open(file, &terms, &status, &why);
	uint64_t sum = 0;

	*bytes = 0;
	if (fd < 0)
		return 0;
	*bytes = (uint64_t)status.st_size;
	if (pread(fd, slots, sizeof(slots), INCSTACK__TRACEFILE_HEADER_BYTES) == sizeof(slots))
		for (unsigned i = 0; i < INCSTACK__TRACEFILE_SLOTS; i++)
			sum += slots[i].samples_started;
	close(fd);
	return sum;
}

static void show_progress(const struct tool_record_options *options, unsigned seconds)
{
	uint64_t bytes;
	const uint64_t samples = tool_record_samples(options->file, &bytes);
	const bool is_sampled =
		options->kind == INCSTACK__TRACEFILE_OF_CPU || options->interval > 1;
	char size[32];

	fprintf(stderr, "\rincstack: %u s, %" PRIu64 " %s, the file has %s \033[K", seconds,
		samples, is_sampled ? "samples" : "allocations",
		tool_amount(bytes, "bytes", size, sizeof(size)));
}

/* Waits for a signal: the end of a child, or a signal that is passed on to the program. Shows the
 * progress from time to time. */
static void wait_a_while(const struct tool_record_options *options, pid_t child,
			 const sigset_t *awaited, unsigned *seconds)
{
	const struct timespec pause = {.tv_sec = PROGRESS_SECONDS};
	const int number = sigtimedwait(awaited, NULL, &pause);

	if (number > 0 && number != SIGCHLD)
		kill(child, number);
	if (number > 0 || errno != EAGAIN)
		return;
	*seconds += PROGRESS_SECONDS;
	if (isatty(STDERR_FILENO))
		show_progress(options, *seconds);
}

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

int tool_record_say_end(int status, const struct rusage *used)
{
	fprintf(stderr, "incstack: the program took %.3f s of CPU time, recording included\n",
		seconds_of(&used->ru_utime) + seconds_of(&used->ru_stime));
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "incstack: the program was ended by signal %d (%s)\n", WTERMSIG(status),
		strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

static int wait_for(const struct tool_record_options *options, pid_t child, const sigset_t *awaited,
		    int *ended_by)
{
	unsigned seconds = 0;
	struct rusage used;
	int status;
	pid_t ended;

	while ((ended = wait4(child, &status, WNOHANG, &used)) != child) {
		if (ended < 0 && errno != EINTR)
			return TOOL_STATUS_CANNOT_RUN;
		wait_a_while(options, child, awaited, &seconds);
	}
	*ended_by = status;
	tool_record_note_end(options->file, (uint64_t)child, status);
	if (seconds > 0 && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return tool_record_say_end(status, &used);
}

/* Signals that came while the program ran were meant for the program. From here on they are for
 * the tool, so that the user can end the report. */
static void take_signals_back(const sigset_t *awaited, const sigset_t *old_mask,
			      const struct sigaction *old_int, const struct sigaction *old_quit)
{
	const struct timespec now = {0};

	while (sigtimedwait(awaited, NULL, &now) > 0 || errno == EINTR) {
	}
	sigaction(SIGINT, old_int, NULL);
	sigaction(SIGQUIT, old_quit, NULL);
	sigprocmask(SIG_SETMASK, old_mask, NULL);
}

/* Runs the program. Ctrl-C and other signals that would end the tool are passed on to the program;
 * the tool stays to report. */
int tool_record_run(const struct tool_record_options *options, struct tool_record_end *end)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction old_int;
	struct sigaction old_quit;
	char preload[PATH_MAX];
	sigset_t awaited;
	sigset_t old_mask;
	int failed[2];
	pid_t child;
	int status = TOOL_STATUS_CANNOT_RUN;

	if (find_preload(options, preload) != 0)
		return TOOL_STATUS_CANNOT_RUN;
	if (pipe2(failed, O_CLOEXEC) != 0) {
		fprintf(stderr, "incstack: cannot start a process: %s\n", strerror(errno));
		return TOOL_STATUS_CANNOT_RUN;
	}
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGCHLD);
	sigaddset(&awaited, SIGTERM);
	sigaddset(&awaited, SIGHUP);
	sigprocmask(SIG_BLOCK, &awaited, &old_mask);
	sigaction(SIGINT, &ignore, &old_int);
	sigaction(SIGQUIT, &ignore, &old_quit);
	child = fork();
	if (child == 0) {
		sigaction(SIGINT, &old_int, NULL);
		sigaction(SIGQUIT, &old_quit, NULL);
		sigprocmask(SIG_SETMASK, &old_mask, NULL);
		run_child(options, preload, failed[1]);
	}
	close(failed[1]);
	if (child > 0) {
		end->started = has_started(failed[0]);
		status = wait_for(options, child, &awaited, &end->status);
	} else {
		fprintf(stderr, "incstack: cannot start a process: %s\n", strerror(errno));
	}
	close(failed[0]);
	take_signals_back(&awaited, &old_mask, &old_int, &old_quit);
	return status;
}
