/* SPDX-License-Identifier: MIT
 *
 * A recording: what is allocated and freed, where, from start to stop.
 */
#ifndef RECORDING_H
#define RECORDING_H

#include "threads.h"

struct recording_sums {
	uint64_t bytes, calls, temporary, live_bytes, live_calls, peak_bytes;
	uint64_t unknown;              /* blocks that were not remembered, for lack of memory */
	uint64_t mismatches, compared; /* of the check mode */
};
extern struct recording_sums recording_sums;

/* Called by the allocators of Python. `is_locked` says that the thread has Python's lock. */
void recording_allocated(void *block, size_t size, bool is_locked);
void recording_freed(void *block);
/* Before and after a block is resized. `to` is null if that has failed. */
struct recording_move {
	size_t size;
	uint32_t context;
	bool is_known;
};
void recording_moving(void *from, struct recording_move *move);
void recording_moved(const struct recording_move *move, void *from, void *to, size_t size,
		     bool is_locked);

/* Called with Python's lock. */
enum recording_mode {
	RECORDING_BLOCKS,  /* each block of memory */
	RECORDING_CHECKED, /* the same, and each stack is compared */
	RECORDING_NUMBERS, /* only the contexts that others ask for */
};
bool recording_start(enum recording_mode mode);
void recording_stop(void);
bool recording_is_on(void);
uint32_t recording_context(bool is_locked);

/* Called with the recording's lock: makes `peak_bytes` of each context right, until the next event. */
void recording_complete_peak(void);

#endif
