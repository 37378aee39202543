/* SPDX-License-Identifier: MIT
 *
 * What a thread does in the time that a tick stands for, and how much of each a context has.
 */
#ifndef INCSTACK_TRACEFILE_STATES_H
#define INCSTACK_TRACEFILE_STATES_H

#include <stdint.h>

/* The states of a thread. Without --wall, threads are only sampled while they are running. */
enum incstack__state {
	INCSTACK__STATE_RUNNING,
	INCSTACK__STATE_RUNNABLE, /* it waits for a processor */
	INCSTACK__STATE_LOCK,     /* it waits for another thread: a lock, a condition, an end */
	INCSTACK__STATE_IO,       /* it waits for input, output or an event of a descriptor */
	INCSTACK__STATE_SLEEP,
	INCSTACK__STATE_FAULT, /* the kernel reads or makes a page of its memory */
	INCSTACK__STATE_OTHER, /* it waits in another system call */
	INCSTACK__STATE_UNKNOWN,
	INCSTACK__STATES,
};

/* Returns what people call the state, or null. */
const char *incstack__state_name(uint32_t state);

/* A tick is written as an allocation. Its pointer is the state, so that the event is as small as it can be. */
static inline uint64_t incstack__state_pointer(enum incstack__state state)
{
	return (uint64_t)state << 4;
}

static inline enum incstack__state incstack__state_of(uint64_t pointer)
{
	return pointer >> 4 < INCSTACK__STATES ? (enum incstack__state)(pointer >> 4)
					       : INCSTACK__STATE_UNKNOWN;
}

/* The nanoseconds of each context in each state. */
struct incstack__times {
	uint64_t (*ns)[INCSTACK__STATES]; /* by context */
	uint32_t room;
};

/* Adds to a context. Returns 0 or INCSTACK_ENOMEM. */
int incstack__times_add(struct incstack__times *times, uint32_t context, enum incstack__state state,
			uint64_t ns);
/* Returns the nanoseconds of a context. */
const uint64_t *incstack__times_of(const struct incstack__times *times, uint32_t context);
void incstack__times_free(struct incstack__times *times);

#endif
