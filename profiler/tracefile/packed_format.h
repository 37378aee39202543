/* SPDX-License-Identifier: MIT
 *
 * The layout of a packed trace file: the header page, whose version has the flag PACKED, and groups. A group
 * stands for some bytes of the trace file behind the header page. docs/trace-file.md explains it.
 */
#ifndef INCSTACK_TRACEFILE_PACKED_FORMAT_H
#define INCSTACK_TRACEFILE_PACKED_FORMAT_H

#include <stdint.h>

#include "format.h"

#define INCSTACK__TRACEFILE_PACKED (1u << 31) /* a flag of the version */

#define INCSTACK__PACKED_MAGIC 0x4b415049u /* "IPAK" */

/* The whole groups before a cut can be read, so a group is small. */
#define INCSTACK__PACKED_GROUP_BYTES (256u << 10)

/* zstd needs so much of what it has unpacked before. */
#define INCSTACK__PACKED_WINDOW_LOG 22

/* A file may become so many times as large. The packer leaves a file as it is that would become larger
 * still. */
#define INCSTACK__PACKED_RATIO_MOST 2048u

struct incstack__packed_group {
	uint32_t magic;
	uint32_t bytes;   /* that follow: a part of one zstd frame, which all groups share */
	uint32_t raw;     /* bytes of the trace file */
	uint32_t columns; /* bytes that the part unpacks to: the columns' lengths and the columns */
	uint64_t checksum; /* of this head, with this field 0, and the bytes that follow */
};

/* What a group consists of. */
enum incstack__packed_piece {
	INCSTACK__PACKED_BATCH, /* a BATCH, field by field */
	INCSTACK__PACKED_BLOCK, /* another block, whose payload is copied */
	INCSTACK__PACKED_BYTES, /* bytes that are copied */
	INCSTACK__PACKED_PIECES,
};

/* The fields of all pieces of a group, each kind in a column of its own. Most are numbers of 7 bits in a byte, the
 * lowest first; the top bit is set if more follow. */
enum incstack__packed_column {
	INCSTACK__PACKED_PIECE,     /* bytes: the kinds of pieces */
	INCSTACK__PACKED_HEAD,      /* the heads of blocks and batches, lengths of copied bytes */
	INCSTACK__PACKED_COPY,      /* what is copied */
	INCSTACK__PACKED_KIND,      /* bytes: the kinds of events; 4 is a time word */
	INCSTACK__PACKED_STAMP,     /* what is added to the stamp */
	INCSTACK__PACKED_TIME,      /* time words, as differences */
	INCSTACK__PACKED_SIZE,      /* of small allocations */
	INCSTACK__PACKED_LARGE,     /* of other allocations, and which trace they have */
	INCSTACK__PACKED_ALLOCATED, /* bytes: how the pointer of an allocation was guessed */
	INCSTACK__PACKED_FREED,     /* bytes: how the pointer of a deallocation was guessed */
	INCSTACK__PACKED_POINTER,   /* pointers that were not guessed, as differences */
	INCSTACK__PACKED_WIDE,      /* bytes: wide events */
	INCSTACK__PACKED_OBJECT,    /* bytes: the heads of frame objects */
	INCSTACK__PACKED_PC,        /* bytes: the rest of their pcs */
	INCSTACK__PACKED_PARENT, /* how many frames lie between the previous trace's top and a parent */
	INCSTACK__PACKED_REPEATED, /* bytes: how far back repeated traces are */
	INCSTACK__PACKED_COLUMNS,
};

static inline uint64_t incstack__packed_sum(struct incstack__packed_group group, const void *bytes)
{
	group.checksum = 0;
	return incstack__tracefile_sum(incstack__tracefile_sum(0, &group, sizeof(group)), bytes,
				       group.bytes);
}

_Static_assert(sizeof(struct incstack__packed_group) == 24, "group");

#endif
