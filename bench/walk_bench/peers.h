/* SPDX-License-Identifier: MIT
 *
 * The ways to get the stack of the workload that are measured. Each is a function that the workload
 * calls as its sample.
 */
#ifndef INCSTACK_BENCH_PEERS_H
#define INCSTACK_BENCH_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/native.h>

#include "workload.h"

enum peer {
	PEER_NONE, /* the workload alone */
	PEER_OURS, /* mode patch, adaptive distance */
	PEER_UNW_BACKTRACE,
	PEER_LIBGCC,
	PEER_GLIBC,
	PEER_FP_WALK,
	PEER_OWN_WALK, /* the library in mode full */
	PEER_COUNT
};

extern const char *const peer_names[PEER_COUNT];

enum { FRAMES_MAX = 1024 + 64 };

/* The state of a peer that uses the library. Traces are retrieved when there are `interval` of
 * them, a number that is adapted to their size. */
struct tracer {
	struct incstack_runtime *runtime;
	struct incstack_stack *stack;
	uint64_t interval;
	uint64_t pending; /* not yet retrieved */
	uint64_t upkeep;  /* the number of pending traces at which room is made */
	size_t room;      /* bytes that a trace may take */
	uint64_t errors;
	uint64_t traces; /* retrieved */
	uint64_t incomplete;
};

/* Global, so that a walker, which gets only the workload, finds it fast. */
struct peers {
	struct tracer ours, full;
	void *pcs[FRAMES_MAX];
	size_t count;
	uint64_t errors;
	uint32_t distance; /* of our barriers; set before peers_open */
};
extern struct peers peers;

/* Finds the functions and creates the two stacks for traces of `depth` frames on the calling
 * thread. Returns 0, or -1 after a message. */
int peers_open(unsigned depth);
void peers_close(void);

/* The sample function of a peer. */
void (*peer_sample(enum peer peer))(struct workload *);

/* Called before and after a window of the peer. Barriers exist only between peer_begin and peer_end
 * of PEER_OURS. peer_finish belongs to what is measured: it retrieves the open traces. */
void peer_begin(enum peer peer);
void peer_finish(enum peer peer);
void peer_end(enum peer peer);

/* Writes the return addresses that the last sample of the peer saw, youngest first, and returns how
 * many there are. For our peers it retrieves. */
size_t peer_last(enum peer peer, uintptr_t *pcs, size_t max);

/* Returns how many traces of the two tracers failed or are incomplete. */
uint64_t peers_faults(void);

#endif
