/* SPDX-License-Identifier: MIT
 *
 * What the tests of the jail share: a broker's requests, and a worker whose messages are read.
 */
#ifndef JAIL_RUN_H
#define JAIL_RUN_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/jail/jail.h"
#include "run_suite.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wreturn-type" /* of work that never ends */

enum { DATA = 1, REFUSE, FILE_OF, HELD };

static const char content[] = "content";

/* ---- the broker's side -------------------------------------------------------------------- */

static int serve_data(void *context, const struct tool_jail_request *request,
		      struct tool_jail_served *served)
{
	memcpy(served->bytes, request->text, request->length);
	served->answer.length = request->length;
	served->answer.numbers[0] = request->numbers[0] + 1;
	return 0;
}

static int serve_refusal(void *context, const struct tool_jail_request *request,
			 struct tool_jail_served *served)
{
	served->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return EPERM;
}

static int serve_file(void *context, const struct tool_jail_request *request,
		      struct tool_jail_served *served)
{
	served->fd = memfd_create("test", MFD_CLOEXEC);
	ck_assert_int_eq(pwrite(served->fd, content, sizeof(content), 0), sizeof(content));
	return 0;
}

static int serve_kill(void *context, const struct tool_jail_request *request,
		      struct tool_jail_served *served)
{
	raise((int)request->numbers[0]);
	return 0;
}

static const struct tool_jail_row rows[] = {
	{DATA, serve_data}, {REFUSE, serve_refusal}, {FILE_OF, serve_file}, {HELD, serve_kill}};

static struct tool_jail jail = {
	.what = "the reader of a test", .rows = rows, .row_count = sizeof(rows) / sizeof(rows[0])};

static char said[4096];

/* Runs the work in a jail; what is printed on stderr comes to `said`. */
static int run(int (*work)(const struct tool_jail *, void *))
{
	char name[] = "/tmp/incstack-jail-XXXXXX";
	const int file = mkstemp(name);
	const int before = dup(STDERR_FILENO);
	ssize_t got;
	int status;

	ck_assert_int_ge(file, 0);
	unlink(name);
	dup2(file, STDERR_FILENO);
	status = tool_jail_run(&jail, work, NULL);
	dup2(before, STDERR_FILENO);
	got = pread(file, said, sizeof(said) - 1, 0);
	said[got > 0 ? got : 0] = 0;
	close(before);
	close(file);
	return status;
}

#define ck_assert_said(text) ck_assert_msg(strstr(said, text) != NULL, "said: %s", said)

#endif
