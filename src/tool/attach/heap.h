/* SPDX-License-Identifier: MIT
 *
 * Allocations, made from the calls that the kernel reports.
 */
#ifndef INCSTACK_TOOL_ATTACH_HEAP_H
#define INCSTACK_TOOL_ATTACH_HEAP_H

#include "kernel/report.h"
#include "output/file.h"

struct tool_attach_heap;

struct tool_attach_heap *tool_attach_heap_new(struct tool_attach_file *file,
					      struct tool_attach_space *space,
					      struct tool_attach_threads *threads);
void tool_attach_heap_free(struct tool_attach_heap *heap); /* also null */
void tool_attach_heap_hit(struct tool_attach_heap *heap, const struct tool_attach_report *report);
void tool_attach_heap_lost(struct tool_attach_heap *heap, enum tool_attach_hit_kind kind,
			   uint64_t count);
/* The thread has ended. */
void tool_attach_heap_ended(struct tool_attach_heap *heap, struct tool_attach_thread *thread);
/* No hits follow. */
void tool_attach_heap_end(struct tool_attach_heap *heap);

#endif
