/* SPDX-License-Identifier: MIT
 *
 * Tests what decides whether a process may have events of the kernel: the reason of a refusal, the notes of the Go linker.
 */
#include <check.h>
#include <string.h>

#include "recorder/cpu/event.c"
#include "recorder/system/signal.c"
#include "recorder/system/small_file.c"

#include "run_suite.h"

struct incstack__recording incstack__recording = {.interval = 1000000};

uint64_t incstack__trap_mark(void)
{
	return 1;
}

START_TEST(reasons)
{
	ck_assert_int_eq(reason_of(EPERM), INCSTACK__NOTE_EVENTS_FORBIDDEN);
	ck_assert_int_eq(reason_of(EACCES), INCSTACK__NOTE_EVENTS_FORBIDDEN);
	ck_assert_int_eq(reason_of(ENOSYS), INCSTACK__NOTE_EVENTS_MISSING);
	ck_assert_int_eq(reason_of(EINVAL), INCSTACK__NOTE_EVENTS_MISSING);
}
END_TEST

START_TEST(versions)
{
	ck_assert_int_eq(version_in("6.1.0-25-amd64"), 6 << 8 | 1);
	ck_assert_int_ge(version_in("6.18.44"), TRAPS_IN_KERNEL);
	ck_assert_int_lt(version_in("6.9.0"), TRAPS_IN_KERNEL);
	ck_assert_int_lt(version_in("5.19.17"), BLOCKED_TRAPS);
	ck_assert_int_lt(version_in("6"), BLOCKED_TRAPS);
	ck_assert_int_lt(version_in(""), BLOCKED_TRAPS);
}
END_TEST

/* A note of another linker, then that of Go, with what may be cut. */
START_TEST(notes_of_go)
{
	struct {
		Elf64_Nhdr gnu;
		char gnu_name[4], gnu_text[8];
		Elf64_Nhdr go;
		char go_name[4], go_text[4];
	} notes = {.gnu = {4, 6, 3}, .gnu_name = "GNU", .go = {4, 4, 4}, .go_name = "Go"};
	const char *bytes = (const char *)&notes;

	ck_assert(has_go_note(bytes, sizeof(notes)));
	ck_assert(!has_go_note(bytes, offsetof(__typeof__(notes), go)));
	ck_assert(!has_go_note(bytes, 0));
	notes.gnu.n_descsz = 0xfffffff0;
	ck_assert(!has_go_note(bytes, sizeof(notes)));
	ck_assert(!is_go());
	ck_assert(!is_traced());
}
END_TEST

START_TEST(programs_that_might_be_disturbed)
{
	ck_assert(!might_disturb());
	signal(SIGTRAP, SIG_IGN);
	ck_assert(might_disturb());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("events of the kernel");
	TCase *events = tcase_create("events");

	tcase_add_test(events, reasons);
	tcase_add_test(events, versions);
	tcase_add_test(events, notes_of_go);
	tcase_add_test(events, programs_that_might_be_disturbed);
	suite_add_tcase(suite, events);
	return run_suite(suite);
}
