/* SPDX-License-Identifier: MIT
 *
 * Collects the events and traces of a thread. The traces of a thread share the frames that they have in
 * common.
 */
#include <stdlib.h>

#include "log.h"

enum {
	TALLY_BYTES =
		sizeof(struct incstack__tracefile_block) + sizeof(struct incstack__tracefile_tally)
};
enum { EVENT_MOST = INCSTACK__TRACEFILE_WIDE_BYTES + INCSTACK__TRACEFILE_WORD_BYTES };

struct tool_attach_log *tool_attach_log_new(pid_t tid, uint32_t number)
{
	struct tool_attach_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->tid = tid;
	log->number = number;
	log->tally.mode = INCSTACK_MODE_FULL;
	incstack__tracefile_log_init(&log->log, log->events, sizeof(log->events));
	return log;
}

bool tool_attach_log_has_room(const struct tool_attach_log *log, size_t count)
{
	return log->log.size - log->log.used >= EVENT_MOST &&
	       log->trace_count < TOOL_ATTACH_LOG_TRACES &&
	       TOOL_ATTACH_LOG_OBJECTS - log->object_count >= count;
}

static bool is_object(const struct incstack_frame_object *object,
		      const struct tool_attach_frame *frame)
{
	return object->function == frame->pc && object->address == frame->address &&
	       object->flags == frame->flags;
}

/* Adds a trace. It shares the outer frames of the trace before. Its top is always new. */
static void add_trace(struct tool_attach_log *log, const struct tool_attach_frame *frames,
		      size_t count)
{
	struct incstack_trace *trace = &log->traces[log->trace_count++];
	size_t same = 0;

	while (same + 1 < count && same < log->known_count &&
	       is_object(log->known[same], &frames[count - 1 - same]))
		same++;
	for (size_t i = same; i < count; i++) {
		const struct tool_attach_frame *frame = &frames[count - 1 - i];
		struct incstack_frame_object *object = &log->objects[log->object_count++];

		*object = (struct incstack_frame_object){
			.parent = i > 0 ? log->known[i - 1] : NULL,
			.function = frame->pc,
			.address = frame->address,
			.position = -1,
			.flags = frame->flags,
		};
		log->known[i] = object;
	}
	log->known_count = count;
	*trace = (struct incstack_trace){.next = trace + 1, .top = log->known[count - 1]};
	log->tally.samples++;
	log->tally.truncated += (frames[count - 1].flags & INCSTACK_OBJECT_TRUNCATED) != 0;
}

/* The trace of an event comes next. */
void tool_attach_log_alloc(struct tool_attach_log *log, const struct tool_attach_block *block,
			   uint64_t ticks, const struct tool_attach_trace *trace)
{
	const bool has_trace = trace->what == INCSTACK__TICK_TAKEN;

	incstack__tracefile_put_alloc(&log->log, block->time, block->pointer, block->bytes,
				      has_trace ? log->trace_count : INCSTACK__TRACEFILE_NO_TRACE);
	log->tally.ticks[trace->what] += ticks;
	if (has_trace)
		add_trace(log, trace->frames, trace->count);
}

static void clear(struct tool_attach_log *log)
{
	incstack__tracefile_log_clear(&log->log);
	log->object_count = log->trace_count = log->known_count = 0;
}

void *tool_attach_log_batch(struct tool_attach_log *log, uint32_t epoch, uint32_t flags,
			    int64_t *bytes)
{
	const struct incstack__tracefile_batch_of of = {log->number, epoch, ++log->serial};
	const struct incstack_tree tree = {
		.traces = log->trace_count > 0 ? log->traces : NULL,
		.count = log->trace_count,
		.objects = log->object_count,
	};
	const size_t size = incstack__tracefile_batch_bytes(&tree, log->log.used) + TALLY_BYTES;
	unsigned char *block = malloc(size);

	if (!block)
		return NULL;
	if (log->trace_count > 0)
		log->traces[log->trace_count - 1].next = NULL;
	log->tally.flags = flags;
	*bytes = incstack__tracefile_batch(block, size, of, &log->log, &tree);
	if (*bytes > 0)
		*bytes += incstack__tracefile_tally(block + *bytes, size - (size_t)*bytes,
						    log->number, &log->tally);
	clear(log);
	return block;
}
