/* SPDX-License-Identifier: MIT
 *
 * The timeline of a profile: when each context got its weights, by thread.
 */
#ifndef INCSTACK_PROFILE_TIMELINE_H
#define INCSTACK_PROFILE_TIMELINE_H

#include <stdint.h>

#include <incstack/profile.h>

/* ---- for the tool ------------------------------------------------------------- */

/* A thread of a timeline. */
struct incstack__profile_thread {
	const char *name; /* may be empty */
	uint64_t id;      /* the system's id of the thread; 0: unknown */
};

/* A part of a context's weight, and when it was added. */
struct incstack__profile_sample {
	uint64_t time_ns; /* when the sample was taken, in ns since an arbitrary moment */
	uint64_t weight;  /* of kind 0; if that is a time, the time before the sample */
	uint32_t thread;  /* its index in the list of threads */
	uint32_t node;    /* the node of the profile */
	uint32_t
		kind; /* the weight is also of this kind, which says what the thread did; 0: of none */
};

/* The threads of a profile, and their samples. */
struct incstack__profile_timeline {
	const struct incstack__profile_thread *threads; /* in the order of Firefox files */
	const struct incstack__profile_sample *samples; /* in any order */
	size_t thread_count;                            /* the number of threads */
	size_t sample_count;                            /* the number of samples */
};

/* Copies a timeline into the profile, in place of an earlier one; null: the profile has none.
 * HTML and Firefox files contain it. So do profiles that name_frames and fold_recursion make from this
 * one, but not those that select, average and overlay make. It is dropped when nodes are removed (prune,
 * shrink, clear).
 * Errors: EINVAL, ENOMEM, ELIMIT (2^32 threads), EFORMAT (a name is not UTF-8).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_set_timeline(struct incstack_profile *profile,
				   const struct incstack__profile_timeline *timeline);

/* ---- inside ------------------------------------------------------------------- */

struct incstack__timeline_thread {
	uint32_t name; /* its number in the profile */
	uint64_t id;
	size_t first; /* of its samples */
	size_t count;
};

struct incstack__timeline {
	struct incstack__timeline_thread *threads;
	size_t thread_count;
	struct incstack__profile_sample *samples; /* by thread, then by time */
	size_t sample_count;
};

/* Gives `into`, which has the node nodes[i] for node i of `from`, the timeline of `from`, if that has
 * one. */
int incstack__timeline_copy(const struct incstack_profile *from, const uint32_t *nodes,
			    struct incstack_profile *into);

/* Gives the samples of node i the node nodes[i]; removes them if that is INCSTACK_PROFILE_NONE. */
void incstack__timeline_move(struct incstack_profile *profile, const uint32_t *nodes);

/* Removes the timeline of a profile, if it has one. */
void incstack__timeline_drop(struct incstack_profile *profile);

#endif
