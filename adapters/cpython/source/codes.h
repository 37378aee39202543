/* SPDX-License-Identifier: MIT
 *
 * The code objects that were seen. Each has a number, which outlives it: its name and file are copied when
 * it is first seen, and its memory may belong to another code object later.
 *
 * All functions are called with the recording's lock. None of them calls Python.
 */
#ifndef CODES_H
#define CODES_H

#include "frames/frames.h"

struct code {
	char *name; /* qualified, in UTF-8 */
	char *file; /* the same */
};

uint32_t codes_number(const PyCodeObject *object);
const struct code *codes_at(uint32_t number);
bool codes_forget(const void *memory);
void codes_free(void);

/* A set of bits that may hold the address of a code object: most frees need to look no further. */
enum { CODES_BITS = 1 << 17 };
extern uint64_t codes_bits[CODES_BITS / 64];

static inline uint32_t codes_hash(const void *address)
{
	return (uint32_t)(((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/* Called for each memory that is freed. Returns whether it was a code object that had been seen. */
static inline bool codes_freed(const void *memory)
{
	const uint32_t bit = codes_hash(memory) % CODES_BITS;
	return codes_bits[bit / 64] >> bit % 64 & 1 && codes_forget(memory);
}

#endif
