/* SPDX-License-Identifier: MIT
 *
 * A moment: which pages of a process were in memory when somebody looked. It is a block of the trace file, so that a
 * reader can tell which bytes of the live blocks were resident. docs/trace-file.md explains it.
 */
#ifndef INCSTACK_TRACEFILE_MOMENT_H
#define INCSTACK_TRACEFILE_MOMENT_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

/* What the kernel says of a page. */
enum incstack__page {
	INCSTACK__PAGE_ABSENT, /* was never touched, or was given back */
	INCSTACK__PAGE_OWN,    /* anonymous memory of this process alone */
	INCSTACK__PAGE_COMMON, /* anonymous; another process has it, too (fork), or it was only read */
	INCSTACK__PAGE_FILE, /* of a file, or of shared memory */
	INCSTACK__PAGE_SWAPPED,
	INCSTACK__PAGES,
};

enum incstack__area_kind {
	INCSTACK__AREA_ANONYMOUS,
	INCSTACK__AREA_HEAP,    /* what brk gives */
	INCSTACK__AREA_STACK,   /* of the main thread */
	INCSTACK__AREA_FILE,    /* of a file, or shared */
	INCSTACK__AREA_SPECIAL, /* of the kernel */
	INCSTACK__AREA_CLOSED,  /* anonymous, and the process may not access it */
	INCSTACK__AREA_KINDS,
};

/* The block: this, and then each area with its runs. */
struct incstack__moment_head {
	uint32_t page_bytes;
	uint32_t flags;
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint64_t took_ns;
	uint64_t calls; /* allocations that began while somebody looked */
	/* What the kernel counts itself, in bytes (/proc/PID/smaps_rollup); all 0: not known. */
	uint64_t resident;
	uint64_t anonymous;
	uint64_t lazy; /* of the anonymous memory: given back, and not taken yet (MADV_FREE) */
	uint64_t swapped;
	uint32_t areas;
	uint32_t runs;
};
/* Some pages were not looked at: there are too many, or no memory for what was found. */
#define INCSTACK__MOMENT_PARTIAL 1u
/* The process had ended its recording. */
#define INCSTACK__MOMENT_OF_END 2u

struct incstack__moment_area {
	uint64_t low; /* areas ascend */
	uint64_t high;
	uint32_t kind; /* enum incstack__area_kind */
	uint32_t runs; /* that follow; the pages behind the last one are absent */
};

/* A run is a word: so many pages in a row, and their state. */
#define INCSTACK__RUN_STATE_BITS 3u
#define INCSTACK__RUN_PAGES_MAX (UINT32_MAX >> INCSTACK__RUN_STATE_BITS)

static inline uint32_t incstack__run_pages(uint32_t run)
{
	return run >> INCSTACK__RUN_STATE_BITS;
}

static inline enum incstack__page incstack__run_state(uint32_t run)
{
	return (enum incstack__page)(run & ((1u << INCSTACK__RUN_STATE_BITS) - 1));
}

_Static_assert(sizeof(struct incstack__moment_head) == 72, "moment");
_Static_assert(sizeof(struct incstack__moment_area) == 24, "area");

/* ---- looking ------------------------------------------------------------------------------ */

/* Open files of /proc/PID, and how the caller reads a file from an offset: the recorder does not use libc. */
struct incstack__moment_source {
	int maps;
	int pagemap;
	int rollup; /* smaps_rollup; -1: there is none */
	int64_t (*read)(int fd, void *to, size_t bytes, uint64_t offset);
};

/* A block as it is written; the areas follow. */
struct incstack__moment_block {
	struct incstack__tracefile_block block;
	struct incstack__moment_head head;
};

/* Room for most processes. With less, the moment may become partial. */
#define INCSTACK__MOMENT_ROOM (64u << 20)
#define INCSTACK__MOMENT_ROOM_LEAST (1u << 20)

/* Looks at the process, and makes a block in `memory`, which is aligned to 8 and has at least
 * INCSTACK__MOMENT_ROOM_LEAST bytes. It neither allocates nor locks, and takes less than a KiB of the stack. Returns the
 * block, or null if the process cannot be read. The times, the calls and flags are the caller's. */
struct incstack__moment_block *incstack__moment_look(const struct incstack__moment_source *source,
						     void *memory, size_t room);
/* Completes the block, when its head is complete. Returns its size. */
size_t incstack__moment_seal(struct incstack__moment_block *block);

/* ---- reading ------------------------------------------------------------------------------ */

struct incstack__moment {
	struct incstack__moment_head head;
	struct incstack__moment_area *areas; /* null: there is no moment */
	uint32_t *run;                       /* of all areas, one after the other */
};

/* Reads a payload that is not trusted. Returns null, or what is wrong: incstack__tracefile_no_memory, or another text.
 * Free *moment in each case. */
const char *incstack__moment_read(struct incstack__moment *moment, const unsigned char *payload,
				  size_t length);
/* The same for a moment that replaces another one, which stays if the payload is damaged. */
const char *incstack__moment_replace(struct incstack__moment *moment, const unsigned char *payload,
				     size_t length);
void incstack__moment_free(struct incstack__moment *moment);

#endif
