/* SPDX-License-Identifier: MIT
 *
 * Makes blocks of what a process left in its spool, of which nothing is believed.
 */
#ifndef INCSTACK_HEAP_SPOOL_READ_H
#define INCSTACK_HEAP_SPOOL_READ_H

#include "spool_format.h"

/* Where the last whole block of a trace file ends: what follows was cut off. */
uint64_t incstack__trace_end(const unsigned char *data, uint64_t size);

/* The spool's header, or null where it is no spool of the trace file with that header. */
const struct incstack__spool_header *
incstack__spool_header(const void *spool, size_t bytes, const struct incstack__trace_header *of);

/* Makes a BATCH of what each thread had not written, where there is something, and a TALLY.
 * The memory of the spool is the caller's own, aligned to 32, and of no use afterwards.
 * Returns 0, INCSTACK_EINVAL where it is not the spool of that file, or INCSTACK_ENOMEM.
 * *blocks is to be freed. */
int incstack__spool_recover(unsigned char *spool, size_t bytes,
			    const struct incstack__trace_header *of, unsigned char **blocks,
			    size_t *block_bytes);

#endif
