/* SPDX-License-Identifier: MIT
 *
 * Streams of numbers for the page of the flame graph: seven bits in each byte, the lowest first, the high bit
 * set where more follow; the bytes are written in base64.
 */
#ifndef INCSTACK_PROFILE_PACKED_H
#define INCSTACK_PROFILE_PACKED_H

#include <stdint.h>
#include <stdio.h>

struct incstack__packed {
	FILE *stream;
	uint32_t bits;
	unsigned count; /* of the bytes in `bits` */
};

/* Begins a string of JSON, which incstack__packed_end ends. */
void incstack__packed_begin(struct incstack__packed *packed, FILE *stream);
void incstack__packed_number(struct incstack__packed *packed, uint64_t number);
void incstack__packed_end(struct incstack__packed *packed);

#endif
