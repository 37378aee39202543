/* SPDX-License-Identifier: MIT
 *
 * The layout of a spool: the file FILE.live beside the trace file FILE. The recorder maps it
 * shared, so its content outlives the process, however that ends. It holds what the threads have
 * recorded since their last batches, in the form that they work with, pointers included.
 * docs/trace-file.md explains it in prose.
 */
#ifndef INCSTACK_TRACEFILE_SPOOL_FORMAT_H
#define INCSTACK_TRACEFILE_SPOOL_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

#define INCSTACK__SPOOL_SUFFIX ".live"
#define INCSTACK__SPOOL_MAGIC 0x0a4556494c434e49ull /* "INCLIVE\n" */
#define INCSTACK__SPOOL_VERSION 4u
#define INCSTACK__SPOOL_HEADER_BYTES 4096u
#define INCSTACK__SPOOL_SEGMENTS 96u
#define INCSTACK__SPOOL_RECORD_MAGIC 0x44524f4345524349ull

/* A part of the file, and its address in the process. */
struct incstack__spool_segment {
	uint64_t address;
	uint64_t bytes;
	uint64_t offset;
};

/* The first page. A value that changes is stored only after the data that it refers to. */
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

/* A record is a page; its events follow. The first words are the recorder's own. One of them, at
 * USED_OFFSET, is the number of bytes of the events. Everything else that a reader needs is at
 * LIVE_OFFSET. */
#define INCSTACK__SPOOL_RECORD_BYTES 4096u
#define INCSTACK__SPOOL_EVENT_BYTES (32u << 10)
#define INCSTACK__SPOOL_EVENT_BYTES_MOST (4u << 20) /* if the events do not follow their record */
#define INCSTACK__SPOOL_WALK_BYTES_MOST (16u << 20)
#define INCSTACK__SPOOL_USED_OFFSET 16u
#define INCSTACK__SPOOL_LIVE_OFFSET 128u

struct incstack__spool_live {
	uint64_t magic;  /* SPOOL_RECORD_MAGIC: in use */
	uint64_t next;   /* offset of the record made before this record, 0: none */
	uint64_t tree;   /* address of the tree of the traces (incstack_stack_tree) */
	uint32_t thread; /* its number */
	uint32_t serial; /* of its last batch */
	uint32_t epoch;  /* in which its events were recorded */
	uint32_t reserved;
	uint64_t refused;                        /* samples */
	uint64_t dropped;                        /* events */
	struct incstack__tracefile_tally tally;  /* as it was when the events began */
	struct incstack__tracefile_tally newest; /* the last made; it may include the events */
	uint64_t events;      /* their address if they do not follow the record, else 0 */
	uint64_t event_bytes; /* room for them there */
	uint64_t walks;       /* address of the walks of their traces (walks.h), or 0 */
	uint64_t walk_bytes;  /* room for them there */
	uint64_t walk_count;
	_Atomic uint64_t ticks[INCSTACK__TICKS];
};

_Static_assert(sizeof(struct incstack__spool_header) <= INCSTACK__SPOOL_HEADER_BYTES, "header");
_Static_assert(INCSTACK__SPOOL_LIVE_OFFSET + sizeof(struct incstack__spool_live) <=
		       INCSTACK__SPOOL_RECORD_BYTES,
	       "record");

#endif
