/* SPDX-License-Identifier: MIT
 *
 * Unsigned integers of many bits. With them the average of several runs is exact, and weights
 * that differ only beyond the 64th bit stay different.
 */
#ifndef INCSTACK_PROFILE_WIDE_H
#define INCSTACK_PROFILE_WIDE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A stored number has STORED words. The other words are room for a product with a number of 64
 * bits, or for the sum of many numbers. */
enum { INCSTACK__WIDE_STORED = 8, INCSTACK__WIDE_WORDS = 10 };

struct incstack__wide {
	uint64_t word[INCSTACK__WIDE_WORDS]; /* the lowest first */
};

static inline struct incstack__wide incstack__wide_load(const uint64_t *words, size_t count)
{
	struct incstack__wide wide = {{0}};

	memcpy(wide.word, words, count * sizeof(*words));
	return wide;
}

static inline void incstack__wide_add(struct incstack__wide *to, const struct incstack__wide *more)
{
	unsigned __int128 carry = 0;

	for (size_t i = 0; i < INCSTACK__WIDE_WORDS; i++) {
		carry += (unsigned __int128)to->word[i] + more->word[i];
		to->word[i] = (uint64_t)carry;
		carry >>= 64;
	}
}

static inline struct incstack__wide incstack__wide_times(struct incstack__wide wide,
							 uint64_t factor)
{
	unsigned __int128 carry = 0;

	for (size_t i = 0; i < INCSTACK__WIDE_WORDS; i++) {
		carry += (unsigned __int128)wide.word[i] * factor;
		wide.word[i] = (uint64_t)carry;
		carry >>= 64;
	}
	return wide;
}

/* Divides *wide. Returns the remainder. */
static inline uint64_t incstack__wide_divide(struct incstack__wide *wide, uint64_t divisor)
{
	unsigned __int128 rest = 0;

	for (size_t i = INCSTACK__WIDE_WORDS; i-- > 0;) {
		rest = rest << 64 | wide->word[i];
		wide->word[i] = (uint64_t)(rest / divisor);
		rest %= divisor;
	}
	return (uint64_t)rest;
}

static inline int incstack__wide_compare(const struct incstack__wide *a,
					 const struct incstack__wide *b)
{
	for (size_t i = INCSTACK__WIDE_WORDS; i-- > 0;)
		if (a->word[i] != b->word[i])
			return a->word[i] < b->word[i] ? -1 : 1;
	return 0;
}

/* Returns the nearest long double. */
static inline long double incstack__wide_value(const struct incstack__wide *wide)
{
	long double value = 0;

	for (size_t i = INCSTACK__WIDE_WORDS; i-- > 0;)
		value = value * 0x1p64L + (long double)wide->word[i];
	return value;
}

/* Returns a - b. The subtraction is exact, because it is done before the conversion to long
 * double. */
static inline long double incstack__wide_difference(const struct incstack__wide *a,
						    const struct incstack__wide *b)
{
	const int order = incstack__wide_compare(a, b);
	const struct incstack__wide *more = order < 0 ? b : a, *less = order < 0 ? a : b;
	struct incstack__wide difference;
	uint64_t borrow = 0;

	for (size_t i = 0; i < INCSTACK__WIDE_WORDS; i++) {
		const unsigned __int128 d =
			(unsigned __int128)more->word[i] - less->word[i] - borrow;

		difference.word[i] = (uint64_t)d;
		borrow = (uint64_t)(d >> 64) & 1;
	}
	return order < 0 ? -incstack__wide_value(&difference) : incstack__wide_value(&difference);
}

#endif
