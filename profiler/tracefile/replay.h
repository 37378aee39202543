/* SPDX-License-Identifier: MIT
 *
 * Replays the events of a trace file: how much each calling context allocated,
 * how much of it was live at the peak, and how much was never freed.
 */
#ifndef INCSTACK_TRACEFILE_REPLAY_H
#define INCSTACK_TRACEFILE_REPLAY_H

#include "cct.h"
#include "curve.h"
#include "read.h"
#include "resident.h"
#include "shares.h"
#include "states.h"

struct incstack__replay_live {
	uint64_t pointer; /* 0: an empty place */
	uint64_t bytes;
	uint32_t node;
	uint32_t thread; /* its place in shares.threads[] */
};

/* A tick of a CPU profile. */
struct incstack__replay_sample {
	uint64_t stamp;
	uint64_t weight : 60;
	uint64_t state : 4; /* enum incstack__state */
	uint32_t thread;
	uint32_t node;
};
/* Further samples are not kept; then there is no timeline. */
#define INCSTACK__REPLAY_SAMPLES_MAX (1u << 24)

struct incstack__replay {
	struct incstack__cct cct;
	uint64_t interval;
	uint32_t kind;  /* enum incstack__tracefile_kind. In a CPU profile, `calls` are samples,
			* `bytes` are nanoseconds, and nothing is live */
	int by_thread;  /* whether contexts begin with the name of their thread */
	uint64_t calls; /* this and the next do not exceed INT64_MAX */
	uint64_t bytes;
	uint64_t live;
	uint64_t peak;
	uint64_t peak_stamp;
	uint64_t peak_number; /* how often a new peak was reached */
	uint64_t frees;
	uint64_t temporary;     /* freed before their thread's next allocation; not when sampling */
	uint64_t unknown_frees; /* of pointers that were not recorded: normal when sampling */
	uint64_t implied_frees; /* a live pointer was handed out again */
	uint64_t traces;
	uint64_t no_trace; /* allocations whose sample was refused */
	uint64_t depth_sum;
	uint64_t popped_sum;   /* frames of a trace that the thread's next trace does not share */
	uint64_t popped_count; /* traces that were compared with the thread's previous trace */
	uint64_t steps;        /* that these comparisons may still take */
	uint32_t newest_node;  /* of the newest allocation; the root if there is none */
	uint32_t newest_thread;
	const struct incstack__tracefile_reader *reader;

	struct incstack__curve curve;       /* of the live memory; a CPU profile has none */
	struct incstack__resident resident; /* if the trace has a moment */
	struct incstack__shares shares;     /* none of its sums is larger than those above */

	struct incstack__times times;            /* of a CPU profile, by state */
	struct incstack__replay_sample *samples; /* in the order of their stamps */
	size_t sample_count;

	struct incstack__replay_live *table;
	uint64_t seed; /* so that no trace file can choose where in the table its pointers go */
	uint64_t table_size;
	uint64_t table_used;
};

/* Reads all events. If `by_thread` is set, all threads with the same name share a node, and their
 * contexts lie below it. Returns 0, INCSTACK_EINVAL or INCSTACK_ENOMEM. Free *replay in each
 * case. */
int incstack__replay_run(struct incstack__replay *replay, struct incstack__tracefile_reader *reader,
			 int by_thread);
void incstack__replay_free(struct incstack__replay *replay);

/* replay_resident.c: returns how many bytes an allocation of that size stands for. */
double incstack__replay_weight(const struct incstack__replay *replay, uint64_t bytes);
/* Finds which bytes of the blocks that are live now were in memory. Returns 0 or INCSTACK_ENOMEM. */
int incstack__replay_resident(struct incstack__replay *replay);

double incstack__replay_depth_mean(const struct incstack__replay *replay);

#endif
