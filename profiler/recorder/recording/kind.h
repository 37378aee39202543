/* SPDX-License-Identifier: MIT
 *
 * What differs between a recording of the heap and a CPU profile. Another kind of recording is another
 * table, and no condition elsewhere.
 */
#ifndef INCSTACK_RECORDER_KIND_H
#define INCSTACK_RECORDER_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/preload.h"

struct incstack__record;

struct incstack__kind {
	uint32_t number; /* enum incstack__tracefile_kind */
	/* Whether samples are taken in signal handlers, which allocate nothing, read no file and
	 * wait for no lock. So memory is set aside, and code is looked at, before a handler needs
	 * them. */
	bool samples_in_handlers;
	/* The system calls that only this kind makes: a list that ends with -1. */
	const int *system_calls;
	const struct incstack__recorder *table; /* what the stub calls */
	void (*configured)(void);               /* before the recording begins */
	void (*begin)(void);                    /* in the thread that starts a recording */
	void (*begin_thread)(struct incstack__record *record); /* with the recording's lock */
	void (*lack_record)(void); /* the calling thread cannot have a record */
	void (*end_record)(struct incstack__record *record);
	/* Null, or called before the batch of another thread is written, which is held, with the recording's lock. */
	void (*held)(struct incstack__record *record);
	void (*stop)(void); /* before the last batches are written, with the recording's lock */
	void (*restricted)(void); /* a seccomp filter will be loaded, and recording goes on */
	/* The CPU time of the record's thread while it was recorded; 0: it is not measured. */
	uint64_t (*cpu_ns)(const struct incstack__record *record);
};

/* The kind of the recording, which the start chooses once. It is not wiped by a fork, because a child records
 * as its parent did. */
extern const struct incstack__kind *incstack__kind;

extern const struct incstack__kind incstack__kind_heap; /* heap_kind.c */
extern const struct incstack__kind incstack__kind_cpu;  /* cpu_kind.c */
extern const struct incstack__kind incstack__kind_wall; /* wall_kind.c */

#endif
