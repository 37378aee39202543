/* SPDX-License-Identifier: MIT
 *
 * One cell of the table: a depth and a number of changed frames. All peers take turns in short
 * windows inside one descent of the workload.
 */
#ifndef INCSTACK_BENCH_MEASURE_H
#define INCSTACK_BENCH_MEASURE_H

#include "peers.h"

struct cell {
	int frame_pointers;
	unsigned depth, popped;
};

struct ratio {
	double median, min, max;
};

enum { BATCHES_MAX = 100 };

struct result {
	struct cell cell;
	int batches; /* that gave a ratio */
	/* Of each batch: the time per trace without that of the workload (for PEER_NONE: per turn),
	 * and the ratio peer / ours. */
	double times[PEER_COUNT][BATCHES_MAX], ratios[PEER_COUNT][BATCHES_MAX];
	double ns[PEER_COUNT]; /* the medians of the times */
	struct ratio ratio[PEER_COUNT];
	uint32_t distance; /* of our barriers at the end */
	double returns;    /* intercepted per trace */
};

struct plan {
	int rounds; /* each has one window of each peer, in random order */
	double window_us;
	int ours_alone; /* no peers but ours, and the workload alone */
};

/* Whether a peer can walk the stacks of a cell. */
int peer_fits(enum peer peer, const struct cell *cell);

/* Compares what the peers see, pc by pc. Returns 0, or -1 after a message. */
int cell_compare(const struct cell *cell);

/* Adds a batch of rounds to the result, which is zero before the first batch. The medians of a
 * batch give one ratio. Returns 0, or -1 after a message. */
int cell_measure(const struct cell *cell, const struct plan *plan, struct result *result);

/* Returns what our walk costs in one cell divided by what it costs in the other. It measures pairs
 * of short runs, one right after the other, because the load of the machine changes within seconds.
 * The result is zero if no pair was good. */
struct ratio cells_compare_ours(const struct cell *dear, const struct cell *cheap,
				const struct plan *plan);

/* Takes this many traces with one peer, without a clock: for callgrind. */
int cell_repeat(const struct cell *cell, enum peer peer, uint64_t traces);

#endif
