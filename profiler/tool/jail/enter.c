/* SPDX-License-Identifier: MIT
 *
 * A worker enters its jail.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "jail.h"

/* The sanitizers and the counters of the coverage make system calls of their own, on files that they
 * open by themselves. So their builds do not confine the worker. */
#ifndef INCSTACK_JAIL_OPEN
#define INCSTACK_JAIL_OPEN 0
#endif

static bool is_kept(const struct tool_jail *jail, int fd)
{
	if (fd == STDOUT_FILENO || fd == STDERR_FILENO || fd == jail->channel)
		return true;
	for (size_t i = 0; i < jail->limits.keep_count; i++)
		if (jail->limits.keep[i] == fd)
			return true;
	return false;
}

static int last_kept(const struct tool_jail *jail)
{
	int last = jail->channel > STDERR_FILENO ? jail->channel : STDERR_FILENO;

	for (size_t i = 0; i < jail->limits.keep_count; i++)
		if (jail->limits.keep[i] > last)
			last = jail->limits.keep[i];
	return last;
}

static void close_others(const struct tool_jail *jail)
{
	const int last = last_kept(jail);

	for (int fd = 0; fd <= last; fd++)
		if (!is_kept(jail, fd))
			close(fd);
	/* Old kernels do not know the call. */
	if (syscall(SYS_close_range, last + 1, ~0u, 0) != 0)
		for (int fd = last + 1; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
			close(fd);
}

/* Standard input stays a descriptor, so that no file gets its number. */
static void close_descriptors(const struct tool_jail *jail)
{
	if (jail->limits.keeps_all)
		return;
	close_others(jail);
	if (!is_kept(jail, STDIN_FILENO) && open("/dev/null", O_RDONLY) > STDERR_FILENO)
		abort(); /* the lowest number is free */
}

static void lower(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
		return;
	if (limit.rlim_max > hard)
		limit.rlim_max = hard;
	if (limit.rlim_cur > soft)
		limit.rlim_cur = soft;
	setrlimit((__rlimit_resource_t)resource, &limit);
}

static void set_limits(const struct tool_jail_limits *limits)
{
	if (limits->memory > 0)
		lower(RLIMIT_DATA, limits->memory, limits->memory);
	if (limits->seconds > 0)
		lower(RLIMIT_CPU, limits->seconds, limits->seconds + 5);
	lower(RLIMIT_CORE, 0, 0);
	lower(RLIMIT_NPROC, 0, 0);
}

static _Noreturn void refuse(const struct tool_jail *jail, int error)
{
	fprintf(stderr,
		"incstack: %s cannot give up its rights: %s; run incstack as an ordinary user, or "
		"where the kernel permits seccomp filters\n",
		jail->what, strerror(error));
	_exit(TOOL_JAIL_FAILED);
}

/* Without a filter, a worker of root must at least be another user. */
static void confine(const struct tool_jail *jail)
{
	const bool is_root = geteuid() == 0;
	bool is_other_user;
	int error = tool_jail_rights(&is_other_user);

	if (error != 0)
		refuse(jail, error);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a change of the user removes it */
	set_limits(&jail->limits);
	error = tool_jail_filter(&jail->limits);
	if (error != 0 && !is_other_user)
		refuse(jail, error);
	if (error != 0 && is_root)
		fprintf(stderr,
			"incstack: note: %s runs without a filter of its system calls: %s\n",
			jail->what, strerror(error));
}

void tool_jail_enter(const struct tool_jail *jail)
{
	tzset();                  /* reads a file */
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit then fails, and a line says so */
	close_descriptors(jail);
	if (!INCSTACK_JAIL_OPEN)
		confine(jail);
}
