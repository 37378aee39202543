/* SPDX-License-Identifier: MIT
 *
 * Reads trace files together with what processes that ended without writing have left beside them.
 */
#ifndef INCSTACK_TOOL_TRACE_MAP_H
#define INCSTACK_TOOL_TRACE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "resolve.h"

/* Maps a trace file, and after its last block what its spool still has. *written becomes the time when the
 * file was last written. Returns 0, or prints why it failed. */
int tool_trace_map(const char *file, void **data, size_t *size, struct timespec *written);
void tool_trace_unmap(void *data, size_t size);

/* Moves what the spool of an ended process has into its trace file. */
void tool_trace_settle(const char *file);

/* Packs a trace file that nobody writes any more, with names if they are not null. Returns false if that is
 * impossible; then the file stays as it is. */
bool tool_trace_pack(const char *file, const struct tool_resolved *names);
/* Writes a trace file with names as another file. Returns an exit status. */
int tool_trace_name_copy(const char *file, const struct tool_resolved *names, const char *output);

/* What somebody saw of a trace file whose process still runs: first the counters, then the spool, then the size of the
 * file. */
struct tool_trace_seen {
	const char *file;
	unsigned char *counters; /* the counters area; null: as they are when the file is copied */
	unsigned char *spool;    /* aligned to 64; its content is destroyed; null: there is none */
	size_t spool_bytes;
	size_t bytes;       /* of the file */
	const void *moment; /* a block that comes last */
	size_t moment_bytes;
};
/* Writes a trace file that has what the process had recorded by then. Returns 0, INCSTACK_E*, or INCSTACK_EIO with its
 * errno. */
int tool_trace_copy(const struct tool_trace_seen *seen, FILE *out);

#endif
