/* SPDX-License-Identifier: MIT
 *
 * Makes batches of a heap trace file in memory, for the tests of its reader.
 */
#ifndef INCSTACK_TRACE_BATCH_H
#define INCSTACK_TRACE_BATCH_H

#include "tracefile/write.h"

static inline uint64_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static inline struct incstack__tracefile_log log_in(uint64_t *words, size_t bytes)
{
	struct incstack__tracefile_log log;

	incstack__tracefile_log_init(&log, words, bytes);
	return log;
}

/* Makes a batch and puts it at `to`: its bytes, or an error. */
static inline int64_t put_batch(unsigned char *to, size_t room, struct incstack__tracefile_log *log,
				uint32_t thread, uint32_t epoch, const struct incstack_tree *tree)
{
	const struct incstack__tracefile_batch_of of = {.thread = thread, .epoch = epoch};
	const int64_t bytes = incstack__tracefile_batch(to, room, of, log, tree);

	incstack__tracefile_log_clear(log);
	return bytes;
}

#endif
