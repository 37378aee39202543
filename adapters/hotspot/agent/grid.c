/* SPDX-License-Identifier: MIT
 *
 * The times at which samples are due.
 */
#include "grid.h"

#include "clock.h"

void agent_grid_open(struct agent_grid *grid, uint64_t start, uint64_t interval_ns,
		     uint64_t duration_ns)
{
	*grid = (struct agent_grid){.interval_ns = interval_ns,
				    .end = duration_ns ? start + duration_ns : UINT64_MAX,
				    .next = start + interval_ns};
}

bool agent_grid_take(struct agent_grid *grid, uint64_t *due, uint64_t *missed)
{
	const uint64_t interval = grid->interval_ns;
	const uint64_t now = agent_now(), until = now < grid->end ? now : grid->end;
	uint64_t next = atomic_load(&grid->next);

	do {
		if (next > until)
			return false;
		*missed = (until - next) / interval;
		*due = next + *missed * interval;
	} while (!atomic_compare_exchange_weak(&grid->next, &next, *due + interval));
	return true;
}

uint64_t agent_grid_skip(struct agent_grid *grid)
{
	const uint64_t now = agent_now(), next = atomic_load(&grid->next);
	uint64_t missed;

	if (next >= now)
		return 0;
	missed = (now - next) / grid->interval_ns + 1;
	atomic_store(&grid->next, next + missed * grid->interval_ns);
	return missed;
}
