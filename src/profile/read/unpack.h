/* SPDX-License-Identifier: MIT
 *
 * A stream with the unpacked bytes of another stream, for readers that know nothing of compression.
 */
#ifndef INCSTACK_PROFILE_UNPACK_H
#define INCSTACK_PROFILE_UNPACK_H

#include "profile/gzip.h"

struct incstack__unpacker {
	struct incstack__inflater inflater;
	FILE *plain;
	bool is_open;
	int error; /* of the inflater; `plain` can only say that reading failed */
};

/* Opens `plain`, which has the bytes of `stream`, unpacked if they are packed. Close the unpacker in each
 * case. Returns 0 or INCSTACK_E*. */
int incstack__unpacker_open(struct incstack__unpacker *unpacker, FILE *stream);
void incstack__unpacker_close(struct incstack__unpacker *unpacker);

#endif
