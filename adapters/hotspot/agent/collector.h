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

struct agent_counts {
	uint64_t traces;
	uint64_t
		lost; /* samples that were wanted and not taken, or for which there was no memory */
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
	_Atomic(uint64_t) lost;                /* more of them, without the lock */
	struct incstack_frame_object *objects; /* of one walk */
	size_t objects_room;
	const struct incstack_frame_object **way; /* the path of the last trace of a tree */
	size_t way_room;
};

/* Returns whether there is a profile now. */
bool agent_collector_open(struct agent_collector *collector);
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
void agent_collector_lose(struct agent_collector *collector, uint64_t samples);

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
