/* SPDX-License-Identifier: MIT
 *
 * A list of the modules of this process: what the dynamic linker had loaded at one
 * moment, in the form of a MODULES block of the trace file.
 */
#ifndef INCSTACK_RECORDER_MODULES_H
#define INCSTACK_RECORDER_MODULES_H

#include "recorder.h"

/* What the dynamic linker has added and removed since the start. */
struct incstack__record_counts {
	uint64_t adds;
	uint64_t subs;
};

/* All zero: an empty list without memory. */
struct incstack__record_list {
	struct incstack__trace_modules block;
	struct incstack__record_counts counts;
};

struct incstack__record_entry {
	struct incstack__trace_module module;
	const unsigned char *at; /* of the module and its path in the list */
	size_t bytes;
};

/* The entry at *offset, which moves on to the next; offset 0 is the first. 0: there is none. */
int incstack__record_list_next(const struct incstack__record_list *list, size_t *offset,
			       struct incstack__record_entry *entry);
int incstack__record_list_same(const struct incstack__record_entry *a,
			       const struct incstack__record_entry *b);
/* Not 0: there is no memory. */
int incstack__record_list_add(struct incstack__record_list *list,
			      const struct incstack__record_entry *entry);
void incstack__record_list_free(struct incstack__record_list *list);
void incstack__record_list_write(struct incstack__record_list *list, uint32_t epoch);

/* Asks the dynamic linker, which may make the caller wait for a lock that every other
 * thread may hold: the caller holds none of ours. 0: nothing has changed since the list
 * with the counts `known`; 1: the list is new; -1: there is no memory for it. */
int incstack__record_list_collect(struct incstack__record_list *list,
				  struct incstack__record_counts known);

/* recorder_path.c: the absolute path of the file that is mapped at the address. 0: not known. */
int incstack__record_path(uint64_t address, char *path, size_t size);

/* recorder_linker.c. In a callback of dl_iterate_phdr, which told these counts. */
void incstack__record_linker_compare(struct incstack__record_counts counts);
/* Waits for no lock. Not 0: nothing has changed since these were the counts. */
int incstack__record_linker_shows(struct incstack__record_counts counts);

#endif
