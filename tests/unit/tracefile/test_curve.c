/* SPDX-License-Identifier: MIT
 *
 * Tests the curve of the live memory: that no byte is lost when moments are joined, and what stamps and contexts
 * of damaged files do.
 */
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "tracefile/curve.h"

enum { NODES = 50 };

struct sums {
	uint64_t allocated[NODES], freed[NODES];
};

static struct sums sums_of(const struct incstack__curve *curve)
{
	struct sums sums = {{0}, {0}};

	for (size_t i = 0; i < curve->count; i++) {
		const struct incstack__curve_piece *piece = &curve->pieces[i];

		ck_assert_uint_lt(piece->node, NODES);
		ck_assert_uint_le(piece->moment, curve->moment);
		ck_assert(!i || curve->pieces[i - 1].moment <= piece->moment);
		sums.allocated[piece->node] += piece->allocated;
		sums.freed[piece->node] += piece->freed;
	}
	return sums;
}

static void step(struct incstack__curve *curve, uint64_t stamp, uint32_t node, uint64_t bytes,
		 uint64_t *live)
{
	incstack__curve_advance(curve, stamp, *live);
	incstack__curve_add(curve, node, bytes, 0);
	*live += bytes;
	incstack__curve_note(curve, *live);
}

START_TEST(no_byte_is_lost_when_moments_are_joined)
{
	struct incstack__curve *curve = calloc(1, sizeof(*curve));
	struct sums right = {{0}, {0}}, seen;
	uint64_t live = 0, highest = 0;

	srand(1);
	for (uint64_t i = 0; i < 100000; i++) {
		uint32_t node = (uint32_t)rand() % NODES;
		uint64_t bytes = (uint64_t)rand() % 1000;

		step(curve, 1000 + i * 77, node, bytes, &live);
		right.allocated[node] += bytes;
		if (i % 3 == 0) {
			incstack__curve_add(curve, node, 0, bytes);
			right.freed[node] += bytes;
			live -= bytes;
		}
	}
	seen = sums_of(curve);
	ck_assert(!memcmp(&seen, &right, sizeof(seen)));
	ck_assert_uint_lt(curve->moment, INCSTACK__CURVE_MOMENTS);
	ck_assert_uint_ge(curve->moment, INCSTACK__CURVE_MOMENTS / 2 - 1);
	ck_assert_uint_eq(curve->start, 1000);
	for (uint32_t i = 0; i <= curve->moment; i++) {
		ck_assert_uint_gt(curve->highest[i], 0);
		highest = curve->highest[i] > highest ? curve->highest[i] : highest;
	}
	ck_assert_uint_ge(highest, live);
	incstack__curve_free(curve);
	free(curve);
}
END_TEST

START_TEST(a_moment_without_events_has_what_was_live_before)
{
	struct incstack__curve *curve = calloc(1, sizeof(*curve));
	uint64_t live = 0;

	step(curve, 0, 1, 10, &live);
	step(curve, 399, 2, 5, &live);
	ck_assert_uint_eq(curve->moment, 399);
	ck_assert_uint_eq(curve->highest[200], 10);
	ck_assert_uint_eq(curve->highest[399], 15);
	step(curve, 400, 2, 5, &live); /* two moments become one */
	ck_assert_uint_eq(curve->moment, 200);
	ck_assert_uint_eq(curve->highest[199], 15);
	ck_assert_uint_eq(curve->highest[200], 20);
	ck_assert_uint_eq(curve->count, 3);
	incstack__curve_free(curve);
	free(curve);
}
END_TEST

/* A damaged file may have any stamps. */
START_TEST(stamps_may_be_anything)
{
	static const uint64_t stamps[] = {5, 3, UINT64_MAX, 0, UINT64_MAX - 1, 7, UINT64_MAX};
	struct incstack__curve *curve = calloc(1, sizeof(*curve));
	struct sums seen;
	uint64_t live = 0;

	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
		step(curve, stamps[i], (uint32_t)i, i + 1, &live);
	seen = sums_of(curve);
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
		ck_assert_uint_eq(seen.allocated[i], i + 1);
	ck_assert_uint_lt(curve->moment, INCSTACK__CURVE_MOMENTS);
	incstack__curve_free(curve);
	free(curve);
}
END_TEST

START_TEST(pieces_stay_within_their_limit)
{
	struct incstack__curve *curve = calloc(1, sizeof(*curve));
	uint64_t live = 0;
	uint32_t most = INCSTACK__CURVE_PIECES_MAX;

	/* Few contexts in many moments: moments are joined. */
	for (uint64_t i = 0; i < 3 * (uint64_t)most; i++)
		step(curve, i / 10000, (uint32_t)(i % 10000), 1, &live);
	ck_assert(!curve->without_pieces);
	ck_assert_uint_le(curve->count, most);
	incstack__curve_free(curve);
	/* Too many contexts: the curve has its height alone. */
	memset(curve, 0, sizeof(*curve));
	live = 0;
	for (uint64_t i = 0; i <= most; i++)
		step(curve, i, (uint32_t)i, 1, &live);
	ck_assert(curve->without_pieces);
	ck_assert_uint_eq(curve->count, 0);
	step(curve, most + 1, 1, 1, &live);
	ck_assert_uint_eq(curve->highest[curve->moment], live);
	incstack__curve_free(curve);
	free(curve);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("curve");
	Suite *suite = suite_create("tracefile");

	tcase_add_test(tests, no_byte_is_lost_when_moments_are_joined);
	tcase_add_test(tests, a_moment_without_events_has_what_was_live_before);
	tcase_add_test(tests, stamps_may_be_anything);
	tcase_add_test(tests, pieces_stay_within_their_limit);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
