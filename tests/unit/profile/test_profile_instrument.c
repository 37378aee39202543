/* SPDX-License-Identifier: MIT
 *
 * Profiles of what a meter has measured.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile_instrument.h>

#include "metered.h"
#include "run_suite.h"

static struct incstack_meter_snapshot *snapshot;
static struct incstack_profile *profile;

/* Method 2 is left out. */
static int describe(void *context, const struct incstack_meter_context *at,
		    struct incstack_profile_frame *frame)
{
	static const char *const names[] = {"root", "one", "two", "three"};

	ck_assert_ptr_eq(context, &profile);
	ck_assert_uint_lt(at->function, 4);
	ck_assert_uint_eq(frame->function, at->function);
	frame->name = names[at->function];
	frame->name_length = strlen(frame->name);
	return at->function != 2;
}

static void expect_folded(uint32_t kind, const char *text)
{
	char *written = NULL;
	size_t size;
	FILE *file = open_memstream(&written, &size);

	ck_assert_int_eq(incstack_profile_write(profile, INCSTACK_FORMAT_FOLDED, kind, file), 0);
	fclose(file);
	ck_assert_str_eq(written, text);
	free(written);
}

static void run_calls(void)
{
	enter(0, 100);
	now += 3;
	enter(1, 90);
	enter(2, 80);
	now += 10;
	enter(3, 70);
	now += 100;
	incstack_meter_thread_stop(thread, INCSTACK_METER_WAIT);
	now += 1000;
	incstack_meter_thread_go(thread, INCSTACK_METER_WAIT);
	leave(3, 70);
	leave(2, 80);
	leave(1, 90);
	leave(0, 100);
}

static void free_all(void)
{
	incstack_profile_destroy(profile);
	incstack_meter_snapshot_destroy(snapshot);
	teardown();
}

START_TEST(kinds_of_weight)
{
	create(0, 0, 0);
	run_calls();
	ck_assert_int_eq(incstack_meter_snapshot_create(meter, 0, &snapshot), 0);
	ck_assert_int_eq(incstack_profile_create_from_meter(snapshot, describe, &profile, &profile),
			 0);
	expect_folded(0, "root 3\nroot;one 10\nroot;one;three 100\n");
	expect_folded(1, "root 1\nroot;one 1\nroot;one;three 1\n");
	expect_folded(2, "root;one;three 1000\n");
	expect_folded(3, "root 3\nroot;one 10\nroot;one;three 100\n");
	free_all();
}
END_TEST

START_TEST(threads_apart)
{
	create(0, 0, 0);
	run_calls();
	ck_assert_int_eq(
		incstack_meter_snapshot_create(meter, INCSTACK_METER_PER_THREAD, &snapshot), 0);
	ck_assert_int_eq(incstack_profile_create_from_meter(snapshot, describe, &profile, &profile),
			 0);
	expect_folded(1, "thread 7;root 1\nthread 7;root;one 1\nthread 7;root;one;three 1\n");
	free_all();
}
END_TEST

START_TEST(bad_arguments)
{
	create(0, 0, 0);
	ck_assert_int_eq(incstack_meter_snapshot_create(meter, 0, &snapshot), 0);
	ck_assert_int_eq(incstack_profile_create_from_meter(NULL, NULL, NULL, &profile),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_create_from_meter(snapshot, NULL, NULL, NULL),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_create_from_meter(snapshot, NULL, NULL, &profile), 0);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 1);
	free_all();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("profiles of meters");
	TCase *all = tcase_create("all");

	tcase_add_test(all, kinds_of_weight);
	tcase_add_test(all, threads_apart);
	tcase_add_test(all, bad_arguments);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
