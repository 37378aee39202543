/* SPDX-License-Identifier: MIT
 *
 * Packs a trace file, and unpacks it again to the same bytes. Both allocate with malloc. So they are for the
 * tool, not for the recorded program.
 */
#ifndef INCSTACK_TRACEFILE_PACKED_H
#define INCSTACK_TRACEFILE_PACKED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the packed form of a trace file. Returns 0; INCSTACK_EINVAL if this is no whole trace file, if it is packed
 * already, or if so little would be left of it that no reader would believe it; INCSTACK_ENOMEM; INCSTACK_EIO if
 * it could not be written. */
int incstack__tracefile_pack(const void *data, size_t size, FILE *out);

/* A trace file in memory, and why it is not more. */
struct incstack__tracefile_unpacked {
	const unsigned char *data;
	size_t size;
	unsigned char *owned; /* of malloc: the data of a packed file; otherwise null */
	size_t cut;           /* bytes of a last group that is incomplete */
	const char *what;     /* the first damage, or null */
	uint64_t offset;      /* of the damage, in the packed file */
};

/* Unpacks the whole groups before the first damage. No byte is trusted. A file that is not packed stays where it is.
 * Returns 0 or INCSTACK_ENOMEM. */
int incstack__tracefile_unpack(const void *data, size_t size,
			       struct incstack__tracefile_unpacked *unpacked);

#endif
