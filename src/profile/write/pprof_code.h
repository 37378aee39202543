/* SPDX-License-Identifier: MIT
 *
 * The functions, locations and mappings of a pprof file that is written.
 */
#ifndef INCSTACK_PROFILE_PPROF_CODE_H
#define INCSTACK_PROFILE_PPROF_CODE_H

#include "function_set.h"
#include "pprof_chains.h"
#include "pprof_put.h"

struct incstack__pprof_code {
	struct incstack__pprof_put *put;
	struct incstack__function_set set;
	struct incstack__pprof_chains chains;
	size_t frames, mappings; /* of the profile, already written */
	size_t functions;        /* of the set, already written */
	uint64_t *ids;           /* of the locations of a path, innermost first */
	size_t ids_room;
	pb_byte_t *message; /* sized for the longest message, so encoding cannot fail */
	size_t message_room;
};

/* What was zeroed is initialized once, and freed also if that failed. */
int incstack__pprof_code_init(struct incstack__pprof_code *code, struct incstack__pprof_put *put);
void incstack__pprof_code_free(struct incstack__pprof_code *code);

/* Writes the mappings and frames that the profile has got since the last call. */
int incstack__pprof_code_tables(struct incstack__pprof_code *code);

/* Makes the locations of a path of frames, innermost first, and writes those that are new. Their
 * identifiers are code->ids[*first..depth). */
int incstack__pprof_code_path(struct incstack__pprof_code *code, const uint32_t *path, size_t depth,
			      size_t *first);

#endif
