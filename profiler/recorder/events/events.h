/* SPDX-License-Identifier: MIT
 *
 * The events of every kind of recording, and the work that an event does for the recorder besides
 * (room.c, thunks.c).
 */
#ifndef INCSTACK_RECORDER_EVENTS_H
#define INCSTACK_RECORDER_EVENTS_H

#include "recorder/threads/threads.h"

/* events.c */
void incstack__record_jump(uintptr_t sp);
void incstack__record_thread_end(void);
void incstack__record_switch(const void *ucontext);
void incstack__record_thread(void);
void incstack__record_unload(enum incstack__unload what, const void *address);

/* Runs the function, with the calling thread's record, as an event. */
void incstack__record_as_event(void (*function)(struct incstack__record *, void *), void *argument);

/* room.c */
/* Whether the batch must be written before another event. */
bool incstack__record_is_full(const struct incstack__record *record);
/* Makes room for one more event and its trace. Returns false if there is none. */
bool incstack__record_make_room(struct incstack__record *record);
/* Walks the callers that samples have left open, so that they are in the spool after a kill. */
void incstack__record_complete(struct incstack__record *record);

/* thunks.c: makes thunks. `caller` is the frame that called the allocation function. */
void incstack__record_make_thunks(struct incstack__record *record, struct incstack__caller caller);

/* shown.c */
void incstack__record_shown(uintptr_t *slot);
void incstack__record_walk(uintptr_t *slot, bool by_caller);
void incstack__record_lookup(uintptr_t caller, bool certain);
const void *incstack__record_real_address(const void *address);

/* The functions of the stub's table that every kind of recording has. */
#define INCSTACK__IN_EVERY_TABLE \
	.on_jump = incstack__record_jump, .on_thread_end = incstack__record_thread_end, \
	.on_unload = incstack__record_unload, .on_walk = incstack__record_walk, \
	.on_lookup = incstack__record_lookup, .real_address = incstack__record_real_address, \
	.on_forbid = incstack__record_forbid, .on_close = incstack__record_on_close, \
	.on_replace = incstack__record_on_replace, .on_exit = incstack__record_exit

#endif
