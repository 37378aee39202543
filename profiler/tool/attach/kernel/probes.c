/* SPDX-License-Identifier: MIT
 *
 * Lets the kernel report calls and returns of functions of another process (uprobes). The kernel puts a
 * breakpoint on the function, in the memory of this process only, and for a return it replaces the
 * return address while the function runs. All that ends with the tool, whatever ends it.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "links.h"
#include "probes.h"

#define SOURCE "/sys/bus/event_source/devices/uprobe/"

/* ---- what is wanted --------------------------------------------------------------------- */

size_t tool_attach_processors(void)
{
	const long processors = sysconf(_SC_NPROCESSORS_CONF);

	return processors > 0 ? (size_t)processors : 1;
}

void tool_attach_probes_begin(struct tool_attach_probes *probes, pid_t pid)
{
	probes->pid = pid;
	probes->error = tool_attach_maps_open(&probes->maps, tool_attach_processors());
	probes->is_open = true;
}

int tool_attach_probes_file(struct tool_attach_probes *probes, int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		status = (struct stat){.st_ino = 0};
	for (size_t i = 0; i < probes->file_count; i++)
		if (probes->files[i].device == status.st_dev &&
		    probes->files[i].inode == status.st_ino) {
			close(fd);
			return (int)i;
		}
	if (probes->file_count == TOOL_ATTACH_PROBES) {
		close(fd);
		return -1;
	}
	probes->files[probes->file_count] =
		(struct tool_attach_probed){status.st_dev, status.st_ino, fd};
	return (int)probes->file_count++;
}

int tool_attach_probes_add(struct tool_attach_probes *probes, uint64_t file, uint64_t offset,
			   uint64_t number, uint64_t kind)
{
	struct tool_attach_probe *probe = &probes->probes[probes->count];

	if (probes->count == TOOL_ATTACH_PROBES || probes->fd_count > 0)
		return E2BIG;
	if (file >= probes->file_count || offset > INT64_MAX || number > TOOL_ATTACH_DEALLOCATE ||
	    kind >= TOOL_ATTACH_HIT_KINDS)
		return EINVAL;
	snprintf(probe->path, sizeof(probe->path), "/proc/self/fd/%d", probes->files[file].fd);
	probe->offset = offset;
	probe->number = (uint32_t)number;
	probe->kind = (enum tool_attach_hit_kind)kind;
	probes->count++;
	return 0;
}

/* ---- probes ----------------------------------------------------------------------------- */

/* The kernel's number of this source of events; -1: it has none. */
static int source(void)
{
	FILE *file = fopen(SOURCE "type", "re");
	int type = -1;

	if (file) {
		if (fscanf(file, "%d", &type) != 1)
			type = -1;
		fclose(file);
	}
	return type;
}

static int return_bit(void)
{
	FILE *file = fopen(SOURCE "format/retprobe", "re");
	int bit = 0;

	if (file) {
		if (fscanf(file, "config:%d", &bit) != 1)
			bit = 0;
		fclose(file);
	}
	return bit;
}

int tool_attach_probe_event(pid_t pid, const char *path, uint64_t offset, bool at_return)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = at_return ? UINT64_C(1) << return_bit() : 0,
		.config1 = (uintptr_t)path,
		.config2 = offset,
	};
	const int type = source();

	if (type < 0) {
		errno = ENODEV;
		return -1;
	}
	attr.type = (uint32_t)type;
	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The event needs no room of its own: the program writes to the buffers. Returns a descriptor, or -1
 * with errno. */
static int open_single(pid_t pid, int program, const struct tool_attach_probe *probe)
{
	const int fd = tool_attach_probe_event(pid, probe->path, probe->offset,
					       probe->kind == TOOL_ATTACH_RETURN);
	int error;

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Opens the first of the probes; if links work, together with those of the same link. */
static int open_probe(struct tool_attach_probes *all, size_t at)
{
	const struct tool_attach_probe *probe = &all->probes[at];
	const int program = tool_attach_program_load(&all->maps, probe, all->is_linked);
	int error;
	int fd;

	if (program < 0)
		return errno;
	fd = all->is_linked ? tool_attach_link_open(all->pid, program, probe, all->count - at)
			    : open_single(all->pid, program, probe);
	error = errno;
	close(program);
	if (fd < 0)
		return error;
	all->fds[all->fd_count++] = fd;
	return 0;
}

/* The kinds are enabled in this order, so that no block seems to be live because only its
 * allocation was seen. */
static int open_each(struct tool_attach_probes *all)
{
	int error = 0;

	for (int kind = TOOL_ATTACH_HIT_KINDS; kind-- > 0;)
		for (size_t i = 0; i < all->count && error == 0; i++)
			if (all->probes[i].kind == (enum tool_attach_hit_kind)kind &&
			    !(all->is_linked && tool_attach_link_has(all->probes, i)))
				error = open_probe(all, i);
	return error;
}

/* A kernel may have been built without links. */
int tool_attach_probes_open(struct tool_attach_probes *all)
{
	int error = all->error;

	if (error != 0 || all->fd_count > 0)
		return error;
	all->children = (struct tool_attach_children){
		.pid = all->pid, .probes = all->probes, .count = all->count};
	all->is_linked = tool_attach_links_work();
	error = open_each(all);
	if (!all->is_linked || all->fd_count > 0 || (error != EINVAL && error != EOPNOTSUPP))
		return error;
	all->is_linked = false;
	return open_each(all);
}

bool tool_attach_probes_free_children(struct tool_attach_probes *all)
{
	if (!all->is_linked || all->fd_count == 0)
		return false;
	all->children.has_new = true;
	tool_attach_children_free(&all->children);
	return all->children.has_new;
}

/* ---- the end ---------------------------------------------------------------------------- */

/* The kernel takes a tenth of a second and more to remove probes, so the reports end before that. */
void tool_attach_probes_stop(struct tool_attach_probes *all)
{
	for (int kind = 0; kind < TOOL_ATTACH_HIT_KINDS && all->error == 0; kind++)
		for (unsigned i = 0; i < tool_attach_processors(); i++)
			tool_attach_maps_clear(all->maps.outputs[kind], i);
	tool_attach_children_end(&all->children);
	tool_attach_links_close(all->fds, all->fd_count);
	all->fd_count = 0;
	all->count = 0;
}

void tool_attach_probes_close(struct tool_attach_probes *all)
{
	if (!all->is_open)
		return;
	tool_attach_probes_stop(all);
	for (size_t i = 0; i < all->file_count; i++)
		close(all->files[i].fd);
	tool_attach_maps_close(&all->maps);
	all->is_open = false;
}
