/* SPDX-License-Identifier: MIT
 *
 * Tests the profile library while the Nth allocation fails, for every N: the result is ENOMEM,
 * or as good as with memory. What existed before is unchanged.
 */
#include <incstack/pcct.h>

#include "failing.h"
#include "find_context.h"
#include "profile_files.h"
#include "run_suite.h"
#include "profile/analysis.h"
#include "profile/files.h"
#include "profile/reduce.h"

static const char text_a[] = "main;a;b;c 4\nmain;a;b 3\nmain;d;e;f;g 9\nmain;a;h 1\nother;x 7\n";
static const char text_b[] = "main;a;b;c 1\nmain;d;e;f;i 2\nmain;j 5\nother;x;y;z 6\n";

static struct incstack_profile *a, *b;
static char *folded_a;

static void make_inputs(void)
{
	a = profile_from(text_a);
	b = profile_from(text_b);
	folded_a = folded_text(a, 0);
}

static void drop_inputs(void)
{
	incstack_profile_destroy(a);
	incstack_profile_destroy(b);
	free(folded_a);
}

/* What was made from the first input, if anything, is unchanged, and is freed. */
static void must_be_a(int result, struct incstack_profile *profile)
{
	if (result == 0) {
		char *text = folded_text(profile, 0);

		ck_assert_str_eq(text, folded_a);
		free(text);
	}
	incstack_profile_destroy(profile);
}

/* ---- files ------------------------------------------------------------------------- */

static enum incstack_profile_format format;
static struct bytes reference;

static int read_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack_profile *profile = NULL;
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	FILE *stream = fmemopen(reference.at, reference.size, "r");
	int result;

	ck_assert_ptr_nonnull(stream);
	arm(n, for_ever);
	result = incstack_profile_read(
		stream, format, INCSTACK_KEEP_LABELS | INCSTACK_KEEP_MAPPINGS, &profile, &problem);
	*something_failed = disarm();
	fclose(stream);
	must_be_a(result, profile);
	return result;
}

static int write_scenario(long n, bool for_ever, bool *something_failed)
{
	struct bytes bytes = {NULL, 0};
	FILE *stream = open_memstream(&bytes.at, &bytes.size);
	int result;

	ck_assert_ptr_nonnull(stream);
	arm(n, for_ever);
	result = incstack_profile_write(a, format, 0, stream);
	*something_failed = disarm();
	ck_assert_int_eq(fclose(stream), 0);
	if (result == 0) {
		ck_assert_uint_eq(bytes.size, reference.size);
		ck_assert_mem_eq(bytes.at, reference.at, bytes.size);
	}
	free(bytes.at);
	return result;
}

START_TEST(each_format)
{
	format = (enum incstack_profile_format)_i;
	make_inputs();
	reference = write_bytes(a, format, 0);
	fail_each_allocation(write_scenario, format == INCSTACK_FORMAT_FOLDED ? 0 : 1);
	if (format != INCSTACK_FORMAT_HTML)
		fail_each_allocation(read_scenario, 5);
	free(reference.at);
	drop_inputs();
}
END_TEST

START_TEST(labels_and_mappings)
{
	struct bytes bytes = labelled_pprof();

	format = INCSTACK_FORMAT_PPROF;
	a = read_labelled(bytes);
	b = NULL;
	folded_a = folded_text(a, 0);
	reference = write_bytes(a, format, 0);
	fail_each_allocation(write_scenario, 1);
	fail_each_allocation(read_scenario, 5);
	free(reference.at);
	free(bytes.at);
	drop_inputs();
}
END_TEST

/* ---- several profiles ------------------------------------------------------------------ */

static int merge_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack_profile *into = profile_from(text_a);
	char *text;
	int result;

	arm(n, for_ever);
	result = incstack_profile_merge(into, b);
	*something_failed = disarm();
	/* Whatever was merged, it can be read. */
	text = folded_text(into, 0);
	if (result == 0) {
		ck_assert_ptr_nonnull(strstr(text, "main;a;b;c 5\n"));
		ck_assert_ptr_nonnull(strstr(text, "other;x;y;z 6\n"));
	}
	free(text);
	incstack_profile_destroy(into);
	return result;
}

static int average_scenario(long n, bool for_ever, bool *something_failed)
{
	const struct incstack_profile *const both[] = {a, b};
	struct incstack_profile *average = NULL;
	int result;

	arm(n, for_ever);
	result = incstack__profile_average(both, 2, &average);
	*something_failed = disarm();
	if (result == 0)
		ck_assert_uint_gt(incstack_profile_nodes(average), incstack_profile_nodes(a));
	incstack_profile_destroy(average);
	return result;
}

static int compare_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack__profile_difference expected, difference;
	int result;

	ck_assert_int_eq(
		incstack__profile_compare(a, b, 0, INCSTACK__MEASURE_BOTH, 0.01, &expected), 0);
	arm(n, for_ever);
	result = incstack__profile_compare(a, b, 0, INCSTACK__MEASURE_BOTH, 0.01, &difference);
	*something_failed = disarm();
	if (result == 0)
		ck_assert_mem_eq(&difference, &expected, sizeof(expected));
	return result;
}

static int overlay_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack_profile *both = NULL;
	int result;

	arm(n, for_ever);
	result = incstack__profile_overlay(a, b, 0, &both);
	*something_failed = disarm();
	must_be_a(result, both);
	return result;
}

static int stability_scenario(long n, bool for_ever, bool *something_failed)
{
	const struct incstack_profile *const both[] = {a, b};
	struct incstack__profile_stability stability;
	int result;

	arm(n, for_ever);
	result = incstack__profile_stability(both, 2, 0, INCSTACK__MEASURE_SELF, 0.01, &stability);
	*something_failed = disarm();
	return result;
}

static int select_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack_profile *one = NULL;
	int result;

	arm(n, for_ever);
	result = incstack__profile_select(a, 0, NULL, &one);
	*something_failed = disarm();
	must_be_a(result, one);
	return result;
}

START_TEST(several_profiles)
{
	make_inputs();
	fail_each_allocation(merge_scenario, 2);
	fail_each_allocation(average_scenario, 5);
	fail_each_allocation(compare_scenario, 2);
	fail_each_allocation(overlay_scenario, 5);
	fail_each_allocation(select_scenario, 5);
	fail_each_allocation(stability_scenario, 5);
	drop_inputs();
}
END_TEST

/* ---- one profile --------------------------------------------------------------------------- */

static int functions_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack__profile_function functions[32];
	size_t count = 32;
	int result;

	arm(n, for_ever);
	result = incstack__profile_functions(a, 0, functions, &count);
	*something_failed = disarm();
	if (result == 0)
		ck_assert_str_eq(functions[0].name, "g");
	return result;
}

static int prune_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack_profile *profile = profile_from(text_a);
	uint64_t totals[32];
	int result;

	arm(n, for_ever);
	result = incstack__profile_prune(profile, 4);
	*something_failed = disarm();
	ck_assert_int_eq(incstack_profile_totals(profile, 0, totals), 0);
	ck_assert_uint_eq(totals[0], 24); /* pruned or not */
	incstack_profile_destroy(profile);
	return result;
}

static int shrink_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack_profile *profile = profile_from(text_a);
	uint64_t totals[32];
	int result;

	arm(n, for_ever);
	result = incstack__profile_shrink(profile, 4);
	*something_failed = disarm();
	ck_assert(result != 0 || incstack_profile_nodes(profile) <= 4);
	ck_assert_int_eq(incstack_profile_totals(profile, 0, totals), 0);
	ck_assert_uint_eq(totals[0], 24); /* smaller or not */
	incstack_profile_destroy(profile);
	return result;
}

/* Three samples of stacks that become smaller, 40 frames at first. */
static int pcct_scenario(long n, bool for_ever, bool *something_failed)
{
	const struct incstack_pcct_options options = {
		.size = sizeof(options), .contexts = 100, .depth = 30};
	struct incstack_frame_object frames[40];
	struct incstack_trace traces[3];
	const struct incstack_tree tree = {traces, 3, 40, 0};
	struct incstack_pcct *pcct = NULL;
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};
	int result;

	for (int i = 0; i < 40; i++)
		frames[i] = (struct incstack_frame_object){
			i ? &frames[i - 1] : NULL, (uint64_t)i, (uintptr_t)(1000 - i) * 8, -1,
			INCSTACK_OBJECT_FILLED | (i ? 0u : (uint32_t)INCSTACK_OBJECT_BASE)};
	for (int i = 0; i < 3; i++)
		traces[i] = (struct incstack_trace){.next = i < 2 ? &traces[i + 1] : NULL,
						    .weight = 1,
						    .top = &frames[39 - i],
						    .old = i ? &frames[37 - i] : NULL};
	arm(n, for_ever);
	result = incstack_pcct_create(&options, &pcct);
	if (result == 0)
		result = incstack_pcct_add_tree(pcct, &tree);
	*something_failed = disarm();
	if (result == 0) {
		ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), 0);
		ck_assert_uint_eq(stats.samples, 3);
		ck_assert_uint_eq(stats.contexts, 31);
	}
	incstack_pcct_destroy(pcct);
	return result;
}

enum { ABOVE = 80, CALLERS = 3 };

/* main calls `middle`, which calls leaf, which calls itself at ABOVE other addresses. */
static void make_frames(struct incstack_frame_object *frames, uint64_t middle)
{
	for (int i = 0; i < CALLERS + ABOVE; i++)
		frames[i] = (struct incstack_frame_object){
			.parent = i ? &frames[i - 1] : NULL,
			.function = i == 0   ? 1
				    : i == 1 ? middle
					     : 9,
			.address = (uintptr_t)(1000 - i) * 8,
			.position = -1,
			.flags =
				INCSTACK_OBJECT_FILLED | (i ? 0u : (uint32_t)INCSTACK_OBJECT_BASE)};
}

static int add_one(struct incstack_pcct *pcct, const struct incstack_frame_object *top,
		   const struct incstack_frame_object *old)
{
	struct incstack_trace traces[2];
	const struct incstack_tree tree = {traces, 2, 1, 0};

	traces[0] =
		(struct incstack_trace){.next = &traces[1], .weight = 1, .top = top, .old = old};
	traces[1] = (struct incstack_trace){.weight = 1, .top = top, .old = top};
	return incstack_pcct_add_tree(pcct, &tree);
}

/* The leaf was visited below function 2. A sample below function 3, at the same addresses, finds no
 * memory. Then it must be forgotten that the addresses were visited, or the next sample there would be
 * counted below function 2. */
START_TEST(a_lost_sample_ends_visits)
{
	const struct incstack_pcct_options options = {.size = sizeof(options), .contexts = 1000};
	struct incstack_frame_object before[CALLERS + ABOVE], after[CALLERS + ABOVE];
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};
	struct incstack_pcct *pcct;
	uint32_t at;
	int lost;

	make_frames(before, 2);
	make_frames(after, 3);
	ck_assert_int_eq(incstack_pcct_create(&options, &pcct), 0);
	ck_assert_int_eq(add_one(pcct, &before[2], NULL), 0);
	arm(0, true);
	lost = add_one(pcct, &after[CALLERS + ABOVE - 1], &after[0]);
	disarm();
	ck_assert_int_eq(lost, INCSTACK_ENOMEM);
	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), 0);
	ck_assert_uint_eq(stats.dropped, 2);
	ck_assert_int_eq(add_one(pcct, &after[2], &after[2]), 0);
	at = find_context(pcct, INCSTACK_PCCT_NONE, -1, 1);
	at = find_context(pcct, at, -1, 3);
	ck_assert_uint_ne(at, INCSTACK_PCCT_NONE);
	ck_assert_uint_ne(find_context(pcct, at, -1, 9), INCSTACK_PCCT_NONE);
	incstack_pcct_destroy(pcct);
}
END_TEST

static int name_frame(void *context, const struct incstack_profile_frame *frame,
		      struct incstack_profile_source *source)
{
	static char text[24];

	(void)context;
	snprintf(text, sizeof(text), "f%llu", (unsigned long long)frame->function);
	source->name = text;
	source->file = "frames.c";
	return 0;
}

enum { FRAMES = 100 };

/* main -> 1 -> ... -> 100, with a trace at each of them. */
static int add_scenario(long n, bool for_ever, bool *something_failed)
{
	const struct incstack_profile_kind kind = {"samples", "count"};
	const struct incstack_profile_meta meta = {
		.size = sizeof(meta), .program = "program", .mode = "patch"};
	struct incstack_frame_object frames[FRAMES];
	struct incstack_trace traces[FRAMES];
	const struct incstack_tree tree = {traces, FRAMES, FRAMES, 0};
	struct incstack_profile *profile = NULL, *named = NULL, *folded = NULL;
	int result;

	for (int i = 0; i < FRAMES; i++) {
		frames[i] = (struct incstack_frame_object){i ? &frames[i - 1] : NULL, (uint64_t)i,
							   (uintptr_t)(1000 - i) * 8, -1,
							   INCSTACK_OBJECT_FILLED};
		traces[i] = (struct incstack_trace){.next = i + 1 < FRAMES ? &traces[i + 1] : NULL,
						    .top = &frames[i]};
	}
	frames[0].flags |= INCSTACK_OBJECT_BASE;
	arm(n, for_ever);
	result = incstack_profile_create(&kind, 1, &profile);
	if (result == 0)
		result = incstack_profile_set_meta(profile, &meta);
	if (result == 0)
		result = incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL,
						   NULL);
	if (result == 0)
		result = incstack_profile_name_frames(profile, name_frame, NULL, &named);
	if (result == 0)
		result = incstack__profile_fold_recursion(named, &folded);
	*something_failed = disarm();
	if (result == 0) {
		uint64_t totals[FRAMES + 1];

		ck_assert_uint_eq(incstack_profile_nodes(profile), FRAMES + 1);
		ck_assert_int_eq(incstack_profile_totals(profile, 0, totals), 0);
		ck_assert_uint_eq(totals[0], FRAMES);
		ck_assert_uint_eq(incstack_profile_nodes(folded), FRAMES + 1);
	}
	incstack_profile_destroy(folded);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
	return result;
}

START_TEST(one_profile)
{
	make_inputs();
	fail_each_allocation(functions_scenario, 1);
	fail_each_allocation(prune_scenario, 1);
	fail_each_allocation(shrink_scenario, 1);
	fail_each_allocation(pcct_scenario, 5);
	fail_each_allocation(add_scenario, 5);
	drop_inputs();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("profile without memory");
	TCase *all = tcase_create("all");

	tcase_add_loop_test(all, each_format, INCSTACK_FORMAT_FOLDED, INCSTACK_FORMAT_HTML + 1);
	tcase_add_test(all, labels_and_mappings);
	tcase_add_test(all, several_profiles);
	tcase_add_test(all, one_profile);
	tcase_add_test(all, a_lost_sample_ends_visits);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
