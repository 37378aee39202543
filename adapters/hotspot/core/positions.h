/* SPDX-License-Identifier: MIT
 *
 * What is inlined at the positions of compiled code that were decoded lately. A sample decodes the position
 * of each new frame, and most of them are those of the samples before. To look one up takes a tenth of
 * the time that HotSpot needs to read its compressed records.
 *
 * Code may be freed, and its memory used for other code. So a position is the address together with the
 * number of the compilation, which is never used again.
 */
#ifndef INCSTACK_HOTSPOT_POSITIONS_H
#define INCSTACK_HOTSPOT_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/embedder.h>

INCSTACK_BEGIN_C

enum {
	INCSTACK__POSITIONS = 1024,    /* a power of two */
	INCSTACK__POSITION_FRAMES = 8, /* positions with more frames are not kept */
};

/* All zero is an empty table. Any thread may use it, at any time. */
struct incstack__positions {
	struct incstack__position {
		uint64_t version; /* odd while it is written; 0: nothing was ever written */
		uint64_t pc, code;
		uint64_t count;
		uint64_t methods[INCSTACK__POSITION_FRAMES];
		int32_t bcis[INCSTACK__POSITION_FRAMES];
	} places[INCSTACK__POSITIONS];
};

/* Writes the frames at pc in the code with that number, innermost first, to `out`, which has room for all.
 * Returns how many they are; 0 if the position is not known. */
int incstack__positions_find(const struct incstack__positions *positions, uintptr_t pc,
			     uint64_t code, struct incstack_virtual_frame *out);

/* Keeps the frames, in place of another position. May also do nothing. */
void incstack__positions_keep(struct incstack__positions *positions, uintptr_t pc, uint64_t code,
			      const struct incstack_virtual_frame *frames, int count);

INCSTACK_END_C

#endif
