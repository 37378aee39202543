/* SPDX-License-Identifier: MIT
 *
 * The events and traces of a thread that were not written yet.
 */
#ifndef INCSTACK_TOOL_ATTACH_LOG_H
#define INCSTACK_TOOL_ATTACH_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <incstack/incstack.h>

#include "threads.h"
#include "tracefile/write.h"

/* The limits of a batch. */
enum {
	TOOL_ATTACH_LOG_BYTES = 32 << 10,
	TOOL_ATTACH_LOG_TRACES = 2048,
	TOOL_ATTACH_LOG_OBJECTS = 8 * TOOL_ATTACH_FRAMES
};

struct tool_attach_log {
	struct tool_attach_log *newer, *older; /* by their last use */
	pid_t tid;
	uint32_t number; /* of the thread in the file */
	uint32_t serial;
	struct incstack__tracefile_log log;
	struct incstack__tracefile_tally tally;
	size_t object_count;
	size_t trace_count;
	/* The objects of the newest trace, the outermost first. */
	size_t known_count;
	struct incstack_frame_object *known[TOOL_ATTACH_FRAMES];
	struct incstack_frame_object objects[TOOL_ATTACH_LOG_OBJECTS];
	struct incstack_trace traces[TOOL_ATTACH_LOG_TRACES];
	uint64_t events[TOOL_ATTACH_LOG_BYTES / sizeof(uint64_t)];
};

/* A block of memory that a thread has allocated. */
struct tool_attach_block {
	uint64_t time;
	uint64_t pointer; /* 0: not known */
	uint64_t bytes;
};

/* Returns null if there is no memory. */
struct tool_attach_log *tool_attach_log_new(pid_t tid, uint32_t number);
/* Whether there is room for an event, and for a trace of so many frames. */
bool tool_attach_log_has_room(const struct tool_attach_log *log, size_t count);
/* Adds an allocation that counts as so many ticks, with the trace or the reason why there is none. */
void tool_attach_log_alloc(struct tool_attach_log *log, const struct tool_attach_block *block,
			   uint64_t ticks, const struct tool_attach_trace *trace);
/* Makes the batch of all that was added, and a tally with these flags, and forgets the events and traces.
 * Returns null if there is no memory. Otherwise the batch, which has *bytes, is to be freed. */
void *tool_attach_log_batch(struct tool_attach_log *log, uint32_t epoch, uint32_t flags,
			    int64_t *bytes);

#endif
