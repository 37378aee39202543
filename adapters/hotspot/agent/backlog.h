/* SPDX-License-Identifier: MIT
 *
 * How much memory the traces use that the JVM has taken and that are not in the profile yet. Where traces come
 * faster than they can be brought there, each retrieve would take longer than the one before, and find more
 * traces. So no samples are requested while there are too many.
 */
#ifndef AGENT_BACKLOG_H
#define AGENT_BACKLOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct agent_backlog {
	uint64_t bytes_max;
	_Atomic uint64_t taken; /* traces since the JVM began, as it said last */
	_Atomic uint64_t done;  /* those of them that are in the profile, or lost */
	_Atomic uint64_t each;  /* bytes of a trace, as far as is known */
};

void agent_backlog_open(struct agent_backlog *backlog, uint64_t bytes_max, uint64_t taken);

/* Notes how many traces there are. Called by any thread. */
void agent_backlog_took(struct agent_backlog *backlog, uint64_t taken);

/* Whether the traces use more than the part `share` (0..1) of the memory. */
bool agent_backlog_exceeds(const struct agent_backlog *backlog, double share);

/* Called by the thread that retrieves, before it begins, and when the traces are in the profile: `count`
 * traces were `bytes` large. */
uint64_t agent_backlog_begin(const struct agent_backlog *backlog);
void agent_backlog_end(struct agent_backlog *backlog, uint64_t begun, uint64_t count,
		       uint64_t bytes);

#endif
