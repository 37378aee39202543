/* SPDX-License-Identifier: MIT
 *
 * Tests every format: it returns what was written, and refuses files that are cut off or
 * altered, without a crash.
 */
#include "profile_files.h"
#include "profile_nodes.h"
#include "run_suite.h"
#include "profile/files.h"
#include "profile/reduce.h"

static const enum incstack_profile_format readable[] = {
	INCSTACK_FORMAT_FOLDED, INCSTACK_FORMAT_PPROF, INCSTACK_FORMAT_SPEEDSCOPE,
	INCSTACK_FORMAT_FIREFOX, INCSTACK_FORMAT_OTLP};
enum { READABLE = sizeof(readable) / sizeof(readable[0]) };

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

/* Folded stacks whose names contain everything that could confuse a format. */
static char *generate(uint32_t seed, int lines)
{
	static const char *const names[] = {"main",
					    "operator new(unsigned long)",
					    "say \"hi\"",
					    "a b c",
					    "\\path\\x",
					    "größe",
					    "日本語",
					    "</script>",
					    "f<int, 3>::g() const",
					    "'quoted'",
					    "{\"x\":[1]}",
					    "a\tb",
					    "😀",
					    "%s%n",
					    "[kernel]",
					    "-1",
					    "trailing "};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(stream);
	for (int i = 0; i < lines; i++) {
		uint32_t depth = 1 + next_random(&seed) % 12;

		while (depth--)
			fprintf(stream, "%s%s", names[next_random(&seed) % 17], depth ? ";" : "");
		fprintf(stream, " %u\n", 1 + next_random(&seed));
	}
	fclose(stream);
	return text;
}

static struct incstack_profile *through(const struct incstack_profile *profile,
					enum incstack_profile_format format)
{
	struct bytes bytes = write_bytes(profile, format, 0);
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *back = NULL;
	int error = read_bytes(bytes.at, bytes.size, format, &back, &problem);

	ck_assert_msg(!error, "format %d: %s at %llu", (int)format, problem.why,
		      (unsigned long long)problem.offset);
	free(bytes.at);
	return back;
}

START_TEST(generated_profiles_come_back_from_every_format)
{
	for (uint32_t seed = 1; seed <= 20; seed++) {
		char *text = generate(seed, 60), *expected = canonical(text);

		for (int f = 0; f < READABLE; f++) {
			struct incstack_profile *profile = profile_from(text);
			struct incstack_profile *back = through(profile, readable[f]);
			char *folded = folded_text(back, 0);

			ck_assert_str_eq(folded, expected);
			free(folded);
			incstack_profile_destroy(profile);
			incstack_profile_destroy(back);
		}
		free(text);
		free(expected);
	}
}
END_TEST

/* main > f (call site 7) > g, which weighs 3 samples and 9007199254740993 bytes. */
static struct incstack_profile *traced(void)
{
	static const struct incstack_profile_kind kinds[] = {{"samples", "count"},
							     {"alloc \"x\"", "bytes"}};
	static const struct incstack_profile_frame path[] = {
		{.size = sizeof(path[0]), .function = 16, .position = -1},
		{.size = sizeof(path[0]), .function = 32, .position = 7},
		{.size = sizeof(path[0]), .function = 48, .position = -1}};
	const uint64_t weights[] = {3, 9007199254740993};
	struct incstack_profile_meta meta = {.size = sizeof(meta),
					     .program = "./prog --x=\"1\"",
					     .mode = "patch",
					     .time_ns = 1700000000123456789,
					     .duration_ns = 42,
					     .lost = 5,
					     .truncated = 6,
					     .pruned = 7};
	struct incstack_profile *profile = NULL;
	uint32_t node = INCSTACK_PROFILE_ROOT;

	ck_assert_int_eq(incstack_profile_create(kinds, 2, &profile), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(incstack_profile_add_node(profile, node, &path[i], &node), 0);
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, weights), 0);
	ck_assert_int_eq(incstack_profile_set_meta(profile, &meta), 0);
	return profile;
}

START_TEST(kinds_weights_and_metadata_come_back)
{
	for (int f = 1; f < READABLE; f++) {
		struct incstack_profile *profile = traced(), *back = through(profile, readable[f]);
		struct incstack_profile_meta meta = {.size = sizeof(meta)};
		struct incstack_profile_kind kind;
		char *folded = folded_text(back, 1);

		ck_assert_uint_eq(count_kinds(back), 2);
		ck_assert_int_eq(incstack_profile_kind(back, 1, &kind), 0);
		ck_assert_str_eq(kind.name, "alloc \"x\"");
		ck_assert_str_eq(kind.unit, "bytes");
		ck_assert_str_eq(folded, "0x10;0x20;0x30 9007199254740993\n");
		ck_assert_int_eq(incstack_profile_meta(back, &meta), 0);
		ck_assert_str_eq(meta.program, "./prog --x=\"1\"");
		ck_assert_str_eq(meta.mode, "patch");
		ck_assert_uint_eq(meta.time_ns, 1700000000123456789);
		ck_assert_uint_eq(meta.duration_ns, 42);
		ck_assert_uint_eq(meta.lost, 5);
		ck_assert_uint_eq(meta.truncated, 6);
		ck_assert_uint_eq(meta.pruned, 7);
		free(folded);
		incstack_profile_destroy(profile);
		incstack_profile_destroy(back);
	}
}
END_TEST

static int line_is_position(void *context, const struct incstack_profile_frame *frame,
			    struct incstack_profile_source *source)
{
	source->line = frame->position;
	return context ? INCSTACK_EINVAL : 0;
}

START_TEST(lines_come_back_from_pprof)
{
	struct incstack_profile *profile = traced(), *named, *back;
	ck_assert_int_eq(incstack_profile_name_frames(profile, line_is_position, NULL, &named), 0);
	back = through(named, INCSTACK_FORMAT_PPROF);
	ck_assert_int_eq(node_at(back, 2).frame.line, 7);
	incstack_profile_destroy(profile);
	incstack_profile_destroy(named);
	incstack_profile_destroy(back);
}
END_TEST

START_TEST(what_is_cut_off_is_refused_at_every_length)
{
	char *text = generate(7, 3);
	struct incstack_profile *profile = profile_from(text), *back = NULL;

	for (int f = 1; f < READABLE; f++) {
		struct bytes bytes = write_bytes(profile, readable[f], 0);

		/* A closing newline may be missing. */
		for (size_t size = 0; size + 1 < bytes.size; size++) {
			struct incstack_profile_problem problem = {.size = sizeof(problem)};
			int error = read_bytes(bytes.at, size, readable[f], &back, &problem);

			ck_assert_msg(error == INCSTACK_EFORMAT, "format %d cut to %zu: error %d",
				      (int)readable[f], size, error);
			ck_assert_ptr_nonnull(problem.why);
		}
		free(bytes.at);
	}
	free(text);
	incstack_profile_destroy(profile);
}
END_TEST

/* Whatever an altered byte does, the file is either refused with a reason or read. */
START_TEST(altered_bytes_do_no_harm)
{
	char *text = generate(9, 4);
	struct incstack_profile *profile = profile_from(text);
	uint32_t random = 99;
	int refused = 0;

	for (int f = 0; f < READABLE; f++) {
		struct bytes bytes = write_bytes(profile, readable[f], 0);

		for (int i = 0; i < 2000; i++) {
			struct incstack_profile_problem problem = {.size = sizeof(problem)};
			struct incstack_profile *back = NULL;
			size_t at = (next_random(&random) << 8 ^ next_random(&random)) % bytes.size;
			char old = bytes.at[at];
			int error;

			bytes.at[at] = (char)next_random(&random);
			error = read_bytes(bytes.at, bytes.size, readable[f], &back, &problem);
			ck_assert(!error || error == INCSTACK_EFORMAT || error == INCSTACK_ERANGE);
			ck_assert(!error || problem.why);
			refused += error != 0;
			if (!error)
				incstack_profile_destroy(back);
			bytes.at[at] = old;
		}
		free(bytes.at);
	}
	ck_assert_int_gt(refused, 1000);
	free(text);
	incstack_profile_destroy(profile);
}
END_TEST

/* ---- files as others write them ------------------------------------------------ */

static void reads_as(enum incstack_profile_format format, const char *text, const char *folded)
{
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *profile = NULL;
	int error = read_bytes(text, strlen(text), format, &profile, &problem);
	char *got;

	ck_assert_msg(!error, "%s at %llu", problem.why, (unsigned long long)problem.offset);
	got = folded_text(profile, 0);
	ck_assert_str_eq(got, folded);
	free(got);
	incstack_profile_destroy(profile);
}

static void refuses(enum incstack_profile_format format, const char *text, const char *why)
{
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(read_bytes(text, strlen(text), format, &profile, &problem),
			 INCSTACK_EFORMAT);
	ck_assert_ptr_nonnull(strstr(problem.why, why));
}

START_TEST(speedscope_of_others)
{
	/* Frames behind the profiles, two threads with one unit, fractions of a second. */
	reads_as(INCSTACK_FORMAT_SPEEDSCOPE,
		 "{\"profiles\":[{\"type\":\"sampled\",\"unit\":\"milliseconds\",\"samples\":[[0,1]"
		 ",[0]],"
		 "\"weights\":[1.5,2]},{\"type\":\"sampled\",\"unit\":\"milliseconds\",\"samples\":"
		 "[[1]],\"weights\":[0.25]}],\"shared\":{\"frames\":[{\"name\":\"m\"},{\"name\":"
		 "\"f\"}]}}",
		 "f 250000\nm 2000000\nm;f 1500000\n");
	reads_as(INCSTACK_FORMAT_SPEEDSCOPE,
		 "{\"shared\":{\"frames\":[{\"name\":\"m\"},{\"name\":\"f\"}]},\"profiles\":[{"
		 "\"type\":"
		 "\"evented\",\"unit\":\"none\",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":10},"
		 "{\"type\":\"O\",\"frame\":1,\"at\":12},{\"type\":\"C\",\"frame\":1,\"at\":17},"
		 "{\"type\":\"C\",\"frame\":0,\"at\":18}]}]}",
		 "m 3\nm;f 5\n");
	refuses(INCSTACK_FORMAT_SPEEDSCOPE,
		"{\"shared\":{\"frames\":[{\"name\":\"m\"}]},\"profiles\":[{\"samples\":[[1]],"
		"\"weights\":[1]}]}",
		"not in the table");
	refuses(INCSTACK_FORMAT_SPEEDSCOPE,
		"{\"shared\":{\"frames\":[{\"name\":\"m\"}]},\"profiles\":[{\"samples\":[[0],[0]],"
		"\"weights\":[1]}]}",
		"fewer weights");
	refuses(INCSTACK_FORMAT_SPEEDSCOPE,
		"{\"shared\":{\"frames\":[{\"name\":\"m\"}]},\"profiles\":[{\"samples\":[[0]],"
		"\"weights\":[-1]}]}",
		"negative");
	refuses(INCSTACK_FORMAT_SPEEDSCOPE, "{}", "no profiles");
	refuses(INCSTACK_FORMAT_SPEEDSCOPE, "main;f 3\n", "not valid JSON");
}
END_TEST

#define FIREFOX_TABLES \
	"\"stackTable\":{\"frame\":[0,1],\"prefix\":[null,0]},\"frameTable\":{\"func\":[1,0]}," \
	"\"funcTable\":{\"name\":[0,1]}"

START_TEST(firefox_of_others)
{
	reads_as(INCSTACK_FORMAT_FIREFOX,
		 "{\"threads\":[{\"samples\":{\"stack\":[1,null,0,1],\"weight\":null}"
		 "," FIREFOX_TABLES ",\"stringArray\":[\"f\",\"m\"]}]}",
		 "m 1\nm;f 2\n");
	reads_as(INCSTACK_FORMAT_FIREFOX,
		 "{\"threads\":[{\"samples\":{\"stack\":[1],\"weight\":[4]}," FIREFOX_TABLES
		 "},{\"samples\":{\"stack\":[0]}," FIREFOX_TABLES
		 "}],\"shared\":{\"stringArray\":[\"f\",\"m\"]}}",
		 "m 1\nm;f 4\n");
	refuses(INCSTACK_FORMAT_FIREFOX,
		"{\"threads\":[{\"samples\":{\"stack\":[2]}," FIREFOX_TABLES
		",\"stringArray\":[\"f\",\"m\"]}]}",
		"stack that does not exist");
	refuses(INCSTACK_FORMAT_FIREFOX,
		"{\"threads\":[{\"samples\":{\"stack\":[1]}," FIREFOX_TABLES
		",\"stringArray\":[\"f\"]}]}",
		"not in the table");
	/* Strings that only another thread has, before and behind it. */
	refuses(INCSTACK_FORMAT_FIREFOX,
		"{\"threads\":[{\"samples\":{\"stack\":[1]}," FIREFOX_TABLES
		",\"stringArray\":[\"f\"]},{\"samples\":{\"stack\":[1]}," FIREFOX_TABLES
		",\"stringArray\":[\"f\",\"m\"]}]}",
		"not in the table");
	refuses(INCSTACK_FORMAT_FIREFOX,
		"{\"threads\":[{\"samples\":{\"stack\":[1]}," FIREFOX_TABLES
		",\"stringArray\":[\"f\",\"m\"]},{\"samples\":{\"stack\":[1]}," FIREFOX_TABLES
		"}]}",
		"not in the table");
	refuses(INCSTACK_FORMAT_FIREFOX,
		"{\"threads\":[{\"samples\":{\"stack\":[1]}," FIREFOX_TABLES
		"},{\"samples\":{\"stack\":[1]}," FIREFOX_TABLES
		",\"stringArray\":[\"f\",\"m\"]}]}",
		"a thread without strings");
	refuses(INCSTACK_FORMAT_FIREFOX, "{\"meta\":{}}", "no threads");
}
END_TEST

START_TEST(formats_are_known_by_name_and_ending)
{
	ck_assert_int_eq(incstack_profile_format_of("a.folded"), INCSTACK_FORMAT_FOLDED);
	ck_assert_int_eq(incstack_profile_format_of("d/a.pb.gz"), INCSTACK_FORMAT_PPROF);
	ck_assert_int_eq(incstack_profile_format_of("a.speedscope.json"),
			 INCSTACK_FORMAT_SPEEDSCOPE);
	ck_assert_int_eq(incstack_profile_format_of("a.firefox.json"), INCSTACK_FORMAT_FIREFOX);
	ck_assert_int_eq(incstack_profile_format_of("html"), INCSTACK_FORMAT_HTML);
	ck_assert_int_eq(incstack_profile_format_of("a.json"), 0);
	ck_assert_int_eq(incstack_profile_format_of(".folded"), 0);
	ck_assert_int_eq(incstack_profile_format_of(NULL), 0);
}
END_TEST

/* ---- in parts -------------------------------------------------------------------- */

struct parts {
	struct incstack__profile_writer *writer;
	FILE *stream;
	enum incstack_profile_format format;
	int count;
};

static int write_part(void *context, struct incstack_profile *profile)
{
	struct parts *parts = context;
	int error = 0;

	if (!parts->writer)
		error = incstack__profile_writer_begin(profile, parts->format, 0, parts->stream,
						       &parts->writer);
	if (!error)
		error = incstack__profile_writer_add(parts->writer);
	parts->count++;
	return error ? error : incstack__profile_clear(profile);
}

START_TEST(a_profile_in_parts_is_the_same_profile)
{
	char *text = generate(3, 200), *expected = canonical(text);

	for (int f = 0; f < READABLE; f++) {
		struct bytes bytes = {NULL, 0};
		struct parts parts = {.format = readable[f],
				      .stream = open_memstream(&bytes.at, &bytes.size)};
		struct incstack__profile_input input = {
			.nodes_max = 50, .full = write_part, .context = &parts};
		struct incstack_profile *profile = NULL, *back = NULL;
		struct incstack_profile_problem problem = {.size = sizeof(problem)};
		FILE *stream = fmemopen(text, strlen(text), "r");
		char *folded;

		ck_assert_int_eq(incstack__profile_read(stream, INCSTACK_FORMAT_FOLDED, &input,
							&profile, &problem),
				 0);
		fclose(stream);
		ck_assert_int_gt(parts.count, 10);
		ck_assert_int_eq(write_part(&parts, profile), 0);
		ck_assert_int_eq(incstack__profile_writer_finish(parts.writer, 1), 0);
		fclose(parts.stream);
		ck_assert_int_eq(read_bytes(bytes.at, bytes.size, readable[f], &back, &problem), 0);
		folded = folded_text(back, 0);
		ck_assert_str_eq(folded, expected);
		free(folded);
		free(bytes.at);
		incstack_profile_destroy(profile);
		incstack_profile_destroy(back);
	}
	free(text);
	free(expected);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
	struct incstack_profile *profile = profile_from("m 1\n");
	struct incstack__profile_writer *writer = NULL;
	struct incstack_profile_meta meta = {.size = sizeof(meta), .program = "\xff"};

	ck_assert_int_eq(incstack_profile_read(NULL, INCSTACK_FORMAT_PPROF, 0, &profile, NULL),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_read(stdin, INCSTACK_FORMAT_HTML, 0, &profile, NULL),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_write(profile, INCSTACK_FORMAT_PPROF, 1, stdout),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_writer_begin(profile, 0, 0, stdout, &writer),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_writer_add(NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_set_meta(profile, &meta), INCSTACK_EFORMAT);
	ck_assert_int_eq(incstack__profile_clear(NULL), INCSTACK_EINVAL);
	ck_assert_str_eq(incstack_error_text(INCSTACK_EFORMAT), "the input is not in the format");
	ck_assert_str_eq(incstack_error_text(INCSTACK_ENOMEM), "out of memory");
	incstack_profile_destroy(profile);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("formats");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, generated_profiles_come_back_from_every_format);
	tcase_add_test(tests, kinds_weights_and_metadata_come_back);
	tcase_add_test(tests, lines_come_back_from_pprof);
	tcase_add_test(tests, what_is_cut_off_is_refused_at_every_length);
	tcase_add_test(tests, altered_bytes_do_no_harm);
	tcase_add_test(tests, speedscope_of_others);
	tcase_add_test(tests, firefox_of_others);
	tcase_add_test(tests, formats_are_known_by_name_and_ending);
	tcase_add_test(tests, a_profile_in_parts_is_the_same_profile);
	tcase_add_test(tests, bad_arguments_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
