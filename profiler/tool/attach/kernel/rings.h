/* SPDX-License-Identifier: MIT
 *
 * Shared by the files on the buffers that the kernel fills: two make them, one reads them.
 */
#ifndef INCSTACK_TOOL_ATTACH_RINGS_H
#define INCSTACK_TOOL_ATTACH_RINGS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/attach/process/functions.h"

enum { TOOL_ATTACH_PAGE = 4096 };
enum { TOOL_ATTACH_SWITCH_PERIOD = 1 };      /* distinguishes samples of switches from ticks */
enum { TOOL_ATTACH_RECORD_MOST = 64 << 10 }; /* bytes of a record */

/* The registers of a hit, by the kernel's numbers: rax, rdx, rsi, rdi, rbp, rsp, rip. */
enum { TOOL_ATTACH_HIT_REGISTERS = 1u << 0 | 0x1f8u };

/* The buffer of a processor: a page that describes it, then the records. */
struct tool_attach_ring {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	size_t bytes;
	int fd;
	uint64_t passed; /* the time of the record that was passed on last */
	uint64_t tail;   /* the position up to which records were found */
};

struct tool_attach_event {
	pid_t tid;
	int fd;
	uint64_t id;
	bool is_switch; /* of the processor to another thread */
};

/* The buffers of hits, by kind and processor. */
struct tool_attach_hits {
	bool is_open;
	int error; /* an error number */
	size_t processors;
	struct tool_attach_ring *rings;
	size_t ring_count;
	bool has_new;                         /* a child was forked since the last look */
	uint64_t lost[TOOL_ATTACH_HIT_KINDS]; /* as reported so far */
};

struct tool_attach_events {
	struct perf_event_attr attr;
	struct perf_event_attr switch_attr; /* if is_wall */
	bool is_wall;
	pid_t pid;
	struct tool_attach_ring *rings;
	size_t ring_count;
	size_t ring_bytes;
	struct tool_attach_event *events;
	size_t count;
	size_t early; /* events of the threads that were there at the first look */
	size_t threads;
	struct tool_attach_found *found; /* records that were not passed on yet */
	size_t found_room;
	struct tool_attach_hits hits;
	uint64_t lost; /* records for which there was no room, as reported so far */
};

/* A record in a buffer. */
struct tool_attach_found {
	uint64_t time;
	struct tool_attach_ring *ring;
	uint64_t at;
};

#endif
