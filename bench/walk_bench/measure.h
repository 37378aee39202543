/* SPDX-License-Identifier: MIT
 *
 * One cell of the table: a depth and a number of changed frames, all peers
 * interleaved in short windows inside one descent of the workload.
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
	/* Of each: per trace, the workload taken off (of PEER_NONE: per turn); peer / ours. */
	double times[PEER_COUNT][BATCHES_MAX], ratios[PEER_COUNT][BATCHES_MAX];
	double ns[PEER_COUNT]; /* of them the medians */
	struct ratio ratio[PEER_COUNT];
	int32_t distance; /* of our barriers at the end */
	double returns;   /* intercepted per trace */
};

struct plan {
	int rounds; /* each has one window of each peer, in random order */
	double window_us;
	int ours_alone; /* no peers but ours, and the workload alone */
};

/* Whether a peer can walk the stacks of a cell. */
int peer_fits(enum peer peer, const struct cell *cell);

/* Compares what the peers see, pc by pc. 0, or -1 after a message. */
int cell_compare(const struct cell *cell);

/* Adds a batch of rounds, whose medians give one ratio, to the result, which was zero before
 * the first. 0, or -1 after a message. */
int cell_measure(const struct cell *cell, const struct plan *plan, struct result *result);

/* What ours costs in one cell over what it costs in the other: pairs of short runs, one right
 * after the other, for what else the machine does changes within seconds. Zero: none was
 * good. */
struct ratio cells_compare_ours(const struct cell *dear, const struct cell *cheap,
				const struct plan *plan);

/* One peer, so many traces, no clock: for callgrind. */
int cell_repeat(const struct cell *cell, enum peer peer, uint64_t traces);

#endif
