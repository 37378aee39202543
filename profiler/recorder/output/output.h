/* SPDX-License-Identifier: MIT
 *
 * Where a recording goes: the trace file with its counters, and the spool, whose memory outlives the
 * process.
 */
#ifndef INCSTACK_RECORDER_OUTPUT_H
#define INCSTACK_RECORDER_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "recorder/recording/recording.h"
#include "tracefile/spool_format.h"

/* descriptor.c */
/* Creates the file, or empties it. Negative: that failed, or another process writes the file. */
int incstack__record_create(const char *path, struct stat *status);
/* Returns the file's descriptor. If the program has closed it, the file is opened again.
 * Negative: that failed, and errno tells why. */
int incstack__record_descriptor(struct stat *status);
void incstack__record_close(void);
/* Returns the descriptor if it is in the range that the program is about to close, else -1. */
int incstack__record_on_close(unsigned low, unsigned high);
/* The program is about to use the number for another file. */
void incstack__record_on_replace(int fd);

/* file.c */
/* Called with signals blocked, as is incstack__record_write. Non-zero: errno tells why there is no
 * file. */
int incstack__record_open(const char *path);
/* Returns the note for a child or an image that has no file because of that error. */
enum incstack__tracefile_note incstack__record_unrecorded(int error);
/* Called before the process executes another program. Leaves a note if that program cannot write a
 * trace file. */
void incstack__record_note_unwritable(void);
int incstack__record_write(const void *data, size_t bytes);
/* Writes the parts with one system call, and changes the array. */
int incstack__record_write_parts(struct iovec *parts, int count);
/* Whether the limit on file sizes leaves room for so many bytes. */
bool incstack__record_has_room(size_t bytes);
/* Leaves a note in the trace file of another process or process image. */
void incstack__record_note_in(const char *path, enum incstack__tracefile_note note);

/* slot.c */
/* Returns a slot that no other thread uses or, if none is left, the shared slot. */
struct incstack__tracefile_slot *incstack__slot_take(void);
void incstack__slot_give(const struct incstack__tracefile_slot *slot); /* `slot` may be null */
/* Whether other threads may count in the slot at the same time. */
bool incstack__slot_is_shared(const struct incstack__tracefile_slot *slot);

/* resident.c: notes in the trace file how much memory the process has had. */
void incstack__record_resident(void);

/* moment.c: looks at the pages of the process, and writes what was found. Nothing happens if the user does not want
 * it. Called with signals blocked. */
struct incstack__moment_block;
struct incstack__record_moment {
	void *memory;
	size_t room;
	struct incstack__moment_block *block;
};
void incstack__record_moment_look(struct incstack__record_moment *moment);
void incstack__record_moment_write(struct incstack__record_moment *moment);

/* spool.c, spool_file.c: a function that fails or returns null leaves a note for the report. */
enum { INCSTACK__CHUNK_BYTES = 64 << 10 };
/* Makes the spool beside the trace file, whose header has the time start_ns. */
void incstack__spool_open(const char *trace, uint64_t start_ns);
void incstack__spool_remove(void);
/* Renames the spool of another process image together with its trace file. */
void incstack__spool_rename(const char *trace, const char *new_trace);
/* In a child: gives up the spool, which belongs to the parent. */
void incstack__spool_leave(void);
/* Returns the page of a record, with room for EVENT_BYTES of events behind it, or null. *is_new: the
 * page was never used. */
void *incstack__spool_page(bool *is_new);
void incstack__spool_page_release(void *memory);
/* Adds the page of a record, which is new, to the list that the spool's reader finds. */
void incstack__spool_list(struct incstack__spool_live *live);
/* Returns a room of that size, a power of two from ROOM_LEAST to WALK_BYTES_MOST, or null. */
enum { INCSTACK__SPOOL_ROOM_LEAST = 2 * INCSTACK__SPOOL_EVENT_BYTES };
void *incstack__spool_room(size_t bytes);
void incstack__spool_room_release(void *memory, size_t bytes); /* `memory` may be null */
/* Enlarges the spool so that it has memory for the handlers of ticks in all threads. */
void incstack__spool_ahead(void);
/* Makes the next enlargement larger by what a handler did not find. Called in handlers. */
void incstack__spool_want(size_t bytes);
/* The embedder's allocate_traces and release_traces. */
void *incstack__spool_chunk(void *context, size_t bytes);
void incstack__spool_chunk_release(void *context, void *memory, size_t bytes);

/* In a child: replaces the shared memory of the spool by a private copy. */
void incstack__spool_make_private(void);

#endif
