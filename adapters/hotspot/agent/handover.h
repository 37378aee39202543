/* SPDX-License-Identifier: MIT
 *
 * The traces of threads that have ended, until they come to the collector. The thread that ends puts
 * them here. The thread that retrieves takes them. Neither waits for the other, because bringing traces
 * to the collector takes up to some seconds.
 */
#ifndef AGENT_HANDOVER_H
#define AGENT_HANDOVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "incstack_jvmti.h"

struct agent_handed {
	struct agent_handed *next;
	struct incstack_jvmti_traces *traces;
	uint64_t bytes;
	char root[]; /* the name that the traces hang below */
};

struct agent_handover {
	_Atomic(struct agent_handed *) newest;
	_Atomic uint64_t bytes; /* of all traces that wait here, about */
	uint64_t bytes_max;
	pthread_rwlock_t gate; /* read-locked by threads that end */
};

void agent_handover_open(struct agent_handover *handover, uint64_t bytes_max);

/* Called by a thread that ends: before it retrieves its traces, and when they are here or were given up. */
void agent_handover_enter(struct agent_handover *handover);
void agent_handover_leave(struct agent_handover *handover);

/* Waits until no thread is between the two, and lets none in until the gate is opened again. */
void agent_handover_shut(struct agent_handover *handover);
void agent_handover_reopen(struct agent_handover *handover);

/* About the memory that a tree uses. */
uint64_t agent_tree_bytes(const struct incstack_tree *tree);

/* The number of traces of all threads. */
uint64_t agent_handover_count(const struct incstack_jvmti_traces *traces);

/* Returns false if the traces do not fit into the limit, or if there is no memory. Then they stay the
 * caller's. */
bool agent_handover_put(struct agent_handover *handover, struct incstack_jvmti_traces *traces,
			const char *root);

/* Takes all traces; null: none. The caller frees each one, and releases its traces. */
struct agent_handed *agent_handover_take(struct agent_handover *handover);

#endif
