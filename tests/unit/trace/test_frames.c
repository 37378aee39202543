/* SPDX-License-Identifier: MIT
 *
 * Tests what the frame iterator shows of a stack made by hand: barriers, thunks, signal frames and
 * inlined frames, from any top.
 */
#include "run_suite.h"
#include "shown_frames.h"

enum { SIZE = sizeof(uintptr_t), TOP = SHOWN_TOP, SIGNALED = 10, KERNEL = 50 };
enum { RBP = 15, RSP = 20, RIP = 21 }; /* words of a ucontext */

/* ---- what it shows ------------------------------------------------------------------ */

START_TEST(with_and_without_a_state)
{
	const struct incstack_top top = hand_top(TOP, 0);
	hand_open((struct incstack_options){.distance = 1});
	const struct incstack_frames_place anywhere = {.runtime = hand.rt};
	const struct incstack_frames_place bounded = {
		.runtime = hand.rt, .low = (uintptr_t)hand.words, .high = hand_high()};
	begin_at(TOP, 0);
	shows_all(TOP);
	ck_assert_int_eq(incstack_frames_begin(&frames, &bounded, &top), 0);
	shows_all(TOP);
	ck_assert_int_eq(incstack_frames_begin(&frames, &anywhere, &top), 0);
	shows_all(TOP);
	hand_close();
}
END_TEST

/* Some return slots hold thunks. */
START_TEST(through_barriers)
{
	hand_open((struct incstack_options){.distance = (unsigned)_i + 1});
	for (unsigned n = 5; n <= TOP; n += 7)
		hand_sample(n);
	unsigned patched = 0;
	for (unsigned n = 1; n <= TOP; n++)
		patched += hand_patched(n);
	ck_assert_uint_eq(patched, 6);
	const struct incstack_stats before = hand_stats();
	begin_at(TOP, 0);
	shows_all(TOP);
	begin_at(TOP, INCSTACK_TOP_INTERRUPTED);
	ck_assert_int_eq(incstack_frames_next(&frames), 1);
	const struct incstack_stats after = hand_stats();
	ck_assert_mem_eq(&before, &after, sizeof(before));
	hand_all_complete();
	hand_close();
}
END_TEST

/* The top was called through a patched slot: its position stands in the slot as a thunk. */
START_TEST(from_a_thunk)
{
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(TOP);
	ck_assert(hand_patched(TOP));
	struct incstack_top top = hand_top(TOP - 1, 0);
	top.pc = *hand_slot(TOP);
	ck_assert_int_eq(incstack_frames_begin(
				 &frames, &(struct incstack_frames_place){.stack = hand.s}, &top),
			 0);
	shows_all(TOP - 1);
	/* A signal interrupts the thunk itself. */
	top.flags = INCSTACK_TOP_EXACT;
	ck_assert_int_eq(incstack_frames_begin(
				 &frames, &(struct incstack_frames_place){.stack = hand.s}, &top),
			 0);
	shows(TOP - 1);
	ck_assert_uint_eq(frames.frame.flags, 0);
	shows_all(TOP - 2);
	hand_close();
}
END_TEST

START_TEST(begins_again_anywhere)
{
	hand_open((struct incstack_options){.distance = 1});
	begin_at(TOP, 0);
	for (unsigned left = 0; left <= TOP; left += 8) {
		for (unsigned n = TOP; n > left; n--)
			shows(n);
		begin_at(TOP, 0);
	}
	shows_all(TOP);
	begin_at(TOP, 0);
	shows_all(TOP);
	hand_close();
}
END_TEST

/* Where a function ends it has restored the frame pointer, though its rule does not say so. The word
 * where it was saved is just below the stack pointer. */
START_TEST(popped_frame_pointer)
{
	struct incstack_top top = hand_top(TOP, INCSTACK_TOP_EXACT);
	hand_open((struct incstack_options){.distance = 1});
	top.sp = hand_fp(TOP) + SIZE;
	ck_assert_int_eq(incstack_frames_begin(
				 &frames, &(struct incstack_frames_place){.stack = hand.s}, &top),
			 0);
	ck_assert_int_eq(incstack_frames_next(&frames), 1);
	ck_assert_int_eq(incstack_frames_next(&frames), 1);
	ck_assert_uint_eq(frames.frame.pc, hand_pc(TOP - 1));
	ck_assert_uint_eq(frames.frame.fp, hand_fp(TOP));
	hand_close();
}
END_TEST

/* Frame 3k + 1 stands for three functions, of which two are inlined into the third. */
static int decode_three(void *context, const struct incstack_frame *frame,
			struct incstack_virtual_frame *out, int max)
{
	const unsigned n = (unsigned)((frame->pc - HAND_CODE) / HAND_UNIT);
	(void)context;
	ck_assert_int_eq(max, INCSTACK_VIRTUAL_MAX);
	if (n == 6)
		return INCSTACK_EUNWIND;
	for (unsigned i = 0; i < 3; i++)
		out[i] = (struct incstack_virtual_frame){100 * n + i, (int32_t)(n + i),
							 INCSTACK_KIND_COMPILED};
	if (n % 3 == 2)
		out[0].kind = INCSTACK_KIND_WRAPPER;
	return n == 9 ? 1000 : n % 3 == 1 ? 3 : 1;
}

static void shows_decoded(unsigned n, unsigned i, unsigned count, uint32_t kind)
{
	ck_assert_int_eq(incstack_frames_next(&frames), 1);
	ck_assert_uint_eq(frames.frame.sp, hand_sp(n));
	ck_assert_uint_eq(frames.function, 100 * n + i);
	ck_assert_int_eq(frames.position, (int32_t)(n + i));
	ck_assert_uint_eq(frames.kind, i + 1 < count ? (uint32_t)INCSTACK_KIND_INLINED : kind);
}

static void shows_inlined(unsigned n)
{
	const unsigned count = n % 3 == 1 ? 3 : 1;
	for (unsigned i = 0; i < count; i++)
		shows_decoded(n, i, count,
			      n % 3 == 2 ? INCSTACK_KIND_WRAPPER : INCSTACK_KIND_COMPILED);
}

START_TEST(inlined_frames_and_kinds)
{
	struct incstack_embedder embedder = hand_embedder();
	embedder.code.decode = decode_three;
	hand_open_with((struct incstack_options){.distance = 1}, &embedder);
	begin_at(8, 0);
	shows_inlined(8);
	shows_decoded(7, 0, 3, 0);
	begin_at(8, 0);
	shows_inlined(8);
	shows_inlined(7);
	ck_assert_int_eq(incstack_frames_next(&frames), 1); /* frame 6 cannot be decoded */
	ck_assert_uint_eq(frames.function, hand_pc(6));
	ck_assert_int_eq(frames.position, -1);
	ck_assert_uint_eq(frames.kind, INCSTACK_KIND_UNKNOWN);
	for (unsigned n = 6; n-- > 0;)
		shows_inlined(n);
	ends(0);
	begin_at(9, 0); /* more than fit */
	for (unsigned i = 0; i < INCSTACK_VIRTUAL_MAX; i++)
		ck_assert_int_eq(incstack_frames_next(&frames), 1);
	ck_assert_uint_ne(frames.kind, INCSTACK_KIND_INLINED);
	shows_inlined(8);
	hand_close();
}
END_TEST

START_TEST(without_decode_all_is_native)
{
	struct incstack_embedder embedder = hand_embedder();
	embedder.code.decode = NULL;
	hand_open_with((struct incstack_options){.distance = 1}, &embedder);
	begin_at(3, 0);
	for (unsigned n = 4; n-- > 0;) {
		ck_assert_int_eq(incstack_frames_next(&frames), 1);
		ck_assert_uint_eq(frames.function, hand_pc(n));
		ck_assert_int_eq(frames.position, -1);
		ck_assert_uint_eq(frames.kind, INCSTACK_KIND_C);
	}
	ends(0);
	hand_close();
}
END_TEST

/* The handler's frame lies right below the registers of SIGNALED that the kernel has saved. */
static void lay_out_signal(void)
{
	uintptr_t *registers = hand_slot(TOP) + 1;
	hand.rules[KERNEL] = (struct incstack_rule){.kind = INCSTACK_RULE_SIGNAL};
	*hand_slot(TOP) = hand_pc(KERNEL);
	registers[RBP] = hand_fp(SIGNALED);
	registers[RSP] = hand_sp(SIGNALED);
	registers[RIP] = hand_pc(SIGNALED);
}

static void shows_signal(void)
{
	shows(TOP);
	ck_assert_int_eq(incstack_frames_next(&frames), 1);
	ck_assert_uint_eq(frames.function, KERNEL);
	ck_assert_uint_eq(frames.frame.flags, INCSTACK_FRAME_SIGNAL);
	shows(SIGNALED);
	ck_assert_uint_eq(frames.frame.flags, INCSTACK_FRAME_EXACT);
	shows(SIGNALED - 1);
	ck_assert_uint_eq(frames.frame.flags, 0);
	shows_all(SIGNALED - 2);
}

START_TEST(through_a_signal)
{
	hand_open((struct incstack_options){.distance = 1});
	lay_out_signal();
	begin_at(TOP, 0);
	shows_signal();
	hand_close();
}
END_TEST

/* The signal has interrupted the thunk through which SIGNALED + 1 returns. */
START_TEST(through_a_signal_in_a_thunk)
{
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(SIGNALED + 1);
	ck_assert(hand_patched(SIGNALED + 1));
	lay_out_signal();
	(hand_slot(TOP) + 1)[RIP] = *hand_slot(SIGNALED + 1);
	begin_at(TOP, 0);
	shows(TOP);
	ck_assert_int_eq(incstack_frames_next(&frames), 1);
	shows(SIGNALED);
	ck_assert_uint_eq(frames.frame.flags, 0);
	shows_all(SIGNALED - 1);
	hand_close();
}
END_TEST

/* Registers that are no registers, with a pc in the trampoline, which leads to any address. */
START_TEST(through_a_false_signal_in_the_trampoline)
{
	static const uintptr_t places[] = {0, 8, 0x1234567, UINTPTR_MAX - 7, (uintptr_t)1 << 62};
	hand_open((struct incstack_options){.distance = 1});
	lay_out_signal();
	for (const char *pc = incstack__thunk_entry; pc <= incstack__thunk_entry_5; pc++) {
		uintptr_t *registers = hand_slot(TOP) + 1;
		registers[RIP] = (uintptr_t)pc;
		registers[RSP] = registers[RBP] = places[(uintptr_t)pc % 5];
		begin_at(TOP, 0);
		shows(TOP);
		ck_assert_int_eq(incstack_frames_next(&frames), 1);
		ends(INCSTACK_EUNWIND);
	}
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frames");
	TCase *tc = tcase_create("what it shows");
	tcase_add_test(tc, with_and_without_a_state);
	tcase_add_loop_test(tc, through_barriers, 0, 4);
	tcase_add_test(tc, from_a_thunk);
	tcase_add_test(tc, begins_again_anywhere);
	tcase_add_test(tc, popped_frame_pointer);
	tcase_add_test(tc, inlined_frames_and_kinds);
	tcase_add_test(tc, without_decode_all_is_native);
	tcase_add_test(tc, through_a_signal);
	tcase_add_test(tc, through_a_signal_in_a_thunk);
	tcase_add_test(tc, through_a_false_signal_in_the_trampoline);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
