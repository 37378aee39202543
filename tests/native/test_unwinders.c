/* SPDX-License-Identifier: MIT
 *
 * Tests that other unwinders walk through patched frames: libunwind, libgcc and glibc see the
 * same as without barriers, apart from the lines of the thunks.
 */
#define UNW_LOCAL_ONLY
#include <execinfo.h>
#include <stdbool.h>
#include <unwind.h>

#include <libunwind.h>

#include "../unit/run_suite.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))

int incstack__thunk_contains(uintptr_t pc);

enum { LINES = 256, DEPTH = 24 };
struct lines {
	int count, thunks;
	uintptr_t pc[LINES], cfa[LINES];
};

static void add(struct lines *l, uintptr_t pc, uintptr_t cfa)
{
	if (incstack__thunk_contains(pc)) {
		l->thunks++;
	} else if (l->count < LINES) {
		l->pc[l->count] = pc;
		l->cfa[l->count++] = cfa;
	}
}

static NOINLINE void by_libunwind(struct lines *l)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	while (unw_step(&cursor) > 0) {
		unw_word_t pc = 0, sp = 0;
		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		unw_get_reg(&cursor, UNW_REG_SP, &sp);
		add(l, pc, sp);
	}
}

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *argument)
{
	add(argument, _Unwind_GetIP(context), _Unwind_GetCFA(context));
	return _URC_NO_REASON;
}

static NOINLINE void by_libgcc(struct lines *l)
{
	_Unwind_Backtrace(note, l);
}

static NOINLINE void by_glibc(struct lines *l)
{
	void *pc[LINES];
	int count = backtrace(pc, LINES);
	for (int i = 0; i < count; i++)
		add(l, (uintptr_t)pc[i], 0);
}

static void (*const unwinders[])(struct lines *) = {by_libunwind, by_libgcc, by_glibc};
static struct lines seen[2]; /* without barriers, and with them */

static NOINLINE int descend(int depth, int pass, int unwinder);

/* Another shape of frame, with a frame pointer in any build. */
static NOINLINE int descend_by_pointer(int depth, int pass, int unwinder)
{
	volatile char *room = __builtin_alloca((size_t)depth * 16 + 16);
	room[0] = 1;
	traced_sample();
	return descend(depth - 1, pass, unwinder) + room[0];
}

static NOINLINE int descend(int depth, int pass, int unwinder)
{
	traced_sample();
	if (depth == 0) {
		unwinders[unwinder](&seen[pass]);
		return 0;
	}
	int result = depth % 3 ? descend(depth - 1, pass, unwinder)
			       : descend_by_pointer(depth, pass, unwinder);
	__asm__ volatile("" : "+r"(result)); /* not a loop */
	return result + 1;
}

START_TEST(complete)
{
	unsigned distance = 1 + (unsigned)_i / 3 % 3;
	int unwinder = _i % 3;
	for (int pass = 0; pass < 2; pass++) {
		traced_open(distance, pass ? INCSTACK_MODE_PATCH : INCSTACK_MODE_FULL);
		descend(DEPTH, pass, unwinder);
		ck_assert_int_eq(traced_check(), 0);
		traced_close();
	}
	ck_assert_int_eq(seen[0].thunks, 0);
	ck_assert_int_gt(seen[1].thunks, DEPTH / 4);
	ck_assert_int_gt(seen[0].count, DEPTH);
	ck_assert_int_eq(seen[0].count, seen[1].count);
	for (int i = 0; i < seen[0].count; i++) {
		ck_assert_uint_eq(seen[0].pc[i], seen[1].pc[i]);
		ck_assert_uint_eq(seen[0].cfa[i], seen[1].cfa[i]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unwinders");
	TCase *tc = tcase_create("through patched frames");
	tcase_add_loop_test(tc, complete, 0, 9);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
