/* SPDX-License-Identifier: MIT
 *
 * To which module the recorder says that an address belongs, while modules come and go at the same
 * places, with and without an announcement.
 */
#include "moving_modules.h"
#include "run_suite.h"

static int free_place(void)
{
	bool used[PLACES] = {false};
	const unsigned first = random_below(PLACES);

	for (unsigned i = 0; i < count; i++)
		used[(loaded[i].low - FIRST_PLACE) / PLACE_BYTES] = true;
	for (unsigned i = 0; i < PLACES; i++)
		if (!used[(first + i) % PLACES])
			return (int)((first + i) % PLACES);
	return -1;
}

static void samples(bool exact)
{
	for (unsigned n = random_below(4); n > 0; n--)
		sample(exact);
}

static void load_some(bool exact)
{
	for (unsigned n = random_below(4); n > 0; n--) {
		const int number = free_place();

		if (number >= 0)
			load((unsigned)number);
		samples(exact);
	}
}

/* By dlclose, which may remove several. */
static void close_some(bool exact)
{
	incstack__record_modules_unload(INCSTACK__UNLOAD_BEGINS, NULL);
	ck_assert_uint_ge(incstack__recording.unloading, 1);
	samples(exact);
	for (unsigned n = random_below(3); n > 0 && count > STAY; n--) {
		unload(STAY + random_below(count - STAY));
		load_some(exact);
	}
	incstack__record_modules_unload(INCSTACK__UNLOAD_ENDED, NULL);
}

/* By libc itself: the module's destructors are the announcement. */
static void announce_one(bool exact)
{
	const unsigned index = STAY + random_below(count - STAY);
	const void *within = (const void *)(loaded[index].low + random_below(PLACE_BYTES));

	incstack__record_modules_unload(INCSTACK__UNLOAD_ANNOUNCED, within);
	if (random_below(2))
		incstack__record_modules_unload(INCSTACK__UNLOAD_ANNOUNCED, within);
	ck_assert_uint_eq(incstack__recording.unloading, 1);
	samples(exact);
	unload(index);
	load_some(exact);
	incstack__record_modules();
	ck_assert_uint_eq(incstack__recording.unloading, 0);
}

static void run(bool silent, bool exact)
{
	const uint32_t changes = incstack__recording.changes;

	begin();
	for (unsigned i = 0; i < STEPS / 8 && kept_count + 200 < KEPT; i++) {
		const unsigned dice = random_below(10);

		if (dice < 4 || count == STAY)
			load_some(exact);
		else if (dice < 6)
			close_some(exact);
		else if (dice < 8)
			announce_one(exact);
		else if (silent)
			unload(STAY + random_below(count - STAY));
		samples(exact);
		ck_assert_uint_eq(modules.closing, 0);
	}
	flush();
	ck_assert_uint_gt(kept_count, 500);
	ck_assert_uint_ne(incstack__recording.changes, changes);
	ck_assert_uint_gt(forgot, 20);
}

/* ---- tests ------------------------------------------------------------------------------------- */

START_TEST(announced)
{
	counters_known = _i;
	run(false, true);
	ck_assert_uint_eq(compare_all(), 0);
	ck_assert_uint_eq(cut, 0);
	ck_assert_uint_eq(notes_unloaded + notes_modules, 0);
}
END_TEST

/* Some code is unknown then, but no module is taken for another. */
START_TEST(unannounced)
{
	counters_known = _i;
	run(true, false);
	const unsigned unknown = compare_all();
	ck_assert_uint_gt(unknown, 0);
	ck_assert_uint_lt(unknown, kept_count / 2);
	ck_assert_uint_gt(known_in_doubt, 100);
	ck_assert_uint_gt(cut, 0);
	ck_assert_uint_gt(notes_unloaded, 0);
}
END_TEST

/* Another module was at the place of a module that is there again, and the recorder did not look in
 * between. Its code must not be taken for that of the first. */
START_TEST(the_same_module_again)
{
	counters_known = _i;
	begin();
	load(2);
	incstack__record_modules();
	sample(true);
	const struct module first = loaded[STAY];
	unload(STAY);
	load(2);
	for (int i = 0; i < BATCH - 2; i++)
		sample(false);
	unload(STAY);
	loaded[count++] = first;
	adds++;
	flush();
	ck_assert_uint_gt(compare_all(), 0);
}
END_TEST

/* There is no room to note which modules are gone, so all of them are in doubt. */
START_TEST(no_memory_for_spans)
{
	no_spans = true;
	run(false, true);
	ck_assert_uint_lt(compare_all(), kept_count / 2);
	ck_assert_uint_gt(cut, 0);
	ck_assert_uint_gt(notes_unloaded, 0);
}
END_TEST

/* Another module is at the place of a module whose unload was not announced. There is no room to note
 * which code is in doubt, so all code is. */
START_TEST(no_memory_for_doubts)
{
	no_spans = true;
	begin();
	load(2);
	load(3);
	incstack__record_modules();
	sample(true);
	for (int i = 0; i < 4; i++) {
		unload(STAY);
		load(2 + (unsigned)i % 2);
		for (int k = 0; k < BATCH / 2; k++)
			sample(false);
		flush();
	}
	ck_assert_uint_gt(compare_all(), 0);
	ck_assert_uint_gt(cut, 0);
	ck_assert_uint_eq(notes_unloaded, 4);
}
END_TEST

/* No list: the old one stays, and the report says so. */
START_TEST(no_memory_for_lists)
{
	begin();
	sample(true);
	load(2);
	no_lists = true;
	incstack__record_modules();
	ck_assert_uint_eq(notes_modules, 1);
	ck_assert_uint_eq(incstack__recording.epoch, 2);
	no_lists = false;
	flush();
	sample(true);
	flush();
	ck_assert_uint_eq(compare_all(), 0);
	ck_assert_uint_eq(notes_modules, 1);
}
END_TEST

/* The last list of an epoch cannot be made, and the report says so. */
START_TEST(no_memory_for_the_last_list)
{
	begin();
	load(2);
	incstack__record_modules();
	sample(true);
	unload(STAY);
	load(3);
	lists_more = 1; /* the new list itself */
	incstack__record_modules();
	lists_more = -1;
	ck_assert_uint_eq(notes_modules, 1);
	ck_assert_uint_eq(incstack__recording.epoch, 4);
}
END_TEST

/* More modules run their destructors than the list of announcements holds. */
START_TEST(too_many_announcements)
{
	begin();
	for (unsigned i = STAY; i < LOADED_MOST; i++)
		load(i);
	incstack__record_modules();
	for (unsigned i = STAY; i < LOADED_MOST; i++)
		incstack__record_modules_unload(INCSTACK__UNLOAD_ANNOUNCED,
						(const void *)(loaded[i].low));
	ck_assert_uint_eq(incstack__recording.unloading, ANNOUNCED_MAX);
	/* The modules of the start run their destructors only when the process ends. */
	incstack__record_modules_unload(INCSTACK__UNLOAD_ANNOUNCED, (const void *)loaded[0].low);
	ck_assert_uint_eq(incstack__recording.unloading, ANNOUNCED_MAX);
	while (count > LOADED_MOST - ANNOUNCED_MAX)
		unload(STAY);
	incstack__record_modules();
	ck_assert_uint_eq(incstack__recording.unloading, 0);
	ck_assert_uint_eq(notes_unloaded, 0); /* each was announced */
	unload(STAY);
	incstack__record_modules();
	ck_assert_uint_eq(notes_unloaded, 1); /* that one was not */
}
END_TEST

/* A second look that saw less changes nothing. Neither does an end without a begin. */
START_TEST(late_looks)
{
	struct incstack__record_counts counts = {0, 0};
	struct incstack__record_list old = {.counts = {0, 0}};

	begin();
	load(2);
	ck_assert_int_eq(incstack__record_list_collect(&old, counts), 1);
	load(3);
	incstack__record_modules();
	const unsigned had = modules.known.block.count;
	publish(&old);
	ck_assert_uint_eq(modules.known.block.count, had);
	incstack__record_list_free(&old);
	unload(2);
	incstack__record_modules();
	ck_assert_uint_eq(incstack__recording.epoch, 4);
	incstack__record_modules_unload(INCSTACK__UNLOAD_ENDED, NULL);
	ck_assert_uint_eq(incstack__recording.unloading, 0);
	ck_assert_int_eq(incstack__record_modules_are(&counts), 0);
	ck_assert_int_eq(incstack__record_modules_are(&counts), 0);
	counters_known = true;
	ck_assert_int_eq(incstack__record_modules_are(&counts), 1);
	counts.subs++;
	ck_assert_int_eq(incstack__record_modules_are(&counts), 0);
	load(4);
	ck_assert_int_eq(incstack__record_modules_are(&counts), 0);
}
END_TEST

/* It does not wait for the lock. What it writes then belongs to the epoch in which it was
 * recorded. */
START_TEST(settled_in_a_handler)
{
	struct incstack_frame_object frame = {.flags = INCSTACK_OBJECT_BASE};
	const struct incstack_trace trace = {.top = &frame};
	const struct incstack_tree tree = {.traces = &trace};
	uint64_t cut_here = 0;

	begin();
	load(2);
	incstack__record_modules();
	frame.function = loaded[2].low + 1;
	unload(2);
	incstack__record_modules();
	incstack__record_local.handling = 1;
	is_locked_elsewhere = true;
	ck_assert_uint_eq(incstack__record_modules_settle(2, &tree, &cut_here), 2);
	is_locked_elsewhere = false;
	ck_assert_uint_eq(cut_here, 0);
	ck_assert_uint_eq(incstack__record_modules_settle(2, &tree, &cut_here), 3);
	ck_assert_uint_eq(cut_here, 1);
	incstack__record_local.handling = 0;
}
END_TEST

/* The list is written to the child's file, if it has one. */
START_TEST(forked_child)
{
	incstack__record_modules_forked();
	ck_assert_ptr_null(written[0].data);
	begin();
	free(written[2].data);
	written[2].data = NULL;
	incstack__record_modules_forked();
	ck_assert_ptr_null(written[2].data);
	incstack__recording.on = 1;
	incstack__record_modules_forked();
	ck_assert_ptr_nonnull(written[2].data);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unloading in the recorder");
	TCase *tests = tcase_create("modules");

	tcase_add_loop_test(tests, announced, 0, 2);
	tcase_add_loop_test(tests, unannounced, 0, 2);
	tcase_add_loop_test(tests, the_same_module_again, 0, 2);
	tcase_add_test(tests, no_memory_for_spans);
	tcase_add_test(tests, no_memory_for_doubts);
	tcase_add_test(tests, no_memory_for_lists);
	tcase_add_test(tests, no_memory_for_the_last_list);
	tcase_add_test(tests, too_many_announcements);
	tcase_add_test(tests, late_looks);
	tcase_add_test(tests, settled_in_a_handler);
	tcase_add_test(tests, forked_child);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
