/* SPDX-License-Identifier: MIT
 *
 * Reads a heap trace file, of which no byte is trusted. open checks the header
 * and every block's checksum; next hands out the events of all threads in the
 * order of their stamps, decoding one batch per thread at a time. What is damaged
 * is skipped, counted, and the first damage is remembered with its offset.
 *
 * Not for use inside the target: allocates with malloc. One thread at a time.
 */
#ifndef INCSTACK_HEAP_TRACE_READ_H
#define INCSTACK_HEAP_TRACE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "trace_format.h"

#define INCSTACK__TRACE_NO_PARENT UINT32_MAX
#define INCSTACK__TRACE_MODULES_MAX 65534u /* distinct ones: a code has 16 bits for it */

struct incstack__trace_problem {
	const char *what; /* null: none */
	uint64_t offset;  /* in the file */
};

struct incstack__trace_module_info {
	uint64_t bias;
	uint64_t low;
	uint64_t high;
	char *path;
	uint32_t hash;
};

/* One decoded batch. An object's parent is the next object or one before the run
 * of objects it stands in, so the chains end. */
struct incstack__trace_chunk {
	uint32_t thread;
	uint32_t objects;
	uint32_t traces;
	uint64_t *pc;
	uint32_t *parent; /* index, or INCSTACK__TRACE_NO_PARENT */
	uint8_t *flags;   /* of the head: flags, and where the parent is */
	uint32_t *node;   /* for the user; zero at first */
	uint32_t last;    /* for the user; zero at first, kept from batch to batch */
	uint64_t latest;  /* the same, for a pointer */
	uint32_t *top;    /* object index of each trace */
	const struct incstack__trace_epoch *epoch; /* null: no modules known */
	struct incstack__trace_place {
		const unsigned char *at; /* the next event */
		uint64_t stamp;          /* of the one before it */
		uint64_t trace;          /* what it has if it does not say */
	} place;
	const unsigned char *event_end; /* everything up to here is well-formed */
};

struct incstack__trace_event {
	uint32_t kind;
	uint32_t thread;
	uint64_t stamp;
	uint64_t pointer;
	uint64_t size;
	uint64_t trace; /* index in chunk, or INCSTACK__TRACE_NO_TRACE */
	/* Valid until the next call. */
	struct incstack__trace_chunk *chunk;
};

struct incstack__trace_totals {
	uint64_t blocks;
	uint64_t batches;
	uint64_t traces;          /* in well-formed batches that were reached */
	uint64_t started;         /* sum of the counters area */
	uint64_t interrupting;    /* the same: events that were not recorded */
	uint64_t unwound;         /* the same: traces that were compared with libunwind's */
	uint64_t notes;           /* of all slots: bits of enum incstack__trace_note */
	uint64_t end;             /* ENDED and a wait status; 0: not known */
	uint64_t damaged_slots;   /* whose counts were left out */
	uint64_t truncated_bytes; /* of a last block that was not written whole */
	uint64_t damaged;         /* blocks skipped, slots that make no sense */
	uint64_t truncated;       /* objects whose callers are unknown, gaps included */
	uint64_t gaps;            /* callers that were not walked when the process was killed */
	uint64_t repeated;        /* batches that came twice and were skipped */
	uint64_t threads;
	struct incstack__trace_tally tally; /* the last of each thread, summed; flags or-ed */
	uint64_t tallies;
};

struct incstack__trace_reader;

/* Counts come from a file that may be damaged: a sum stays at the largest number. */
static inline void incstack__trace_count(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

/* Reads from memory that stays valid and unchanged until close. Returns 0;
 * INCSTACK_EINVAL where this is no trace file that can be read, with the reason
 * in *problem; INCSTACK_ENOMEM. */
int incstack__trace_open(const void *data, size_t size, struct incstack__trace_reader **reader,
			 struct incstack__trace_problem *problem);
void incstack__trace_close(struct incstack__trace_reader *reader);

const struct incstack__trace_header *
incstack__trace_reader_header(const struct incstack__trace_reader *reader);
const struct incstack__trace_totals *
incstack__trace_reader_totals(const struct incstack__trace_reader *reader);
/* The first damage; what is null where there is none. */
struct incstack__trace_problem
incstack__trace_reader_problem(const struct incstack__trace_reader *reader);

/* The next event: 1, 0 at the end, INCSTACK_ENOMEM. */
int incstack__trace_next(struct incstack__trace_reader *reader,
			 struct incstack__trace_event *event);

/* Where code is, independent of when: the same function in the same mapping of a
 * module has one code. 0 in the upper bits: no module known. */
uint64_t incstack__trace_code(const struct incstack__trace_chunk *chunk, uint32_t object);
/* The module of a code, or null. *pc is its address in memory, *exact whether it
 * is one where execution stood rather than a return address. */
const struct incstack__trace_module_info *
incstack__trace_code_module(const struct incstack__trace_reader *reader, uint64_t code,
			    uint64_t *pc, int *exact);

#endif
