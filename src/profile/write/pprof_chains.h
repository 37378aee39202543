/* SPDX-License-Identifier: MIT
 *
 * The locations of a pprof file that is written. A location is a frame together with the frames
 * that are inlined into it, one into the other. Its identifier determines all these frames.
 */
#ifndef INCSTACK_PROFILE_PPROF_CHAINS_H
#define INCSTACK_PROFILE_PPROF_CHAINS_H

#include "profile/cct.h"

/* A location: an inlined frame, and the location that it is inlined into. */
struct incstack__pprof_chain {
	uint64_t outer; /* the identifier of the latter; 0: unknown */
	uint32_t frame;
	uint32_t lines; /* frames of the location, including this one */
	bool claimed;
};

struct incstack__pprof_chains {
	struct incstack__pprof_chain *chains;
	size_t used, room;
	struct incstack__table table;
};

/* Returns the identifier of a location with one frame, which is not inlined. */
static inline uint64_t incstack__pprof_chain_single(uint32_t frame)
{
	return (uint64_t)frame * 2 + 1;
}

void incstack__pprof_chains_free(struct incstack__pprof_chains *chains);

/* Finds or adds the location in which `frame` is inlined into the location `outer`. */
int incstack__pprof_chain(struct incstack__pprof_chains *chains, uint64_t outer, uint32_t frame,
			  uint64_t *id);

/* Whether the location must be written: it has inlined frames and was not claimed before. */
bool incstack__pprof_chain_claim(struct incstack__pprof_chains *chains, uint64_t id);

/* Returns how many frames the location has. */
uint32_t incstack__pprof_chain_lines(const struct incstack__pprof_chains *chains, uint64_t id);

/* Stores the innermost frame in *frame. Returns the location without this frame, or 0 if nothing
 * remains. */
uint64_t incstack__pprof_chain_next(const struct incstack__pprof_chains *chains, uint64_t id,
				    uint32_t *frame);

#endif
