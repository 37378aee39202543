/* SPDX-License-Identifier: MIT
 *
 * Tests small parts of the recorder by themselves: notes, the step to a shared recording, and the
 * wait for a thread that is in a signal handler.
 */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "recorder/system/await.c"
#include "recorder/recording/recording.c"

#include "run_suite.h"

enum { TID = 4711, SIGNAL = 33, FOR_EVER = 1000 };

static char status[512]; /* of the thread, as the kernel writes it */
static int naps, ends_after;

size_t incstack__record_read_small(const char *path, char *text, size_t size)
{
	ck_assert_str_eq(path, "/proc/self/task/4711/status");
	ck_assert_uint_gt(size, sizeof(status));
	strcpy(text, naps < ends_after ? status : "Name:\tx\nSigPnd:\t0\nSigBlk:\t0\n");
	return strlen(text);
}

void incstack__nap(long ns)
{
	ck_assert_int_gt(ns, 0);
	naps++;
}

static int naps_for(const char *pending, const char *blocked, int until, int steps)
{
	snprintf(status, sizeof(status),
		 "Name:\tSigBlk:\nSigPnd:\t%s\nShdPnd:\tffffffffffffffff\nSigBlk:\t%s\n"
		 "SigIgn:\tffffffffffffffff\nSigCgt:\tffffffffffffffff\n",
		 pending, blocked);
	naps = 0;
	ends_after = until;
	incstack__record_await_thread(TID, SIGNAL, steps);
	return naps;
}

#define NONE "0000000000000000"
#define THAT "0000000100000000"
#define OTHERS "fffffffeffffffff"

/* The thread still has to take the signal, or is in its handler. Other signals do not matter. */
START_TEST(awaits_the_signal)
{
	ck_assert_int_eq(naps_for(THAT, NONE, FOR_EVER, 7), 7);
	ck_assert_int_eq(naps_for(NONE, THAT, FOR_EVER, 7), 7);
	ck_assert_int_eq(naps_for(THAT, NONE, 3, 7), 3);
	ck_assert_int_eq(naps_for(OTHERS, THAT, 3, 7), 3);
	ck_assert_int_eq(naps_for(NONE, NONE, FOR_EVER, 7), 0);
	ck_assert_int_eq(naps_for(OTHERS, OTHERS, FOR_EVER, 7), 0);
	ck_assert_int_eq(naps_for(THAT, THAT, FOR_EVER, 0), 0);
}
END_TEST

/* Each note is kept, and no note appears that was not made. */
START_TEST(notes_add_up)
{
	static struct incstack__tracefile_slot slots[INCSTACK__TRACEFILE_SLOTS];

	incstack__record_note(INCSTACK__NOTE_MODULES); /* no file yet */
	incstack__recording.slots = slots;
	ck_assert_uint_eq(slots[0].notes, 0);
	for (int i = 0; i < 2; i++) {
		incstack__record_note(INCSTACK__NOTE_MODULES);
		incstack__record_note(INCSTACK__NOTE_UNLOADED);
	}
	ck_assert_uint_eq(slots[0].notes, UINT64_C(1) << INCSTACK__NOTE_MODULES |
						  UINT64_C(1) << INCSTACK__NOTE_UNLOADED);
}
END_TEST

/* Every record notices the step: events are quick only as long as nothing changes. */
START_TEST(sharing_is_a_change)
{
	incstack__recording.changes = 5;
	for (int i = 0; i < 3; i++) {
		incstack__record_share();
		ck_assert_int_eq(incstack__recording.shared, 1);
		ck_assert_uint_eq(incstack__recording.changes, 6);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("parts of the recorder");
	TCase *tests = tcase_create("alone");

	tcase_add_test(tests, awaits_the_signal);
	tcase_add_test(tests, notes_add_up);
	tcase_add_test(tests, sharing_is_a_change);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
