/* SPDX-License-Identifier: MIT
 *
 * Collects walks and trees in one profile, and counts. Knows nothing of the JVM. Any thread may
 * call the functions.
 */
#ifndef AGENT_COLLECTOR_H
#define AGENT_COLLECTOR_H

#include <pthread.h>
#include <stdbool.h>

#include <incstack/profile.h>

struct agent_frame {
	uint64_t method;
	int32_t bci; /* -1: unknown */
};

/* Why a sample that was wanted is not in the profile. */
enum agent_loss {
	AGENT_LOSS_LATE,    /* the sampler got no processor until the next time had come */
	AGENT_LOSS_CLOSED,  /* no thread reached a poll until the next time had come */
	AGENT_LOSS_REFUSED, /* the JVM gave no trace */
	AGENT_LOSS_ENDED,   /* the thread ended before its traces were retrieved */
	AGENT_LOSS_BEHIND,  /* traces come faster than they are brought to the profile */
	AGENT_LOSS_MEMORY,  /* there was no memory, or all that the agent may use was in use */
	AGENT_LOSS_COUNT
};

struct agent_counts {
	uint64_t traces;
	uint64_t lost[AGENT_LOSS_COUNT];
	uint64_t truncated;
	uint64_t depth_sum;
	uint64_t popped_sum, popped_count; /* frames that the next trace of a thread lacks */
};

/* What the collector remembers of a thread: its last walk. All zero at first. */
struct agent_last_walk {
	struct agent_frame *frames; /* innermost first */
	uint32_t count, room;
};

struct agent_collector {
	pthread_mutex_t lock;
	struct incstack_profile *profile;
	struct agent_counts counts;
	_Atomic uint64_t lost[AGENT_LOSS_COUNT]; /* more of them, without the lock */
	uint32_t nodes_max;                      /* beyond it, light contexts are folded */
	struct incstack_frame_object *objects;   /* of one walk */
	size_t objects_room;
	const struct incstack_frame_object **way; /* the path of the last trace of a tree */
	size_t way_room;
};

uint64_t agent_counts_lost(const struct agent_counts *counts);
void agent_counts_add(struct agent_counts *sum, const struct agent_counts *more);

/* The profile will use about `memory` bytes at most, also while it is written. Returns whether there
 * is a profile now. */
bool agent_collector_open(struct agent_collector *collector, uint64_t memory);
void agent_collector_close(struct agent_collector *collector);

/* Adds one full walk, innermost frame first, with at least one frame. `root` is a name that it
 * hangs below; null: none. `last` may be null. */
void agent_collector_walk(struct agent_collector *collector, const char *root,
			  const struct agent_frame *frames, uint32_t count, bool truncated,
			  struct agent_last_walk *last);

/* Adds the traces of one thread. */
void agent_collector_tree(struct agent_collector *collector, const char *root,
			  const struct incstack_tree *tree);

/* Counts samples that were lost. Never waits. */
void agent_collector_lose(struct agent_collector *collector, enum agent_loss why, uint64_t samples);

/* Hands over the profile and its counts, and starts a new one unless it is the last part. If there
 * is no memory for a new one, it returns null and keeps everything. The caller frees the
 * profile. */
struct incstack_profile *agent_collector_take(struct agent_collector *collector, bool last,
					      struct agent_counts *counts);

/* Calls the function while nothing is added. Returns its result; INCSTACK_EINVAL if the last
 * part was taken. */
int agent_collector_read(struct agent_collector *collector,
			 int (*read)(void *context, const struct incstack_profile *profile,
				     const struct agent_counts *counts),
			 void *context);

void agent_last_walk_free(struct agent_last_walk *last);

#endif
