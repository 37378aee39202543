/* SPDX-License-Identifier: MIT
 *
 * What the tests of the frame iterator on a stack made by hand share: a walk, and what it shows.
 */
#ifndef SHOWN_FRAMES_H
#define SHOWN_FRAMES_H

#include <incstack/frames.h>

#include "hand_made.h"

enum { SHOWN_TOP = 40 };

static struct incstack_frames frames;

/* The iterator shows frame n, which decodes to one virtual frame, next. */
static inline void shows(unsigned n)
{
	ck_assert_int_eq(incstack_frames_next(&frames), 1);
	ck_assert_uint_eq(frames.frame.pc, hand_pc(n));
	ck_assert_uint_eq(frames.frame.sp, hand_sp(n));
	ck_assert_uint_eq(frames.frame.fp, hand_fp(n));
	ck_assert_uint_eq(frames.function, n);
}

static inline void ends(int result)
{
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(incstack_frames_next(&frames), result);
}

static inline void shows_all(unsigned n)
{
	for (;; n--) {
		shows(n);
		if (n == 0)
			break;
	}
	ends(0);
}

static inline void begin_at(unsigned n, uint32_t flags)
{
	const struct incstack_top top = hand_top(n, flags);
	ck_assert_int_eq(incstack_frames_begin(
				 &frames, &(struct incstack_frames_place){.stack = hand.s}, &top),
			 0);
}

#endif
