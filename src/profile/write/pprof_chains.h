/* SPDX-License-Identifier: MIT
 *
 * The locations of a pprof file that is written. A location is a frame with the frames that
 * are inlined into it, one into the other; its identifier says which.
 */
#ifndef INCSTACK_PROFILE_PPROF_CHAINS_H
#define INCSTACK_PROFILE_PPROF_CHAINS_H

#include "profile/cct.h"

/* An inlined frame, and the location that it is inlined into. */
struct incstack__pprof_chain {
	uint64_t outer; /* its identifier; 0: none is known */
	uint32_t frame;
	uint32_t lines; /* frames of the location, with this one */
	bool claimed;
};

struct incstack__pprof_chains {
	struct incstack__pprof_chain *chains;
	size_t used, room;
	struct incstack__table table;
};

/* The identifier of a location of one frame, which is not inlined. */
static inline uint64_t incstack__pprof_chain_single(uint32_t frame)
{
	return (uint64_t)frame * 2 + 1;
}

void incstack__pprof_chains_free(struct incstack__pprof_chains *chains);

/* The identifier of the location outer with a frame inlined into it. */
int incstack__pprof_chain(struct incstack__pprof_chains *chains, uint64_t outer, uint32_t frame,
			  uint64_t *id);

/* Whether the location has inlined frames and was not claimed before: it is to be written. */
bool incstack__pprof_chain_claim(struct incstack__pprof_chains *chains, uint64_t id);

/* How many frames the location has. */
uint32_t incstack__pprof_chain_lines(const struct incstack__pprof_chains *chains, uint64_t id);

/* Gives the innermost frame and returns the location without it; 0 if nothing remains. */
uint64_t incstack__pprof_chain_next(const struct incstack__pprof_chains *chains, uint64_t id,
				    uint32_t *frame);

#endif
