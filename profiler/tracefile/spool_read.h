/* SPDX-License-Identifier: MIT
 *
 * Turns what a process left in its spool into blocks of a trace file. Nothing in the spool is
 * trusted.
 */
#ifndef INCSTACK_TRACEFILE_SPOOL_READ_H
#define INCSTACK_TRACEFILE_SPOOL_READ_H

#include "spool_format.h"

/* Returns where the last complete block of a trace file ends. What follows was cut off. */
uint64_t incstack__tracefile_end(const unsigned char *data, uint64_t size);

/* Returns the header of the spool, or null if it is not the spool of that trace file. */
const struct incstack__spool_header *
incstack__spool_header(const void *spool, size_t bytes,
		       const struct incstack__tracefile_header *of);

/* Makes for each thread a BATCH of what it had not written, if there is anything, and a TALLY. The
 * memory of the spool belongs to the caller and is aligned to 32; its content is destroyed.
 * Returns 0, INCSTACK_EINVAL if it is not the spool of that file, or INCSTACK_ENOMEM. The
 * caller frees *blocks. */
int incstack__spool_recover(unsigned char *spool, size_t bytes,
			    const struct incstack__tracefile_header *of, unsigned char **blocks,
			    size_t *block_bytes);

#endif
