/* SPDX-License-Identifier: MIT
 *
 * The times at which samples are due, at equal intervals. Each time is taken by one thread, or missed. Knows
 * nothing of the JVM.
 */
#ifndef AGENT_GRID_H
#define AGENT_GRID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All times are of CLOCK_MONOTONIC, in ns. The first two members do not change. */
struct agent_grid {
	uint64_t interval_ns;
	uint64_t end; /* no time is taken after it */
	_Atomic uint64_t next;
};

/* The first time is one interval after the start. A duration of 0 has no end. */
void agent_grid_open(struct agent_grid *grid, uint64_t start, uint64_t interval_ns,
		     uint64_t duration_ns);

/* Takes the newest time that has passed, and those before it, which are missed. Returns false if there is none:
 * another thread was late, and has taken it. */
bool agent_grid_take(struct agent_grid *grid, uint64_t *due, uint64_t *missed);

/* Leaves out the times that have passed. Returns how many there were. Called while no other thread takes times. */
uint64_t agent_grid_skip(struct agent_grid *grid);

#endif
