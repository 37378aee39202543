/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the reader of trace files.
 */
#ifndef INCSTACK_TRACEFILE_INTERNAL_H
#define INCSTACK_TRACEFILE_INTERNAL_H

#include <incstack/incstack.h>

#include "base/table.h"
#include "read.h"

/* The modules that were loaded at one time, by ascending low. */
struct incstack__tracefile_epoch {
	uint32_t number;
	uint32_t count;
	struct incstack__tracefile_span {
		uint64_t low;
		uint64_t high;
		uint32_t module;
	} * spans;
};

struct incstack__tracefile_modules_table {
	struct incstack__tracefile_module_info *modules;
	uint32_t count;
	uint32_t room;
	struct incstack__table index;
	struct incstack__tracefile_epoch **epochs;
	uint32_t epoch_count;
};

/* The threads that have tallies, in ascending order of their numbers. */
struct incstack__tracefile_threads {
	struct incstack__tracefile_thread *all;
	size_t count;
};

/* Copies the header of a file. Returns what is wrong with it, or null. */
const char *incstack__tracefile_header_check(const unsigned char *file, size_t size,
					     struct incstack__tracefile_header *header);
/* Adds up the counter slots of a file. Returns the offset of the first damaged slot, or 0. */
uint64_t incstack__tracefile_slots_read(const unsigned char *file,
					struct incstack__tracefile_totals *totals);

/* Adds a thread; the numbers ascend. Each returns 0 or INCSTACK_ENOMEM. */
int incstack__tracefile_threads_add(struct incstack__tracefile_threads *threads, uint32_t number,
				    const struct incstack__tracefile_tally *tally);
/* Groups the threads by name. To be called after all threads were added. */
int incstack__tracefile_threads_group(struct incstack__tracefile_threads *threads);
const struct incstack__tracefile_thread *
incstack__tracefile_threads_find(const struct incstack__tracefile_threads *threads,
				 uint32_t number);
/* Adds the tally of a thread to the sums. */
void incstack__tracefile_tally_add(struct incstack__tracefile_totals *totals,
				   const struct incstack__tracefile_tally *tally);

/* Each of these returns null, or a text that describes what is wrong with the payload. It is
 * incstack__tracefile_no_memory if there is no memory. It is incstack__tracefile_too_many if there
 * are too many modules; everything else is used then. */
extern const char incstack__tracefile_no_memory[];
extern const char incstack__tracefile_too_many[];
const char *incstack__tracefile_modules_read(struct incstack__tracefile_modules_table *table,
					     const unsigned char *payload, size_t length);
const char *incstack__tracefile_chunk_read(struct incstack__tracefile_chunk *chunk,
					   const struct incstack__tracefile_modules_table *table,
					   const unsigned char *payload, size_t length);
int incstack__tracefile_chunk_begin(const unsigned char *payload, size_t length, uint64_t *stamp);
/* Decodes the event at *place and advances *place. Returns 1, or 0 if there is only a stamp for the
 * next event, or -1 if the event is malformed. */
int incstack__tracefile_event_take(const struct incstack__tracefile_chunk *chunk,
				   struct incstack__tracefile_place *place,
				   struct incstack__tracefile_event *event);
const struct incstack__tracefile_module_info *
incstack__tracefile_modules_of(const struct incstack__tracefile_modules_table *table, uint64_t code,
			       uint64_t *pc, int *exact);
void incstack__tracefile_modules_free(struct incstack__tracefile_modules_table *table);
/* Adds what the chunk has to the sums. */
void incstack__tracefile_chunk_count(const struct incstack__tracefile_chunk *chunk,
				     struct incstack__tracefile_totals *totals);
void incstack__tracefile_chunk_free(struct incstack__tracefile_chunk *chunk);

#endif
