/* SPDX-License-Identifier: MIT
 *
 * Serves the worker of an attachment. The worker may be in the hands of the process. So each request is
 * about this process only, all numbers are checked, and nothing is done that the process could not do
 * itself, besides what its user has asked the tool for: to look at it, and to write one trace file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/names.h"
#include "serve.h"

typedef const struct tool_jail_request request_of;

/* ---- the process ------------------------------------------------------------------------------ */

static struct tool_attach_mapping mapping_of(request_of *request)
{
	return (struct tool_attach_mapping){
		.low = request->numbers[0],
		.high = request->numbers[1],
		.device = request->numbers[2],
		.inode = request->numbers[3],
		.is_code = true,
		.path = request->text,
	};
}

static int put_text(struct tool_jail_served *served, const char *text)
{
	const size_t length = strlen(text);

	if (length > sizeof(served->bytes))
		return ENAMETOOLONG;
	memcpy(served->bytes, text, length);
	served->answer.length = (uint32_t)length;
	return 0;
}

static int serve_file(void *context, request_of *request, struct tool_jail_served *served)
{
	const struct tool_attach_broker *broker = context;
	const struct tool_attach_mapping mapping = mapping_of(request);
	char *path;
	int error = 0;

	served->fd = tool_attach_source_open(&broker->target, &mapping, &path);
	if (served->fd < 0)
		return ENOENT;
	if (path)
		error = put_text(served, path);
	free(path);
	return error;
}

static int open_own(const struct tool_attach_broker *broker, const char *name)
{
	return openat(broker->target.directory, name, O_RDONLY | O_CLOEXEC);
}

static int serve_maps(void *context, request_of *request, struct tool_jail_served *served)
{
	(void)request;
	served->fd = open_own(context, "maps");
	return served->fd < 0 ? errno : 0;
}

static int serve_memory(void *context, request_of *request, struct tool_jail_served *served)
{
	(void)request;
	served->fd = open_own(context, "mem");
	return served->fd < 0 ? errno : 0;
}

/* Which pages are in memory, but not their content. */
static int serve_pages(void *context, request_of *request, struct tool_jail_served *served)
{
	static const char *const names[TOOL_ATTACH_PAGES] = {"pagemap", "smaps_rollup"};

	if (request->numbers[0] >= TOOL_ATTACH_PAGES)
		return EINVAL;
	served->fd = open_own(context, names[request->numbers[0]]);
	return served->fd < 0 ? errno : 0;
}

static int name_facts(request_of *request, char *name, size_t size)
{
	static const char *const names[TOOL_ATTACH_FACTS] = {"cmdline", "status",  "auxv",
							     "comm",    "syscall", "stat"};
	const uint64_t what = request->numbers[0];
	const uint64_t tid = request->numbers[1];

	if (what >= TOOL_ATTACH_FACTS || tid > INT_MAX)
		return EINVAL;
	if (what < TOOL_ATTACH_THREAD_NAME)
		snprintf(name, size, "%s", names[what]);
	else
		snprintf(name, size, "task/%d/%s", (int)tid, names[what]);
	return 0;
}

static int serve_facts(void *context, request_of *request, struct tool_jail_served *served)
{
	char name[64];
	ssize_t got;
	int error = name_facts(request, name, sizeof(name));
	const int fd = error == 0 ? open_own(context, name) : -1;

	if (fd < 0)
		return error != 0 ? error : errno;
	got = read(fd, served->bytes, sizeof(served->bytes));
	error = errno;
	close(fd);
	if (got < 0)
		return error;
	served->answer.length = (uint32_t)got;
	return 0;
}

/* Puts as many threads as there is room for. */
static void put_threads(DIR *directory, uint64_t skipped, struct tool_jail_served *served)
{
	const struct dirent *entry;
	pid_t tid;

	while ((entry = readdir(directory)) &&
	       served->answer.length + sizeof(tid) <= sizeof(served->bytes)) {
		tid = atoi(entry->d_name);
		if (tid <= 0 || skipped > 0) {
			skipped -= tid > 0;
			continue;
		}
		memcpy(served->bytes + served->answer.length, &tid, sizeof(tid));
		served->answer.length += sizeof(tid);
	}
}

static int serve_tasks(void *context, request_of *request, struct tool_jail_served *served)
{
	const int fd = open_own(context, "task");
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	const int error = errno;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return error;
	}
	put_threads(directory, request->numbers[0], served);
	closedir(directory);
	return 0;
}

/* ---- what the user has asked for --------------------------------------------------------------- */

static int serve_output(void *context, request_of *request, struct tool_jail_served *served)
{
	struct tool_attach_broker *broker = context;
	int error;

	(void)request;
	if (broker->has_output)
		return EEXIST;
	broker->has_output = true;
	if (tool_record_prepare(broker->options) != 0)
		return EIO;
	served->fd = open(broker->options->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (served->fd >= 0)
		return put_text(served, broker->options->file);
	error = errno;
	fprintf(stderr, "incstack: cannot write %s: %s; choose another file with -o\n",
		tool_name(broker->options->file), strerror(error));
	return error;
}

static int serve_let_go(void *context, request_of *request, struct tool_jail_served *served)
{
	const struct tool_attach_broker *broker = context;

	(void)request;
	(void)served;
	if (broker->child->pid <= 0 || broker->child->gate < 0)
		return ESRCH;
	tool_attach_let_go(broker->child);
	return 0;
}

/* The signals that the user can send to the tool. */
static int serve_signal(void *context, request_of *request, struct tool_jail_served *served)
{
	const struct tool_attach_broker *broker = context;
	const uint64_t number = request->numbers[0];

	(void)served;
	if (broker->child->pid <= 0 || (number != SIGTERM && number != SIGHUP))
		return EPERM;
	return kill(broker->child->pid, (int)number) != 0 ? errno : 0;
}

/* ---- probes ------------------------------------------------------------------------------------- */

static int serve_probed(void *context, request_of *request, struct tool_jail_served *served)
{
	struct tool_attach_broker *broker = context;
	const struct tool_attach_mapping mapping = mapping_of(request);
	const int fd = broker->probes.is_open
			       ? tool_attach_source_open(&broker->target, &mapping, NULL)
			       : -1;
	const int number = fd >= 0 ? tool_attach_probes_file(&broker->probes, fd) : -1;

	if (number < 0)
		return fd < 0 ? ENOENT : E2BIG;
	served->answer.numbers[0] = (uint64_t)number;
	return 0;
}

static int serve_probe(void *context, request_of *request, struct tool_jail_served *served)
{
	struct tool_attach_broker *broker = context;
	const uint64_t *numbers = request->numbers;

	(void)served;
	return tool_attach_probes_add(&broker->probes, numbers[0], numbers[1], numbers[2],
				      numbers[3]);
}

static int serve_probes_open(void *context, request_of *request, struct tool_jail_served *served)
{
	struct tool_attach_broker *broker = context;

	(void)request;
	(void)served;
	return broker->probes.is_open ? tool_attach_probes_open(&broker->probes) : EPERM;
}

static int serve_probes_close(void *context, request_of *request, struct tool_jail_served *served)
{
	struct tool_attach_broker *broker = context;

	(void)request;
	(void)served;
	if (broker->probes.is_open)
		tool_attach_probes_stop(&broker->probes);
	return 0;
}

static int serve_children(void *context, request_of *request, struct tool_jail_served *served)
{
	struct tool_attach_broker *broker = context;

	(void)request;
	served->answer.numbers[0] = (uint64_t)tool_attach_probes_free_children(&broker->probes);
	return 0;
}

const struct tool_jail_row tool_attach_rows[TOOL_ATTACH_ROWS] = {
	{TOOL_ATTACH_REQUEST_FILE, serve_file},
	{TOOL_ATTACH_REQUEST_MAPS, serve_maps},
	{TOOL_ATTACH_REQUEST_MEMORY, serve_memory},
	{TOOL_ATTACH_REQUEST_FACTS, serve_facts},
	{TOOL_ATTACH_REQUEST_TASKS, serve_tasks},
	{TOOL_ATTACH_REQUEST_OUTPUT, serve_output},
	{TOOL_ATTACH_REQUEST_LET_GO, serve_let_go},
	{TOOL_ATTACH_REQUEST_SIGNAL, serve_signal},
	{TOOL_ATTACH_REQUEST_PROBED, serve_probed},
	{TOOL_ATTACH_REQUEST_PROBE, serve_probe},
	{TOOL_ATTACH_REQUEST_PROBES_OPEN, serve_probes_open},
	{TOOL_ATTACH_REQUEST_PROBES_CLOSE, serve_probes_close},
	{TOOL_ATTACH_REQUEST_CHILDREN, serve_children},
	{TOOL_ATTACH_REQUEST_PAGES, serve_pages},
};
