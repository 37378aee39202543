/* SPDX-License-Identifier: MIT
 *
 * Attaches one program to many probes of a file at once (a uprobe_multi link). The kernel waits for all
 * processors when probes are removed: here once for a link, otherwise more than once for each probe.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "links.h"

/* What the kernel's header calls attr.link_create.uprobe_multi, in headers of Linux 6.6 and newer. */
struct link_create {
	uint32_t program;
	uint32_t target;
	uint32_t type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t counters;
	uint64_t cookies;
	uint32_t count;
	uint32_t link_flags;
	uint32_t pid;
	uint32_t unused;
};
enum { AT_RETURN = 1 };

/* Before Linux 6.10 a link reported the main thread only. */
bool tool_attach_links_work(void)
{
	struct utsname name;
	unsigned major;
	unsigned minor;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 10));
}

static bool is_same(const struct tool_attach_probe *a, const struct tool_attach_probe *b)
{
	return a->kind == b->kind && strcmp(a->path, b->path) == 0;
}

int tool_attach_link_open(pid_t pid, int program, const struct tool_attach_probe *probes,
			  size_t count)
{
	uint64_t offsets[TOOL_ATTACH_PROBES];
	uint64_t numbers[TOOL_ATTACH_PROBES];
	struct link_create attr = {
		.program = (uint32_t)program,
		.type = TOOL_ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)probes->path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)numbers,
		.link_flags = probes->kind == TOOL_ATTACH_RETURN ? AT_RETURN : 0,
		.pid = (uint32_t)pid,
	};

	for (size_t i = 0; i < count && attr.count < TOOL_ATTACH_PROBES; i++)
		if (is_same(&probes[i], probes)) {
			offsets[attr.count] = probes[i].offset;
			numbers[attr.count++] = probes[i].number;
		}
	return (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
}

/* Whether one of the probes before `at` has the same link. */
bool tool_attach_link_has(const struct tool_attach_probe *probes, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_same(&probes[i], &probes[at]))
			return 1;
	return 0;
}

size_t tool_attach_links_of_calls(pid_t pid, const struct tool_attach_probe *probes, size_t count,
				  int *fds)
{
	const int program = tool_attach_program_empty();
	size_t made = 0;

	for (size_t i = 0; program >= 0 && i < count; i++) {
		if (probes[i].kind == TOOL_ATTACH_RETURN || tool_attach_link_has(probes, i))
			continue;
		fds[made] = tool_attach_link_open(pid, program, &probes[i], count - i);
		made += fds[made] >= 0;
	}
	if (program >= 0)
		close(program);
	return made;
}

static void *close_one(void *fd)
{
	close(*(const int *)fd);
	return NULL;
}

/* At the same time, so that the waits of the kernel overlap. */
void tool_attach_links_close(const int *fds, size_t count)
{
	pthread_t threads[TOOL_ATTACH_PROBES];
	size_t begun = 0;

	while (begun < count && begun < TOOL_ATTACH_PROBES &&
	       pthread_create(&threads[begun], NULL, close_one, (void *)&fds[begun]) == 0)
		begun++;
	for (size_t i = begun; i < count; i++)
		close(fds[i]);
	for (size_t i = 0; i < begun; i++)
		pthread_join(threads[i], NULL);
}
