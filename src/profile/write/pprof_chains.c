/* SPDX-License-Identifier: MIT
 *
 * Numbers the locations of a pprof file: odd identifiers for single frames, even ones
 * for inlined frames with the location that they are inlined into.
 */
#include <stdlib.h>

#include "pprof_chains.h"

void incstack__pprof_chains_free(struct incstack__pprof_chains *chains)
{
	free(chains->chains);
	free(chains->table.slots);
}

static const struct incstack__pprof_chain *chain_of(const struct incstack__pprof_chains *chains,
						    uint64_t id)
{
	return id % 2 ? NULL : &chains->chains[id / 2 - 1];
}

static uint64_t id_of(size_t chain)
{
	return ((uint64_t)chain + 1) * 2;
}

static int add(struct incstack__pprof_chains *chains, uint64_t outer, uint32_t frame, uint32_t hash)
{
	uint32_t lines = outer ? incstack__pprof_chain_lines(chains, outer) : 0;
	int error;

	if (chains->used >= INCSTACK__NONE - 1)
		return INCSTACK_ELIMIT;
	error = incstack__reserve((void **)&chains->chains, &chains->room, chains->used + 1,
				  sizeof(*chains->chains));
	if (!error)
		error = incstack__table_insert(&chains->table, hash, (uint32_t)chains->used);
	if (!error)
		chains->chains[chains->used++] = (struct incstack__pprof_chain){
			.outer = outer, .frame = frame, .lines = lines + 1};
	return error;
}

int incstack__pprof_chain(struct incstack__pprof_chains *chains, uint64_t outer, uint32_t frame,
			  uint64_t *id)
{
	uint32_t hash = incstack__hash_pair(outer, frame), at;
	size_t cursor = hash;
	int error;

	while ((at = incstack__table_probe(&chains->table, hash, &cursor)) != INCSTACK__NONE)
		if (chains->chains[at].outer == outer && chains->chains[at].frame == frame) {
			*id = id_of(at);
			return 0;
		}
	error = add(chains, outer, frame, hash);
	if (!error)
		*id = id_of(chains->used - 1);
	return error;
}

bool incstack__pprof_chain_claim(struct incstack__pprof_chains *chains, uint64_t id)
{
	struct incstack__pprof_chain *chain = id % 2 ? NULL : &chains->chains[id / 2 - 1];
	bool claimed = !chain || chain->claimed;

	if (chain)
		chain->claimed = true;
	return !claimed;
}

uint32_t incstack__pprof_chain_lines(const struct incstack__pprof_chains *chains, uint64_t id)
{
	const struct incstack__pprof_chain *chain = chain_of(chains, id);

	return chain ? chain->lines : 1;
}

uint64_t incstack__pprof_chain_next(const struct incstack__pprof_chains *chains, uint64_t id,
				    uint32_t *frame)
{
	const struct incstack__pprof_chain *chain = chain_of(chains, id);

	*frame = chain ? chain->frame : (uint32_t)(id / 2);
	return chain ? chain->outer : 0;
}
