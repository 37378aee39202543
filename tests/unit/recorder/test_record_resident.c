/* SPDX-License-Identifier: MIT
 *
 * Tests which numbers of /proc/self/status the recorder notes when the process ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "recorder/output/resident.c"

#include "run_suite.h"

struct incstack__recording incstack__recording;
static struct incstack__tracefile_slot slot;
static const char *status_text;

size_t incstack__record_read_small(const char *path, char *text, size_t size)
{
	ck_assert_str_eq(path, "/proc/self/status");
	snprintf(text, size, "%s", status_text);
	return strlen(text);
}

static const struct {
	const char *text;
	uint64_t peak, anonymous;
} all[] = {
	{"Name:\tx\nVmHWM:\t    5128 kB\nVmRSS:\t    4000 kB\nRssAnon:\t     600 kB\n", 5128, 600},
	{"Name:\tx\nVmHWM:\t    5128 kB\n", 5128, 0},
	{"Name:\tVmHWM: 7\nGroups:\t\n", 0, 0},                         /* a name is no line */
	{"Name:\tx\nVmHWM:\t99999999999 kB\nRssAnon:\t4294967296 kB\n", /* too large for its bits */
	 UINT32_MAX, UINT32_MAX},
	{"Name:\tx\nVmHWM:\t5128 kB\nRssAnon:\t     60", 5128, 0}, /* cut off */
	{"Name:\tx\nVmHWM:\tmany\nRssAnon:", 0, 0},
	{"", 0, 0}, /* there is no /proc */
};

START_TEST(numbers_are_noted)
{
	incstack__recording.slots = &slot;
	slot.memory = 1;
	status_text = all[_i].text;
	incstack__record_resident();
	ck_assert_uint_eq(slot.memory >> 32, all[_i].peak);
	ck_assert_uint_eq(slot.memory & UINT32_MAX, all[_i].anonymous);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("resident memory");
	TCase *tests = tcase_create("all");

	tcase_add_loop_test(tests, numbers_are_noted, 0, sizeof(all) / sizeof(all[0]));
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
