/* SPDX-License-Identifier: MIT
 *
 * The layout of a spool, FILE.live beside the trace file FILE: memory that the recorder
 * shares with the kernel's page cache, and which therefore outlives the process whatever
 * ends it. In it lie what the threads have recorded since their last batches, as it is
 * while they run, pointers and all. docs/trace-file.md explains it in prose.
 */
#ifndef INCSTACK_HEAP_SPOOL_FORMAT_H
#define INCSTACK_HEAP_SPOOL_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "trace_format.h"

#define INCSTACK__SPOOL_SUFFIX ".live"
#define INCSTACK__SPOOL_MAGIC 0x0a4556494c434e49ull /* "INCLIVE\n" */
#define INCSTACK__SPOOL_VERSION 2u
#define INCSTACK__SPOOL_HEADER_BYTES 4096u
#define INCSTACK__SPOOL_SEGMENTS 96u
#define INCSTACK__SPOOL_RECORD_MAGIC 0x44524f4345524349ull

/* A part of the file, and where the process had it in its memory. */
struct incstack__spool_segment {
	uint64_t address;
	uint64_t bytes;
	uint64_t offset;
};

/* The first page. What may change is stored when it is complete. */
struct incstack__spool_header {
	uint64_t magic;
	uint32_t version;
	uint32_t segments; /* in use */
	uint64_t pid;      /* these two as in the trace file's header */
	uint64_t start_ns;
	uint64_t process_start; /* of that pid, as in /proc/PID/stat: field 22 */
	uint64_t records;       /* offset of the newest record, 0: none */
	struct incstack__spool_segment segment[INCSTACK__SPOOL_SEGMENTS];
};

/* A record is a page, its events follow. The first words are the recorder's own, among them
 * the number of bytes of the events; at LIVE_OFFSET is what a reader needs besides. */
#define INCSTACK__SPOOL_RECORD_BYTES 4096u
#define INCSTACK__SPOOL_EVENT_BYTES (32u << 10)
#define INCSTACK__SPOOL_EVENT_BYTES_MOST (4u << 20) /* where they do not follow it */
#define INCSTACK__SPOOL_WALK_BYTES_MOST (16u << 20)
#define INCSTACK__SPOOL_USED_OFFSET 16u
#define INCSTACK__SPOOL_LIVE_OFFSET 128u

struct incstack__spool_live {
	uint64_t magic;  /* SPOOL_RECORD_MAGIC: in use */
	uint64_t next;   /* offset of the record that was made before this one, 0: none */
	uint64_t tree;   /* address of the tree of the traces (incstack_stack_tree) */
	uint32_t thread; /* its number */
	uint32_t serial; /* of its last batch */
	uint32_t epoch;  /* in which its events were recorded */
	uint32_t reserved;
	uint64_t refused;                    /* samples */
	uint64_t dropped;                    /* events */
	struct incstack__trace_tally tally;  /* as it was when the events began */
	struct incstack__trace_tally newest; /* the last that was made, maybe with the events */
	uint64_t events;      /* their address if they do not follow the record, else 0 */
	uint64_t event_bytes; /* room for them there */
	uint64_t walks;       /* address of those of their traces (walks.h), or 0 */
	uint64_t walk_bytes;  /* room for them there */
	uint64_t walk_count;
};

_Static_assert(sizeof(struct incstack__spool_header) <= INCSTACK__SPOOL_HEADER_BYTES, "header");
_Static_assert(INCSTACK__SPOOL_LIVE_OFFSET + sizeof(struct incstack__spool_live) <=
		       INCSTACK__SPOOL_RECORD_BYTES,
	       "record");

#endif
