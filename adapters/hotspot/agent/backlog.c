/* SPDX-License-Identifier: MIT
 *
 * How much memory the traces use that are not in the profile yet; see backlog.h.
 */
#include "backlog.h"

void agent_backlog_open(struct agent_backlog *backlog, uint64_t bytes_max, uint64_t taken)
{
	*backlog = (struct agent_backlog){.bytes_max = bytes_max, .taken = taken, .done = taken};
}

void agent_backlog_took(struct agent_backlog *backlog, uint64_t taken)
{
	uint64_t seen = atomic_load(&backlog->taken);

	while (seen < taken && !atomic_compare_exchange_weak(&backlog->taken, &seen, taken))
		;
}

bool agent_backlog_exceeds(const struct agent_backlog *backlog, double share)
{
	const uint64_t done = atomic_load(&backlog->done), taken = atomic_load(&backlog->taken);

	return (double)(taken - done) * (double)atomic_load(&backlog->each) >
	       share * (double)backlog->bytes_max;
}

uint64_t agent_backlog_begin(const struct agent_backlog *backlog)
{
	return atomic_load(&backlog->taken);
}

/* Traces that were taken before the retrieve began are not waiting any more, also those that were lost because
 * their thread had ended. The size falls slowly, because large traces often come again. */
void agent_backlog_end(struct agent_backlog *backlog, uint64_t begun, uint64_t count,
		       uint64_t bytes)
{
	const uint64_t before = atomic_load(&backlog->each), least = before - before / 8;
	const uint64_t each = count ? bytes / count : 0;

	atomic_store(&backlog->each, each > least ? each : least);
	atomic_store(&backlog->done, begun);
}
