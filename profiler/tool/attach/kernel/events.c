/* SPDX-License-Identifier: MIT
 *
 * Lets the kernel sample the threads of another process (perf_event_open). The kernel counts the
 * CPU time of each thread. When a thread has used an interval, the kernel copies the thread's
 * registers and the youngest part of its stack into a buffer. The process is not stopped, gets no
 * signal, and cannot notice the sampling. The events end with the tool, whatever ends it.
 *
 * New threads inherit the events of their makers. The kernel allows a buffer for inherited events
 * only if the events are for one processor. So there is a buffer for each processor, and each
 * thread has an event for each processor (with is_wall, two). read.c reads the buffers.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "outputs.h"
#include "probes.h"
#include "rings.h"
#include "tool/attach/process/process.h"

enum { COPY_BYTES = 56 << 10, SWITCH_COPY_BYTES = 16 << 10 };
enum { RINGS_BYTES = 16 << 20, RING_MOST = 4 << 20, RING_LEAST = 256 << 10 };
enum { REGISTER_FP = 6, REGISTER_SP = 7, REGISTER_PC = 8 }; /* the kernel's numbers */

struct list {
	pid_t *tids;
	size_t count;
};

/* ---- opening ---------------------------------------------------------------------- */

/* The attributes of the events that count CPU time. If the interval is 0, the kernel reports only
 * new mappings and the ends of threads. */
static struct perf_event_attr attributes(uint64_t interval)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = interval,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.exclude_callchain_kernel = 1,
		.sample_regs_user = 1u << REGISTER_FP | 1u << REGISTER_SP | 1u << REGISTER_PC,
		.sample_stack_user = COPY_BYTES,
		.read_format = PERF_FORMAT_LOST,
		.disabled = 1,
		.inherit = 1,
		.inherit_thread = 1,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	if (interval == 0) {
		attr.config = PERF_COUNT_SW_DUMMY;
		attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID;
		attr.sample_regs_user = attr.sample_stack_user = 0;
	}
	return attr;
}

/* The attributes of the events for switches of a processor from a thread and to a thread. The
 * kernel reports each switch with its time. For a switch from a thread, it also makes a sample. */
static struct perf_event_attr switch_attributes(struct perf_event_attr attr)
{
	attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	attr.sample_period = TOOL_ATTACH_SWITCH_PERIOD;
	attr.sample_stack_user = SWITCH_COPY_BYTES;
	attr.context_switch = 1;
	attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 0;
	return attr;
}

static int open_event(struct perf_event_attr *attr, pid_t tid, int processor)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, processor, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Finds out what the system allows, and removes the rest from the attributes: sampling of time in
 * the kernel, the count of records for which there was no room (Linux 6.0), and events that threads
 * inherit but child processes do not (5.13). Returns 0, or an error number if too little is
 * allowed. */
static int negotiate(struct tool_attach_events *events)
{
	struct perf_event_attr *attr = &events->attr;
	int fd = open_event(attr, events->pid, -1);

	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		attr->exclude_kernel = 1;
		fd = open_event(attr, events->pid, -1);
	}
	if (fd < 0 && errno == EINVAL) {
		attr->read_format = 0;
		fd = open_event(attr, events->pid, -1);
	}
	if (fd < 0 && errno == EINVAL) {
		attr->inherit_thread = 0;
		fd = open_event(attr, events->pid, -1);
	}
	if (fd < 0)
		return errno;
	close(fd);
	events->switch_attr = switch_attributes(*attr);
	return events->is_wall && attr->exclude_kernel ? EACCES : 0;
}

bool tool_attach_events_permit_waits(void)
{
	struct perf_event_attr attr = switch_attributes(attributes(1));
	const int fd = open_event(&attr, 0, -1);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Makes the buffer of a processor. An unprivileged user may lock little memory, so the size is
 * halved until the kernel accepts it. Later buffers begin with this size. */
static int map_ring(struct tool_attach_events *events, struct tool_attach_ring *ring)
{
	void *memory = MAP_FAILED;

	for (; events->ring_bytes >= RING_LEAST; events->ring_bytes /= 2) {
		memory = mmap(NULL, TOOL_ATTACH_PAGE + events->ring_bytes, PROT_READ | PROT_WRITE,
			      MAP_SHARED, ring->fd, 0);
		if (memory != MAP_FAILED)
			break;
	}
	if (memory == MAP_FAILED) {
		errno = ENOBUFS;
		return -1;
	}
	ring->bytes = events->ring_bytes;
	ring->page = memory;
	ring->data = (unsigned char *)memory + TOOL_ATTACH_PAGE;
	return 0;
}

/* Opens an event of a thread on a processor. The first event on a processor makes its buffer, and
 * all later events on this processor report there. */
static int add_event(struct tool_attach_events *events, pid_t tid, size_t processor, bool is_switch)
{
	struct tool_attach_ring *ring = &events->rings[processor];
	struct tool_attach_event *more =
		reallocarray(events->events, events->count + 1, sizeof(*events->events));
	const int fd =
		open_event(is_switch ? &events->switch_attr : &events->attr, tid, (int)processor);
	struct tool_attach_event *event;

	if (more)
		events->events = more;
	if (fd < 0 || !more) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	event = &events->events[events->count++];
	*event = (struct tool_attach_event){tid, fd, 0, is_switch};
	ioctl(fd, PERF_EVENT_IOC_ID, &event->id);
	if (ring->page)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd);
	ring->fd = fd;
	return map_ring(events, ring);
}

/* Returns non-zero, with errno, if the thread cannot be sampled. A thread that has ended is not an
 * error. */
static int add_thread(struct tool_attach_events *events, pid_t tid)
{
	for (size_t i = 0; i < events->ring_count; i++)
		if (add_event(events, tid, i, false) != 0 ||
		    (events->is_wall && add_event(events, tid, i, true) != 0)) {
			if (errno == ENODEV) /* the processor is off */
				continue;
			return errno == ESRCH ? 0 : -1;
		}
	events->threads++;
	return 0;
}

static int list_threads(pid_t pid, struct list *list)
{
	const struct dirent *entry;
	char path[64];
	DIR *directory;
	pid_t *more;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	*list = (struct list){0};
	directory = opendir(path);
	if (!directory)
		return errno == ENOENT ? 0 : -1; /* it has ended */
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		more = reallocarray(list->tids, list->count + 1, sizeof(*list->tids));
		if (!more)
			break;
		list->tids = more;
		list->tids[list->count++] = atoi(entry->d_name);
	}
	closedir(directory);
	errno = entry ? ENOMEM : 0;
	return entry ? -1 : 0;
}

static int by_number(const void *left, const void *right)
{
	const pid_t a = *(const pid_t *)left;
	const pid_t b = *(const pid_t *)right;

	return (a > b) - (a < b);
}

/* Returns the threads that have events, in order. Without memory the list is empty, and threads
 * that have events get more of them. */
static struct list known_threads(const struct tool_attach_events *events)
{
	struct list known = {calloc(events->count + 1, sizeof(pid_t)), 0};

	for (size_t i = 0; known.tids && i < events->count; i++)
		known.tids[known.count++] = events->events[i].tid;
	if (known.count > 1)
		qsort(known.tids, known.count, sizeof(pid_t), by_number);
	return known;
}

/* Gives events to the threads that have none. */
static int add_threads(struct tool_attach_events *events)
{
	struct list list;
	bool failed = list_threads(events->pid, &list) != 0;
	const int error = errno;
	const struct list known = known_threads(events);

	if (failed)
		errno = error;

	for (size_t i = 0; i < list.count && !failed; i++)
		if (known.count == 0 ||
		    !bsearch(&list.tids[i], known.tids, known.count, sizeof(pid_t), by_number))
			failed = add_thread(events, list.tids[i]) != 0;
	free(known.tids);
	free(list.tids);
	return failed ? -1 : 0;
}

/* Gives events to all threads, in two passes. A thread that was made during the first pass has
 * inherited events if its maker had events by then. Nobody knows whether it had. So the second pass
 * gives events to all threads that the first pass did not find, and is_inherited() in read.c finds
 * the samples that come twice. */
static int add_all_threads(struct tool_attach_events *events)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (add_threads(events) != 0)
		return -1;
	events->early = events->count;
	return add_threads(events);
}

static const char *reason_of(const struct tool_attach_events *events, int error, char *text,
			     size_t size)
{
	const int needed = events && events->is_wall ? 1 : 2;
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = 0;

	if (file) {
		if (fscanf(file, "%d", &level) != 1)
			level = 0;
		fclose(file);
	}
	if (error == EACCES || error == EPERM)
		snprintf(
			text, size,
			"the kernel does not allow it: it belongs to another user, or "
			"perf_event_open is forbidden (sysctl kernel.perf_event_paranoid is %d, %d "
			"is low enough); run incstack as %s",
			level, needed, needed == 2 ? "that user or as root" : "root");
	else if (error == EMFILE)
		snprintf(text, size,
			 "it has too many threads for the limit on open files; raise "
			 "ulimit -n");
	else if (error == ENOBUFS)
		snprintf(text, size,
			 "no memory for the samples may be locked; raise ulimit -l or "
			 "sysctl kernel.perf_event_mlock_kb");
	else if (error == ESRCH)
		snprintf(text, size, "it has ended");
	else if (error == ENOSYS || error == EOPNOTSUPP || error == ENOENT)
		snprintf(text, size,
			 "the kernel has no perf_event_open, and without it nothing is sampled");
	else
		snprintf(text, size, "%s", strerror(error));
	return text;
}

/* Returns the size of each buffer. Switches come in bursts, so their buffers are four times as
 * large. */
static size_t ring_bytes(size_t rings, bool is_wall)
{
	const size_t times = is_wall ? 4 : 1;
	size_t bytes = RING_MOST * times;

	while (bytes > RINGS_BYTES * times / rings && bytes > RING_LEAST)
		bytes /= 2;
	return bytes;
}

static int open_all(struct tool_attach_events *events)
{
	int error = negotiate(events);

	if (error == 0 && add_all_threads(events) != 0)
		error = errno;
	return error == 0 && events->threads == 0 ? ESRCH : error;
}

int tool_attach_events_open(struct tool_attach_events **made, pid_t pid, uint64_t interval,
			    bool is_wall)
{
	struct tool_attach_events *events = calloc(1, sizeof(*events));
	char text[512];
	int error = ENOMEM;

	*made = events;
	if (events) {
		events->attr = attributes(interval);
		events->is_wall = is_wall;
		events->pid = pid;
		events->ring_count = tool_attach_processors();
		events->ring_bytes = ring_bytes(events->ring_count, is_wall);
		events->rings = calloc(events->ring_count, sizeof(*events->rings));
		if (events->rings)
			error = open_all(events);
	}
	if (error == 0)
		return 0;
	return tool_attach_refuse(pid, "profile", reason_of(events, error, text, sizeof(text)));
}

/* ---- begin and end ---------------------------------------------------------------------- */

void tool_attach_events_start(struct tool_attach_events *events)
{
	for (size_t i = 0; i < events->count; i++)
		ioctl(events->events[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

void tool_attach_events_stop(struct tool_attach_events *events)
{
	tool_attach_hits_stop(events);
	for (size_t i = 0; i < events->count; i++)
		ioctl(events->events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t tool_attach_events_used(const struct tool_attach_events *events, uint64_t *lost)
{
	struct {
		uint64_t used;
		uint64_t lost;
	} values = {0};
	uint64_t all_lost = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < events->count; i++) {
		if (read(events->events[i].fd, &values, sizeof(values)) < 0)
			continue;
		sum += events->events[i].is_switch ? 0 : values.used;
		all_lost += values.lost;
	}
	*lost = all_lost > events->lost ? all_lost - events->lost : 0;
	return sum;
}

void tool_attach_events_close(struct tool_attach_events *events)
{
	if (!events)
		return;
	tool_attach_outputs_close(events);
	for (size_t i = 0; events->rings && i < events->ring_count; i++)
		if (events->rings[i].page)
			munmap(events->rings[i].page, TOOL_ATTACH_PAGE + events->rings[i].bytes);
	for (size_t i = 0; i < events->count; i++)
		close(events->events[i].fd);
	free(events->rings);
	free(events->events);
	free(events->found);
	free(events);
}

/* Returns a quarter of the time in which the ticks of a busy processor fill its buffer, at most 50
 * ms. Hits and switches fill it earlier. */
int tool_attach_events_pause(const struct tool_attach_events *events)
{
	enum { SWITCHES_MS = 5 }; /* switches may come faster than ticks */
	const uint64_t samples = events->ring_bytes / TOOL_ATTACH_RECORD_MOST;
	const uint64_t milliseconds =
		events->hits.is_open ? 1 : samples * events->attr.sample_period / 1000000 / 4;

	if (events->is_wall)
		return SWITCHES_MS;
	if (milliseconds > 50)
		return 50;
	return milliseconds > 1 ? (int)milliseconds : 1;
}

bool tool_attach_events_only_user(const struct tool_attach_events *events)
{
	return events->attr.sample_period > 0 && events->attr.exclude_kernel;
}

size_t tool_attach_events_threads(const struct tool_attach_events *events)
{
	return events->threads;
}
