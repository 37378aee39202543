/* SPDX-License-Identifier: MIT
 *
 * A list of the modules that the dynamic linker had loaded in this process at one moment, in the
 * format of a MODULES block of the trace file.
 */
#ifndef INCSTACK_RECORDER_MODULES_H
#define INCSTACK_RECORDER_MODULES_H

#include <stdbool.h>
#include <link.h>

#include "recorder/code/code.h"
#include "tracefile/identity.h"
#include "tracefile/write.h"

/* How many objects the dynamic linker has added and removed since the start. */
struct incstack__record_counts {
	uint64_t adds;
	uint64_t subs;
};

/* A list that is all zero is empty and has no memory. */
struct incstack__record_list {
	struct incstack__tracefile_modules block;
	struct incstack__record_counts counts;
};

struct incstack__record_entry {
	struct incstack__tracefile_module module;
	const unsigned char *at; /* the module, its path and its identity in the list */
	size_t bytes;
};

/* Reads the entry at *offset and moves *offset to the next. Offset 0 is the first. Returns false if
 * there is no entry. */
bool incstack__record_list_next(const struct incstack__record_list *list, size_t *offset,
				struct incstack__record_entry *entry);
bool incstack__record_list_same(const struct incstack__record_entry *a,
				const struct incstack__record_entry *b);
/* Adds an entry. Returns non-zero if there is no memory. */
int incstack__record_list_add(struct incstack__record_list *list,
			      const struct incstack__record_entry *entry);
void incstack__record_list_free(struct incstack__record_list *list);
void incstack__record_list_write(struct incstack__record_list *list, uint32_t epoch);

/* Collects the modules from the dynamic linker. That may wait for a lock that any other thread may
 * hold, so the caller must hold none of the recorder's locks. Returns 0 if nothing has changed
 * since the counts were `known`, 1 if the list is new, and -1 if there is no memory. */
int incstack__record_list_collect(struct incstack__record_list *list,
				  struct incstack__record_counts known);

/* identity.c: which build the module is. Called in a callback of dl_iterate_phdr. */
void incstack__record_identity(const struct dl_phdr_info *info,
			       struct incstack__identity *identity);

/* linker.c: called in a callback of dl_iterate_phdr, with the counts that it reports. */
void incstack__record_linker_compare(struct incstack__record_counts counts);
/* Returns true if nothing has changed since these were the counts. Waits for no lock. */
bool incstack__record_linker_shows(struct incstack__record_counts counts);

/* unload.c. True: no module has come or gone since the previous call with this variable. Each call
 * updates the variable. Waits for no lock. */
bool incstack__record_modules_are(struct incstack__record_counts *counts);
/* True: no module has come or gone since the newest list. Waits for no lock. */
bool incstack__record_modules_unchanged(void);

#endif
