/* SPDX-License-Identifier: MIT
 *
 * The broker: forks the worker, serves it, passes signals on to it, and says how it ended.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/ending.h"
#include "tool/printed.h"
#include "channel.h"

/* ---- begin ---------------------------------------------------------------------------------- */

static void begin_worker(struct tool_jail *jail, pid_t broker, const int ends[2])
{
	close(ends[0]);
	jail->worker = 0;
	jail->channel = ends[1];
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != broker)
		_exit(TOOL_JAIL_FAILED);
}

pid_t tool_jail_fork(struct tool_jail *jail)
{
	const pid_t broker = getpid();
	int ends[2];

	fflush(NULL); /* what is not written yet would be written twice */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		fprintf(stderr, "incstack: cannot start %s: %s\n", jail->what, strerror(errno));
		return -1;
	}
	jail->worker = fork();
	if (jail->worker == 0) {
		begin_worker(jail, broker, ends);
		return 0;
	}
	close(ends[1]);
	jail->channel = ends[0];
	if (jail->worker < 0) {
		fprintf(stderr, "incstack: cannot start %s: %s\n", jail->what, strerror(errno));
		close(ends[0]);
	}
	return jail->worker;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* While the worker runs, the broker takes signals from a descriptor. SIGCHLD may have been ignored, and
 * then there would be no exit status. */
struct signals {
	int fd;
	unsigned taken;
	int last;
	sigset_t before;
	struct sigaction child_before;
};

static int take_signals(struct signals *signals)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigaction(SIGCHLD, &usual, &signals->child_before);
	sigprocmask(SIG_BLOCK, &set, &signals->before);
	signals->taken = 0;
	signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return signals->fd;
}

static void give_signals_back(struct signals *signals)
{
	if (signals->fd >= 0)
		close(signals->fd);
	sigaction(SIGCHLD, &signals->child_before, NULL);
	sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

static unsigned patience_of(const struct tool_jail *jail)
{
	return jail->patience > 0 ? jail->patience : 1;
}

/* The terminal sends its signals to the worker, too. A worker that does not end by the first signals
 * would perhaps never end. */
static void pass_on(const struct tool_jail *jail, struct signals *signals)
{
	struct signalfd_siginfo info;

	while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		signals->last = (int)info.ssi_signo;
		if (++signals->taken > patience_of(jail))
			kill(jail->worker, SIGKILL);
		else if (info.ssi_code != SI_KERNEL)
			kill(jail->worker, signals->last);
	}
}

/* ---- serve ----------------------------------------------------------------------------------- */

/* Returns false when the worker cannot be served any more. */
static bool serve_one(const struct tool_jail *jail)
{
	static struct tool_jail_request request;
	static struct tool_jail_served served;
	bool is_whole;
	const ssize_t got = tool_jail_receive(jail->channel, &request, &is_whole);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0)
		return false;
	tool_jail_dispatch(jail, &request, is_whole ? (size_t)got : 0, &served);
	if (tool_jail_answer(jail->channel, &served) == 0)
		return true;
	kill(jail->worker, SIGKILL);
	return false;
}

static int wait_for(const struct tool_jail *jail, struct signals *signals, struct rusage *used)
{
	struct pollfd fds[] = {{signals->fd, POLLIN, 0}, {jail->channel, POLLIN, 0}};
	int status = 0;
	pid_t ended;

	while ((ended = wait4(jail->worker, &status, WNOHANG, used)) == 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		pass_on(jail, signals);
		if (fds[1].revents != 0 && !serve_one(jail))
			fds[1].fd = -1;
	}
	if (ended == 0)
		ended = wait4(jail->worker, &status, 0, used);
	return ended == jail->worker ? status : TOOL_JAIL_FAILED << 8;
}

/* ---- end ------------------------------------------------------------------------------------- */

static bool is_ending(int number)
{
	for (size_t i = 0; i < TOOL_ENDINGS; i++)
		if (tool_ending[i] == number)
			return true;
	return false;
}

static void say_signal(const struct tool_jail *jail, int number)
{
	if (number == SIGSYS)
		fprintf(stderr,
			"incstack: %s was ended by signal %d (%s), because it made a system call "
			"that a reader does not need\n",
			jail->what, number, strsignal(number));
	else if (number == SIGXCPU)
		fprintf(stderr,
			"incstack: %s was ended, because it took more than %llu seconds of "
			"processor time\n",
			jail->what, (unsigned long long)jail->limits.seconds);
	else
		fprintf(stderr, "incstack: %s was ended by signal %d (%s)\n", jail->what, number,
			strsignal(number));
}

/* Whether a worker failed for want of memory is not known for sure, but if it used most of what it
 * could, it did. */
static void say_memory(const struct tool_jail *jail, const struct rusage *used)
{
	const uint64_t most = jail->limits.memory;

	if (most > 0 && (uint64_t)used->ru_maxrss * 1024 > most - most / 4)
		fprintf(stderr, "incstack: %s may use %llu MiB of memory, and needed more\n",
			jail->what, (unsigned long long)(most >> 20));
}

int tool_jail_serve(struct tool_jail *jail, int *signal)
{
	struct signals signals;
	struct rusage used = {0};
	int status;

	if (take_signals(&signals) < 0) {
		fprintf(stderr, "incstack: cannot start %s: %s\n", jail->what, strerror(errno));
		kill(jail->worker, SIGKILL);
	}
	status = wait_for(jail, &signals, &used);
	close(jail->channel);
	give_signals_back(&signals);
	*signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (*signal == SIGKILL && signals.taken > patience_of(jail))
		*signal = signals.last;
	if (*signal != 0 && !is_ending(*signal))
		say_signal(jail, *signal);
	if (status != 0)
		say_memory(jail, &used);
	return *signal == 0 ? WEXITSTATUS(status) : TOOL_JAIL_FAILED;
}

int tool_jail_run(struct tool_jail *jail, int (*work)(const struct tool_jail *jail, void *context),
		  void *context)
{
	int signal;
	int status = TOOL_JAIL_FAILED;

	if (tool_jail_fork(jail) < 0)
		return status;
	if (jail->worker == 0) {
		tool_jail_enter(jail);
		status = tool_printed(work(jail, context));
		exit(status);
	}
	status = tool_jail_serve(jail, &signal);
	if (is_ending(signal))
		raise(signal);
	return status;
}
