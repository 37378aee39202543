/* SPDX-License-Identifier: MIT
 *
 * Tests what each format keeps of frames and weights, and that it reports what it cannot keep.
 */
#include "profile_files.h"
#include "profile_nodes.h"
#include "run_suite.h"
#include "profile/files.h"

static struct incstack_profile *profile_of(enum incstack_profile_format format, const char *text)
{
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *profile = NULL;
	int error = read_bytes(text, strlen(text), format, &profile, &problem);

	ck_assert_msg(!error, "%s at %llu", problem.why, (unsigned long long)problem.offset);
	return profile;
}

static struct incstack_profile *through(struct incstack_profile *profile,
					enum incstack_profile_format format)
{
	struct bytes bytes = write_bytes(profile, format, 0);
	struct incstack_profile *back = NULL;

	ck_assert_int_eq(read_bytes(bytes.at, bytes.size, format, &back, NULL), 0);
	free(bytes.at);
	incstack_profile_destroy(profile);
	return back;
}

static uint64_t total(const struct incstack_profile *profile, uint32_t kind)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < incstack_profile_nodes(profile); i++)
		sum += node_at(profile, i).weights[kind];
	return sum;
}

#define FRAMES \
	"\"shared\":{\"frames\":[{\"name\":\"m\"},{\"name\":\"f\",\"file\":\"f.c\"," \
	"\"line\":7,\"inlineDepth\":1},{\"name\":\"f\"}]}"

static void is_f_of_line_7(const struct incstack_profile *profile, int inlined)
{
	struct incstack_profile_frame frame;

	ck_assert_uint_eq(incstack_profile_nodes(profile), 4);
	frame = node_at(profile, 2).frame;
	ck_assert_str_eq(frame.file, "f.c");
	ck_assert_int_eq(frame.line, 7);
	ck_assert_int_eq(!!(frame.flags & INCSTACK_OBJECT_VIRTUAL), inlined);
	frame = node_at(profile, 3).frame;
	ck_assert_ptr_null(frame.file);
	ck_assert_int_eq(frame.position, -1);
}

START_TEST(lines_files_and_inlining_are_kept)
{
	struct incstack_profile *profile =
		profile_of(INCSTACK_FORMAT_SPEEDSCOPE,
			   "{" FRAMES ",\"profiles\":[{\"unit\":\"none\",\"samples\":[[0,1],[0,2]],"
			   "\"weights\":[3,4]}]}");

	is_f_of_line_7(profile, 1);
	profile = through(profile, INCSTACK_FORMAT_FIREFOX);
	is_f_of_line_7(profile, 1);
	profile = through(profile, INCSTACK_FORMAT_SPEEDSCOPE);
	is_f_of_line_7(profile, 1);
	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_FIREFOX, 0), 0);
	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_PPROF, 0), 0);
	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_FOLDED, 0),
			  INCSTACK__LOSS_INLINING | INCSTACK__LOSS_LINES | INCSTACK__LOSS_FILES);
	profile = through(profile, INCSTACK_FORMAT_PPROF);
	is_f_of_line_7(profile, 1);
	incstack_profile_destroy(profile);
}
END_TEST

static char inlined(const struct incstack_profile *profile, uint32_t node)
{
	return node_at(profile, node).frame.flags & INCSTACK_OBJECT_VIRTUAL ? '1' : '0';
}

/* In traces the caller is marked as virtual; in profiles and files the inlined frame is. The
 * functions 3 and 4 are inlined, one into the other and that into 2, which 1 calls. */
START_TEST(inlined_frames_of_traces_are_marked)
{
	static const struct incstack_profile_kind kinds[] = {{"samples", "count"}};
	static const enum incstack_profile_format formats[] = {
		INCSTACK_FORMAT_FIREFOX, INCSTACK_FORMAT_PPROF, INCSTACK_FORMAT_SPEEDSCOPE};
	struct incstack_frame_object objects[] = {
		{NULL, 1, 200, -1, INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_BASE},
		{&objects[0], 2, 100, -1, INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_VIRTUAL},
		{&objects[1], 3, 100, -1, INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_VIRTUAL},
		{&objects[2], 4, 100, -1, INCSTACK_OBJECT_FILLED},
	};
	struct incstack_trace trace = {.weight = 1, .top = &objects[3]};
	struct incstack_tree tree = {.traces = &trace, .count = 1, .objects = 4};
	struct incstack_profile *profile;

	ck_assert_int_eq(incstack_profile_create(kinds, 1, &profile), 0);
	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
	for (int f = 0; f < 4; f++) {
		ck_assert_uint_eq(incstack_profile_nodes(profile), 5);
		for (uint32_t node = 1; node < 5; node++)
			ck_assert_int_eq(inlined(profile, node), "0011"[node - 1]);
		if (f < 3)
			profile = through(profile, formats[f]);
	}
	incstack_profile_destroy(profile);
}
END_TEST

/* pprof has no frame into which this one could be inlined. */
START_TEST(inlining_into_nothing_is_said)
{
	struct incstack_profile *profile =
		profile_of(INCSTACK_FORMAT_SPEEDSCOPE,
			   "{" FRAMES ",\"profiles\":[{\"unit\":\"none\",\"samples\":[[1,1,0,1]],"
			   "\"weights\":[3]}]}");

	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_PPROF, 0),
			  INCSTACK__LOSS_INLINING);
	profile = through(profile, INCSTACK_FORMAT_PPROF);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 5);
	for (uint32_t node = 1; node < 5; node++)
		ck_assert_int_eq(inlined(profile, node), "0101"[node - 1]);
	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_PPROF, 0), 0);
	incstack_profile_destroy(profile);
}
END_TEST

static void folded_is(const struct incstack_profile *profile, const char *expected)
{
	char *text = folded_text(profile, 0);

	ck_assert_str_eq(text, expected);
	free(text);
}

/* From pprof to pprof: the second time the same bytes are written. */
START_TEST(labels_and_mappings_are_kept)
{
	static const char text[] = "0x1235 6\n[unknown];user=ann 7\ng;f 5\n"
				   "g;f;user=ann;size=42 bytes 3\ng;f;user=bob 4\n";
	const uint32_t extra = INCSTACK__LOSS_LABELS | INCSTACK__LOSS_MAPPINGS;
	struct bytes bytes[4] = {labelled_pprof()};

	for (int i = 0; i < 3; i++) {
		struct incstack_profile *profile = read_labelled(bytes[i]);

		folded_is(profile, text);
		ck_assert_uint_eq(incstack_profile_nodes(profile), 11);
		ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_PPROF, 0), 0);
		ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_FIREFOX, 0),
				  extra);
		bytes[i + 1] = write_bytes(profile, INCSTACK_FORMAT_PPROF, 0);
		incstack_profile_destroy(profile);
	}
	ck_assert_uint_eq(bytes[3].size, bytes[2].size);
	ck_assert_mem_eq(bytes[3].at, bytes[2].at, bytes[2].size);
	for (int i = 0; i < 4; i++)
		free(bytes[i].at);
}
END_TEST

/* Without the request to keep them, the contexts are read without them, and a loss is reported. */
START_TEST(labels_and_mappings_are_kept_if_asked_for)
{
	struct bytes bytes = labelled_pprof();
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(read_bytes(bytes.at, bytes.size, INCSTACK_FORMAT_PPROF, &profile, NULL),
			 0);
	folded_is(profile, "0x1235 6\n[unknown] 7\ng;f 12\n");
	ck_assert_uint_eq(incstack_profile_nodes(profile), 5);
	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_PPROF, 0),
			  INCSTACK__LOSS_LABELS | INCSTACK__LOSS_MAPPINGS);
	incstack_profile_destroy(profile);
	free(bytes.at);
}
END_TEST

START_TEST(fractions_add_up)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	fputs("{" FRAMES ",\"profiles\":[{\"unit\":\"none\",\"samples\":[[0]", stream);
	for (int i = 1; i < 1000; i++)
		fputs(i % 4 ? ",[0]" : ",[0,1]", stream);
	fputs("],\"weights\":[0.4", stream);
	for (int i = 1; i < 1000; i++)
		fputs(",0.4", stream);
	fputs("]}]}", stream);
	fclose(stream);
	struct incstack_profile *profile = profile_of(INCSTACK_FORMAT_SPEEDSCOPE, text);
	ck_assert_uint_eq(total(profile, 0), 400);
	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_SPEEDSCOPE, 0),
			  INCSTACK__LOSS_FRACTIONS);
	incstack_profile_destroy(profile);
	free(text);
	/* Each context has less than a half; their sum has more. */
	profile =
		profile_of(INCSTACK_FORMAT_SPEEDSCOPE,
			   "{" FRAMES ",\"profiles\":[{\"unit\":\"none\",\"samples\":[[0],[1],[2],"
			   "[0,1],[0,2]],\"weights\":[0.4,0.4,0.4,0.4,0.4]}]}");
	ck_assert_uint_eq(total(profile, 0), 2);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(open_frames_last_until_the_end)
{
	struct incstack_profile *profile = profile_of(
		INCSTACK_FORMAT_SPEEDSCOPE,
		"{" FRAMES
		",\"profiles\":[{\"type\":\"evented\",\"unit\":\"none\",\"startValue\":0,"
		"\"endValue\":30,\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":10},"
		"{\"type\":\"O\",\"frame\":1,\"at\":12}]}]}");

	ck_assert_uint_eq(total(profile, 0), 20);
	incstack_profile_destroy(profile);
}
END_TEST

/* A second of 2^40 s would not fit as nanoseconds; the two kinds of seconds are two. */
START_TEST(own_files_keep_their_kinds)
{
	static const struct incstack_profile_kind kinds[] = {
		{"t", "seconds"}, {"t", "nanoseconds"}, {"t", "seconds"}};
	static const enum incstack_profile_format formats[] = {
		INCSTACK_FORMAT_SPEEDSCOPE, INCSTACK_FORMAT_FIREFOX, INCSTACK_FORMAT_PPROF};
	static const uint64_t weights[] = {UINT64_C(1) << 40, 5, 6};
	const struct incstack_profile_frame frame = {.size = sizeof(frame), .function = 1};
	struct incstack_profile *profile;
	struct incstack_profile_kind kind;
	uint32_t node;

	ck_assert_int_eq(incstack_profile_create(kinds, 3, &profile), 0);
	ck_assert_int_eq(incstack_profile_add_node(profile, INCSTACK_PROFILE_ROOT, &frame, &node),
			 0);
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, weights), 0);
	for (int f = 0; f < 3; f++) {
		profile = through(profile, formats[f]);
		ck_assert_uint_eq(count_kinds(profile), 3);
		for (uint32_t k = 0; k < 3; k++) {
			ck_assert_int_eq(incstack_profile_kind(profile, k, &kind), 0);
			ck_assert_str_eq(kind.unit, kinds[k].unit);
			ck_assert_uint_eq(total(profile, k), weights[k]);
		}
		ck_assert_uint_eq(
			incstack__profile_losses(profile, (enum incstack_profile_format)0, 0), 0);
	}
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(threads_of_one_unit_are_added_up_and_said)
{
	struct incstack_profile *profile = profile_of(
		INCSTACK_FORMAT_SPEEDSCOPE,
		"{" FRAMES ",\"profiles\":[{\"unit\":\"none\",\"samples\":[[0]],\"weights\":[1]},"
		"{\"unit\":\"none\",\"samples\":[[0]],\"weights\":[2]}]}");

	ck_assert_uint_eq(total(profile, 0), 3);
	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_PPROF, 0),
			  INCSTACK__LOSS_THREADS);
	incstack_profile_destroy(profile);
}
END_TEST

/* What files of other programs contain and cannot be kept. */
START_TEST(what_others_say_is_named)
{
	struct incstack_profile *profile = profile_of(
		INCSTACK_FORMAT_FIREFOX,
		"{\"threads\":[{\"name\":\"GeckoMain\",\"samples\":{\"stack\":[0]},"
		"\"stackTable\":{\"frame\":[0],\"prefix\":[null]},\"frameTable\":{\"func\":[0],"
		"\"address\":[64],\"line\":[null],\"column\":[null]},\"funcTable\":{\"name\":[0],"
		"\"lineNumber\":[12]},\"stringArray\":[\"f\"]}]}");

	ck_assert_uint_eq(incstack__profile_losses(profile, (enum incstack_profile_format)0, 0),
			  INCSTACK__LOSS_MAPPINGS | INCSTACK__LOSS_FUNCTIONS |
				  INCSTACK__LOSS_THREADS);
	incstack_profile_destroy(profile);
	profile = profile_of(INCSTACK_FORMAT_SPEEDSCOPE,
			     "{\"shared\":{\"frames\":[{\"name\":\"m\",\"line\":3000000000,"
			     "\"col\":4}]},\"profiles\":[{\"name\":\"thread 1\",\"unit\":\"none\","
			     "\"samples\":[[0]],\"weights\":[1]}]}");
	ck_assert_uint_eq(incstack__profile_losses(profile, (enum incstack_profile_format)0, 0),
			  INCSTACK__LOSS_LINES | INCSTACK__LOSS_FUNCTIONS | INCSTACK__LOSS_THREADS);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(a_line_too_long_is_not_written)
{
	size_t length = INCSTACK_FOLDED_LINE_MAX - 100;
	char *text = malloc(length + 100);
	struct incstack_profile *profile;
	FILE *stream = fopen("/dev/null", "w");

	memset(text, 'x', length);
	strcpy(text + length, " 1\n");
	profile = profile_of(INCSTACK_FORMAT_FOLDED, text);
	ck_assert_int_eq(incstack_profile_write(profile, INCSTACK_FORMAT_FOLDED, 0, stream), 0);
	incstack_profile_destroy(profile);
	free(text);
	/* A stack of twice the longest name that could be: only formats other than folded stacks
	 * can hold it. */
	FILE *json = open_memstream(&text, &length);
	fputs("{\"shared\":{\"frames\":[{\"name\":\"", json);
	for (size_t i = 0; i < INCSTACK_FOLDED_LINE_MAX / 2; i++)
		putc_unlocked('x', json);
	fputs("\"}]},\"profiles\":[{\"unit\":\"none\",\"samples\":[[0,0]],\"weights\":[1]}]}",
	      json);
	fclose(json);
	profile = profile_of(INCSTACK_FORMAT_SPEEDSCOPE, text);
	ck_assert_int_eq(incstack_profile_write(profile, INCSTACK_FORMAT_FOLDED, 0, stream),
			 INCSTACK_ELIMIT);
	incstack_profile_destroy(profile);
	fclose(stream);
	free(text);
}
END_TEST

START_TEST(every_loss_has_a_text)
{
	for (uint32_t bit = 1; bit <= INCSTACK__LOSS_FRAME_KINDS; bit <<= 1)
		ck_assert_ptr_nonnull(incstack__profile_loss_text(bit));
	ck_assert_ptr_null(incstack__profile_loss_text(INCSTACK__LOSS_FRAME_KINDS << 1));
	ck_assert_uint_eq(incstack__profile_losses(NULL, INCSTACK_FORMAT_PPROF, 0), 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("losses");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, lines_files_and_inlining_are_kept);
	tcase_add_test(tests, inlined_frames_of_traces_are_marked);
	tcase_add_test(tests, inlining_into_nothing_is_said);
	tcase_add_test(tests, labels_and_mappings_are_kept);
	tcase_add_test(tests, labels_and_mappings_are_kept_if_asked_for);
	tcase_add_test(tests, fractions_add_up);
	tcase_add_test(tests, open_frames_last_until_the_end);
	tcase_add_test(tests, own_files_keep_their_kinds);
	tcase_add_test(tests, threads_of_one_unit_are_added_up_and_said);
	tcase_add_test(tests, what_others_say_is_named);
	tcase_add_test(tests, a_line_too_long_is_not_written);
	tcase_add_test(tests, every_loss_has_a_text);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
