/* SPDX-License-Identifier: MIT
 *
 * The buffers to which the kernel's programs report the hits of probes. The worker makes them while it
 * has rights, and asks for the probes when it has none any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "outputs.h"
#include "rings.h"
#include "tool/attach/process/ask.h"
#include "tool/attach/process/copy.h"
#include "tool/attach/process/process.h"

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

static int open_event(struct perf_event_attr *attr, int processor)
{
	return (int)syscall(SYS_perf_event_open, attr, -1, processor, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Makes the buffer of a processor. One that is switched off needs none. Returns an error number. */
static int open_output(struct tool_attach_hits *hits, const struct tool_attach_maps *maps,
		       enum tool_attach_hit_kind kind, unsigned processor)
{
	struct tool_attach_ring *ring = &hits->rings[kind * hits->processors + processor];
	struct perf_event_attr attr = output(kind);
	void *memory;

	ring->fd = open_event(&attr, (int)processor);
	if (ring->fd < 0 && errno == EINVAL) { /* before Linux 6.0 */
		attr.read_format = 0;
		ring->fd = open_event(&attr, (int)processor);
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
	return tool_attach_maps_set(maps->outputs[kind], processor, ring->fd) != 0 ? errno : 0;
}

static int open_outputs(struct tool_attach_hits *hits, const struct tool_attach_maps *maps)
{
	int error = 0;

	hits->rings = calloc(TOOL_ATTACH_HIT_KINDS * hits->processors, sizeof(*hits->rings));
	if (!hits->rings)
		return ENOMEM;
	hits->ring_count = TOOL_ATTACH_HIT_KINDS * hits->processors;
	for (size_t i = 0; i < hits->ring_count; i++)
		hits->rings[i].fd = -1;
	for (unsigned i = 0; i < hits->ring_count && error == 0; i++)
		error = open_output(hits, maps, i / (unsigned)hits->processors,
				    i % (unsigned)hits->processors);
	return error;
}

void tool_attach_outputs_open(struct tool_attach_events *events,
			      const struct tool_attach_maps *maps)
{
	struct tool_attach_hits *hits = &events->hits;

	hits->processors = events->ring_count;
	hits->is_open = true;
	hits->error = open_outputs(hits, maps);
}

/* ---- the probes --------------------------------------------------------------------------- */

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

static int open_probes(const struct tool_attach_wanted *wanted, size_t count)
{
	int error = 0;

	for (size_t i = 0; i < count && error == 0; i++)
		error = tool_attach_ask_probe(&wanted[i].module->copy->mapping, wanted[i].offset,
					      wanted[i].number, wanted[i].kind);
	return error != 0 ? error : tool_attach_ask_probes();
}

int tool_attach_hits_open(struct tool_attach_events *events,
			  const struct tool_attach_wanted *wanted, size_t count)
{
	int error = events->hits.error;

	if (error == 0)
		error = open_probes(wanted, count);
	if (error == 0)
		return 0;
	return tool_attach_refuse(events->pid, "record", reason_of(error));
}

void tool_attach_hits_stop(struct tool_attach_events *events)
{
	if (events->hits.is_open)
		tool_attach_ask_no_probes();
}

uint64_t tool_attach_hits_lost(const struct tool_attach_events *events,
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

void tool_attach_outputs_close(struct tool_attach_events *events)
{
	struct tool_attach_hits *hits = &events->hits;

	for (size_t i = 0; hits->rings && i < hits->ring_count; i++) {
		if (hits->rings[i].page)
			munmap(hits->rings[i].page, TOOL_ATTACH_PAGE + hits->rings[i].bytes);
		if (hits->rings[i].fd >= 0)
			close(hits->rings[i].fd);
	}
	free(hits->rings);
	hits->rings = NULL;
}
