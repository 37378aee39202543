/* SPDX-License-Identifier: MIT
 *
 * Reads a trace file. No byte of it is trusted. open checks the header and the checksum of
 * every block. next hands out the events of all threads in the order of their stamps and
 * decodes one batch per thread at a time. Damaged parts are skipped and counted; the first
 * damage is remembered with its offset.
 *
 * It allocates with malloc, so it is not for use inside the recorded program. One thread at a
 * time may use a reader.
 */
#ifndef INCSTACK_TRACEFILE_READ_H
#define INCSTACK_TRACEFILE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"
#include "identity.h"
#include "moment.h"
#include "resolved.h"

#define INCSTACK__TRACEFILE_NO_PARENT UINT32_MAX
#define INCSTACK__TRACEFILE_MODULES_MAX 65534u /* distinct ones: a code has 16 bits for it */

struct incstack__tracefile_problem {
	const char *what; /* null: none */
	uint64_t offset;  /* in the file */
};

struct incstack__tracefile_module_info {
	uint64_t bias;
	uint64_t low;
	uint64_t high;
	char *path;
	struct incstack__identity identity;
};

/* One decoded batch. The parent of an object is the next object, or lies before the object's
 * run. So every chain ends. */
struct incstack__tracefile_chunk {
	uint32_t thread;
	uint32_t objects;
	uint32_t traces;
	uint64_t *pc;
	uint32_t *parent; /* index, or INCSTACK__TRACEFILE_NO_PARENT */
	uint8_t *flags;   /* from the head: flags, and where the parent is */
	uint32_t *node;   /* for the user; zero at first */
	uint32_t last;    /* for the user; zero at first, kept from batch to batch */
	uint64_t latest;  /* a pointer for the user; zero at first, kept from batch to batch */
	uint32_t *top;    /* object index of each trace */
	const struct incstack__tracefile_epoch *epoch; /* null: no modules known */
	struct incstack__tracefile_place {
		const unsigned char *at; /* the next event */
		uint64_t stamp;          /* of the event before it */
		uint64_t trace;          /* of the next allocation that does not name its trace */
	} place;
	const unsigned char *event_end; /* everything up to here is well-formed */
};

struct incstack__tracefile_event {
	uint32_t kind;
	uint32_t thread;
	uint64_t stamp;
	uint64_t pointer;
	uint64_t size;
	uint64_t trace; /* index in chunk, or INCSTACK__TRACEFILE_NO_TRACE */
	/* Valid until the next call. */
	struct incstack__tracefile_chunk *chunk;
};

struct incstack__tracefile_totals {
	uint64_t blocks;
	uint64_t batches;
	uint64_t traces;           /* in the well-formed batches that were read */
	uint64_t started;          /* sum of the counters area */
	uint64_t interrupting;     /* likewise: events that were not recorded */
	uint64_t in_return;        /* likewise: lost samples of handlers, see the slot */
	uint64_t unwound;          /* likewise: traces that were compared with libunwind's */
	uint64_t failed_calls;     /* likewise: system calls that a tick has interrupted */
	uint64_t notes;            /* of all slots: bits of enum incstack__tracefile_note */
	uint64_t end;              /* ENDED and a wait status; 0: unknown */
	uint64_t memory_peak;      /* of the process, in bytes; 0: unknown */
	uint64_t memory_anonymous; /* when the process ended, in bytes */
	uint64_t damaged_slots;    /* whose counts were left out */
	uint64_t truncated_bytes;  /* of a last block that is incomplete */
	uint64_t damaged;          /* blocks that were skipped, inconsistent slots */
	uint64_t truncated;        /* objects whose callers are unknown, gaps included */
	uint64_t gaps;             /* callers that were not walked when the process was killed */
	uint64_t repeated;         /* batches that came twice and were skipped */
	uint64_t threads;
	struct incstack__tracefile_tally
		tally; /* the sum of each thread's last tally; flags are combined with or */
	uint64_t tallies;
};

/* A thread of the recorded process. */
struct incstack__tracefile_thread {
	uint32_t number; /* the recorder's */
	uint32_t group;  /* the index of the first thread with this name */
	uint64_t tid;    /* the kernel's number; 0: unknown */
	char name[INCSTACK__TRACEFILE_NAME_BYTES + 1]; /* printable; empty: unknown */
};

struct incstack__tracefile_reader;

/* Adds to a sum. The file may be damaged, so the sum stays at the largest number instead of
 * wrapping. */
static inline void incstack__tracefile_count(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

/* Whether any thread has set the note, one of enum incstack__tracefile_note. */
static inline bool incstack__tracefile_has_note(const struct incstack__tracefile_totals *totals,
						unsigned note)
{
	return (totals->notes >> note & 1) != 0;
}

/* Reads from memory, which must stay valid and unchanged until close. Returns 0, INCSTACK_ENOMEM,
 * or INCSTACK_EINVAL with the reason in *problem if this is no readable trace file. */
int incstack__tracefile_open(const void *data, size_t size,
			     struct incstack__tracefile_reader **reader,
			     struct incstack__tracefile_problem *problem);
void incstack__tracefile_close(struct incstack__tracefile_reader *reader);

const struct incstack__tracefile_header *
incstack__tracefile_reader_header(const struct incstack__tracefile_reader *reader);
const struct incstack__tracefile_totals *
incstack__tracefile_reader_totals(const struct incstack__tracefile_reader *reader);
/* Returns which pages were in memory after the last event, or null if nobody has looked. */
const struct incstack__moment *
incstack__tracefile_reader_moment(const struct incstack__tracefile_reader *reader);
/* Returns what is known about a thread, or null. */
const struct incstack__tracefile_thread *
incstack__tracefile_reader_thread(const struct incstack__tracefile_reader *reader, uint32_t number);
/* Returns the name of a group of threads, or an empty text. */
const char *incstack__tracefile_reader_name(const struct incstack__tracefile_reader *reader,
					    uint64_t group);
/* Returns the names that the file has itself. It may have none. */
const struct incstack__resolved *
incstack__tracefile_reader_resolved(const struct incstack__tracefile_reader *reader);
/* Returns the first damage. Its `what` is null if there is none. */
struct incstack__tracefile_problem
incstack__tracefile_reader_problem(const struct incstack__tracefile_reader *reader);

/* Reads the next event. Returns 1, 0 at the end, or INCSTACK_ENOMEM. */
int incstack__tracefile_next(struct incstack__tracefile_reader *reader,
			     struct incstack__tracefile_event *event);

/* Returns the code of an object's pc, which is the module and the offset. So a pc in one mapping of
 * a module has one code at all times. The upper bits are 0 if no module is known. */
uint64_t incstack__tracefile_code(const struct incstack__tracefile_chunk *chunk, uint32_t object);
/* Returns the module of a code, or null. *pc is the address in memory; *exact tells whether it is
 * an exact pc rather than a return address. */
const struct incstack__tracefile_module_info *
incstack__tracefile_code_module(const struct incstack__tracefile_reader *reader, uint64_t code,
				uint64_t *pc, int *exact);

#endif
