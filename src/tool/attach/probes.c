/* SPDX-License-Identifier: MIT
 *
 * Lets the kernel report calls and returns of functions of another process (uprobes). The kernel puts a
 * breakpoint on the function, in the memory of this process only, and for a return it replaces the
 * return address while the function runs. All that ends with the tool, whatever ends it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* syscall */
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "events.h"

#define SOURCE "/sys/bus/event_source/devices/uprobe/"

enum { COPY_BYTES = 16 << 10 };
/* The bytes of all buffers of a kind, and of each one at least. */
static const size_t all_bytes[TOOL_ATTACH_HIT_KINDS] = {128 << 20, 32 << 20, 32 << 20};
enum { LEAST_BYTES = 4 << 20 };

/* ---- buffers ---------------------------------------------------------------------------- */

/* Any kernel that has BPF passes on what the programs write here. */
static struct perf_event_attr output(enum tool_attach_hit_kind kind)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.wakeup_events = 1u << 30, /* never */
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			       PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |
			       (kind == TOOL_ATTACH_ENTRY ? PERF_SAMPLE_STACK_USER : 0u),
		.sample_regs_user = TOOL_ATTACH_HIT_REGISTERS,
		.sample_stack_user = kind == TOOL_ATTACH_ENTRY ? COPY_BYTES : 0,
		.read_format = PERF_FORMAT_LOST,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

static size_t bytes_of(enum tool_attach_hit_kind kind, size_t processors)
{
	size_t bytes = all_bytes[kind];

	while (bytes > all_bytes[kind] / processors && bytes > LEAST_BYTES)
		bytes /= 2;
	return bytes;
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int processor)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, processor, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Makes the buffer of a processor. One that is switched off needs none. Returns an error number. */
static int open_output(struct tool_attach_hits *hits, enum tool_attach_hit_kind kind,
		       unsigned processor)
{
	struct tool_attach_ring *ring = &hits->rings[kind * hits->processors + processor];
	struct perf_event_attr attr = output(kind);
	void *memory;

	ring->fd = open_event(&attr, -1, (int)processor);
	if (ring->fd < 0 && errno == EINVAL) { /* before Linux 6.0 */
		attr.read_format = 0;
		ring->fd = open_event(&attr, -1, (int)processor);
	}
	if (ring->fd < 0)
		return errno == ENODEV ? 0 : errno;
	ring->bytes = bytes_of(kind, hits->processors);
	memory = mmap(NULL, TOOL_ATTACH_PAGE + ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      ring->fd, 0);
	if (memory == MAP_FAILED)
		return errno;
	ring->page = memory;
	ring->data = (unsigned char *)memory + TOOL_ATTACH_PAGE;
	return tool_attach_maps_set(hits->maps.outputs[kind], processor, ring->fd) != 0 ? errno : 0;
}

static int open_outputs(struct tool_attach_hits *hits)
{
	int error = 0;

	hits->rings = calloc(TOOL_ATTACH_HIT_KINDS * hits->processors, sizeof(*hits->rings));
	if (hits->rings == NULL)
		return ENOMEM;
	hits->ring_count = TOOL_ATTACH_HIT_KINDS * hits->processors;
	for (size_t i = 0; i < hits->ring_count; i++)
		hits->rings[i].fd = -1;
	for (unsigned i = 0; i < hits->ring_count && error == 0; i++)
		error = open_output(hits, i / (unsigned)hits->processors,
				    i % (unsigned)hits->processors);
	return error;
}

/* ---- probes ----------------------------------------------------------------------------- */

/* The kernel's number of this source of events; -1: it has none. */
static int source(void)
{
	FILE *file = fopen(SOURCE "type", "re");
	int type = -1;

	if (file != NULL) {
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

	if (file != NULL) {
		if (fscanf(file, "config:%d", &bit) != 1)
			bit = 0;
		fclose(file);
	}
	return bit;
}

int tool_attach_probe_event(pid_t pid, const char *path, uint64_t offset, int at_return)
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
	return open_event(&attr, pid, -1);
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
static int open_probe(struct tool_attach_hits *hits, pid_t pid,
		      const struct tool_attach_probe *probes, size_t count)
{
	const int program = tool_attach_program_load(&hits->maps, probes, hits->is_linked);
	int error;
	int fd;

	if (program < 0)
		return errno;
	fd = hits->is_linked ? tool_attach_link_open(pid, program, probes, count)
			     : open_single(pid, program, probes);
	error = errno;
	close(program);
	if (fd < 0)
		return error;
	hits->probes[hits->count++] = fd;
	return 0;
}

/* The kinds are enabled in this order, so that no block seems to be live because only its
 * allocation was seen. */
static int open_all_probes(struct tool_attach_hits *hits, pid_t pid,
			   const struct tool_attach_probe *probes, size_t count)
{
	int error = 0;

	for (int kind = TOOL_ATTACH_HIT_KINDS; kind-- > 0;)
		for (size_t i = 0; i < count && error == 0; i++)
			if (probes[i].kind == (enum tool_attach_hit_kind)kind &&
			    !(hits->is_linked && tool_attach_link_has(probes, i)))
				error = open_probe(hits, pid, &probes[i], count - i);
	return error;
}

/* A kernel may have been built without links. */
static int open_probes(struct tool_attach_hits *hits, pid_t pid,
		       const struct tool_attach_probe *probes, size_t count)
{
	int error;

	hits->probes = calloc(count, sizeof(*hits->probes));
	if (hits->probes == NULL)
		return ENOMEM;
	hits->is_linked = tool_attach_links_work();
	error = open_all_probes(hits, pid, probes, count);
	if (!hits->is_linked || hits->count > 0 || (error != EINVAL && error != EOPNOTSUPP))
		return error;
	hits->is_linked = 0;
	return open_all_probes(hits, pid, probes, count);
}

static const char *reason_of(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return "breakpoints of the kernel (uprobes) need root, or the capabilities "
		       "CAP_SYS_ADMIN and CAP_IPC_LOCK";
	case ENODEV:
	case ENOSYS:
		return "the kernel has no breakpoints for it (CONFIG_UPROBES)";
	case EMFILE:
		return "it needs more open files; raise ulimit -n";
	case ESRCH:
		return "it has ended";
	case EINVAL:
		return "the kernel refuses a breakpoint or a program for it; that needs Linux 5.5";
	default:
		return strerror(error);
	}
}

int tool_attach_probes_open(struct tool_attach_events *events,
			    const struct tool_attach_probe *probes, size_t count)
{
	struct tool_attach_hits *hits = &events->hits;
	int error;

	hits->processors = events->ring_count;
	hits->children =
		(struct tool_attach_children){.pid = events->pid, .probes = probes, .count = count};
	error = tool_attach_maps_open(&hits->maps, hits->processors);
	hits->is_open = 1;
	if (error == 0)
		error = open_outputs(hits);
	if (error == 0)
		error = open_probes(hits, events->pid, probes, count);
	if (error == 0)
		return 0;
	return tool_attach_refuse(events->pid, "record", reason_of(error));
}

/* ---- the end ---------------------------------------------------------------------------- */

/* The kernel takes a tenth of a second and more to remove probes, so the reports end before that. */
void tool_attach_probes_stop(struct tool_attach_events *events)
{
	struct tool_attach_hits *hits = &events->hits;

	for (int kind = 0; kind < TOOL_ATTACH_HIT_KINDS; kind++)
		for (unsigned i = 0; i < hits->processors; i++)
			tool_attach_maps_clear(hits->maps.outputs[kind], i);
	tool_attach_children_end(&hits->children);
	tool_attach_links_close(hits->probes, hits->count);
	hits->count = 0;
}

uint64_t tool_attach_probes_lost(const struct tool_attach_events *events,
				 enum tool_attach_hit_kind kind)
{
	const struct tool_attach_hits *hits = &events->hits;
	struct {
		uint64_t count;
		uint64_t lost;
	} values = {0};
	uint64_t lost = 0;

	for (size_t i = 0; i < hits->processors; i++)
		if (read(hits->rings[kind * hits->processors + i].fd, &values, sizeof(values)) ==
		    (ssize_t)sizeof(values))
			lost += values.lost;
	return lost > hits->lost[kind] ? lost - hits->lost[kind] : 0;
}

void tool_attach_probes_close(struct tool_attach_events *events)
{
	struct tool_attach_hits *hits = &events->hits;

	if (!hits->is_open)
		return;
	tool_attach_probes_stop(events);
	for (size_t i = 0; i < hits->ring_count; i++) {
		if (hits->rings[i].page != NULL)
			munmap(hits->rings[i].page, TOOL_ATTACH_PAGE + hits->rings[i].bytes);
		if (hits->rings[i].fd >= 0)
			close(hits->rings[i].fd);
	}
	tool_attach_maps_close(&hits->maps);
	free(hits->rings);
	free(hits->probes);
}
