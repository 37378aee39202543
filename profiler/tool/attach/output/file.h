/* SPDX-License-Identifier: MIT
 *
 * The trace file of a process without the recorder.
 */
#ifndef INCSTACK_TOOL_ATTACH_FILE_H
#define INCSTACK_TOOL_ATTACH_FILE_H

#include <stdbool.h>

#include "log.h"
#include "threads.h"
#include "tool/attach/process/space.h"
#include "tool/record/record.h"
#include "tracefile/states.h"

struct tool_attach_file;

/* Begins the trace file of a process that has these modules. Returns null after a message if that fails. */
struct tool_attach_file *tool_attach_file_new(const struct tool_record_options *options, pid_t pid,
					      const struct tool_attach_space *space);
/* From now on the code addresses are those of these modules. Returns false if there is no room for their
 * list. */
bool tool_attach_file_modules(struct tool_attach_file *file, const struct tool_attach_space *space);
/* Adds an allocation, with the trace of the thread or the reason why there is none. */
void tool_attach_file_alloc(struct tool_attach_file *file, struct tool_attach_thread *thread,
			    const struct tool_attach_block *block);
/* Adds ticks of a state, which share the trace of the thread. */
void tool_attach_file_ticks(struct tool_attach_file *file, struct tool_attach_thread *thread,
			    uint64_t time, uint64_t ticks, enum incstack__state state);
void tool_attach_file_free_block(struct tool_attach_file *file, struct tool_attach_thread *thread,
				 uint64_t time, uint64_t pointer);
/* Counts allocations of which nothing else is known. */
void tool_attach_file_count(struct tool_attach_file *file, enum incstack__tick what,
			    uint64_t count);
/* Counts deallocations that were not seen. */
void tool_attach_file_dropped(struct tool_attach_file *file, uint64_t count);
/* Sets a bit of enum incstack__tracefile_note. */
void tool_attach_file_note(struct tool_attach_file *file, unsigned note);
/* Adds a block that is complete. */
void tool_attach_file_block(struct tool_attach_file *file, const void *block, size_t bytes);
/* moment.c: adds which pages of the process are in memory. */
void tool_attach_file_moment(struct tool_attach_file *file);
/* Adds ticks of unknown threads, for whose samples there was no room. */
void tool_attach_file_lost(struct tool_attach_file *file, uint64_t time, uint64_t count);
/* The thread has ended: what is left of it is written. */
void tool_attach_file_ended(struct tool_attach_file *file, struct tool_attach_thread *thread);
/* Writes what is left. Returns non-zero, after a message, if something could not be written. */
int tool_attach_file_end(struct tool_attach_file *file, uint64_t cpu_ns);
/* Whether a write has failed. */
bool tool_attach_file_failed(const struct tool_attach_file *file);
void tool_attach_file_free(struct tool_attach_file *file); /* also null */

#endif
