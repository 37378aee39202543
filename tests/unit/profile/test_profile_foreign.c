/* SPDX-License-Identifier: MIT
 *
 * Tests the readers of other programs' files: perf script, heaptrack, massif, DHAT, and packed files.
 */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "profile/files.h"
#include "profile_files.h"
#include "run_suite.h"

static struct incstack_profile *read_text(enum incstack_profile_format format, const char *text)
{
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *profile = NULL;
	int error = read_bytes(text, strlen(text), format, &profile, &problem);

	ck_assert_msg(!error, "%s at %llu", problem.why, (unsigned long long)problem.offset);
	return profile;
}

/* Takes the profile. */
static void has(struct incstack_profile *profile, uint32_t kind, const char *folded)
{
	char *got = folded_text(profile, kind);

	ck_assert_str_eq(got, folded);
	free(got);
}

static void reads_as(enum incstack_profile_format format, const char *text, uint32_t kind,
		     const char *folded)
{
	struct incstack_profile *profile = read_text(format, text);

	has(profile, kind, folded);
	incstack_profile_destroy(profile);
}

static void refuses(enum incstack_profile_format format, const char *text, const char *why)
{
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(read_bytes(text, strlen(text), format, &profile, &problem),
			 INCSTACK_EFORMAT);
	ck_assert_msg(strstr(problem.why, why), "%s", problem.why);
}

static void guesses(const char *text, int format)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(incstack__profile_format_guess(stream), format);
	ck_assert_int_eq(ftell(stream), 0);
	fclose(stream);
}

/* The frame of the node whose path of children ends with this name. */
static struct incstack_profile_frame frame_named(const struct incstack_profile *profile,
						 const char *name)
{
	struct incstack_profile_node node = {.size = sizeof(node),
					     .frame = {.size = sizeof(node.frame)}};

	for (uint32_t i = 1; i < incstack_profile_nodes(profile); i++) {
		ck_assert_int_eq(incstack_profile_node(profile, i, &node), 0);
		if (strlen(name) == node.frame.name_length &&
		    !memcmp(name, node.frame.name, node.frame.name_length))
			return node.frame;
	}
	ck_abort_msg("no frame %s", name);
	return node.frame;
}

static const char perf_text[] =
	"# a comment\n"
	"my prog  70/71 [001]  10.500000:     250000 cpu-clock:u: \n"
	"\t    1155 spin (inlined)\n"
	"  hot.c:7\n"
	"\t    1155 hot+0x2c (/tmp/a dir/loop)\n"
	"\tffffffff8100 std::map<int, char (*) (int)>::find+0x1 (/tmp/loop)\n"
	"\n"
	"  sh     7  11.000000:     100 cpu-clock:u: \n"
	"\tffffffff81000000 [unknown] (/usr/lib/libfoo.so.1)\n"
	"\n"
	"my prog  70/71 [001]  10.600000:     50000 cpu-clock:u: \n"
	"\t    1155 spin (inlined)\n"
	"\t    1159 hot+0x30 (/tmp/a dir/loop)\n"
	"\n"
	"sh  7  12.000000: sched:sched_switch: prev_comm=sh: 3\n"
	"sh  7  12.000000: sched:sched_switch:  dead beef\n"
	"sh  7  12.100000:          9 cycles:  ffffffff81001155 [unknown] ([kernel.kallsyms])\n";

START_TEST(perf_script)
{
	struct incstack_profile *profile = read_text(INCSTACK_FORMAT_PERF_SCRIPT, perf_text);
	struct incstack_profile_kind kind;
	struct incstack_profile_frame frame;

	has(profile, 0,
	    "my prog;hot;spin 50000\nmy prog;std::map<int, char (*) (int)>::find;hot;spin "
	    "250000\nsh;libfoo.so.1 100\n");
	has(profile, 1, "sh 2\n");
	has(profile, 2, "sh;[unknown] 9\n");
	has(profile, 3,
	    "my prog;hot;spin 1\nmy prog;std::map<int, char (*) (int)>::find;hot;spin 1\nsh "
	    "2\nsh;[unknown] 1\nsh;libfoo.so.1 1\n");
	ck_assert_int_eq(incstack_profile_kind(profile, 0, &kind), 0);
	ck_assert_str_eq(kind.name, "cpu-clock:u");
	ck_assert_str_eq(kind.unit, "nanoseconds");
	ck_assert_int_eq(incstack_profile_kind(profile, 3, &kind), 0);
	ck_assert_str_eq(kind.name, "samples");
	frame = frame_named(profile, "spin");
	ck_assert_str_eq(frame.file, "hot.c");
	ck_assert_int_eq(frame.line, 7);
	ck_assert_uint_eq(frame.flags, INCSTACK_OBJECT_VIRTUAL);
	ck_assert_uint_eq(frame_named(profile, "hot").flags, 0);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(perf_script_refuses)
{
	refuses(INCSTACK_FORMAT_PERF_SCRIPT, "", "no samples");
	refuses(INCSTACK_FORMAT_PERF_SCRIPT, "a;b 3\n", "without command and time");
	refuses(INCSTACK_FORMAT_PERF_SCRIPT, "\t 1155 f (a)\n", "a frame without a sample");
	refuses(INCSTACK_FORMAT_PERF_SCRIPT, "sh 7 1.0: 30\n", "without an event");
	refuses(INCSTACK_FORMAT_PERF_SCRIPT, "sh 7 1.0: 30 cycles:", "cut off");
	refuses(INCSTACK_FORMAT_PERF_SCRIPT, "sh 7 1.0: 30 cycles:\n\t 1 \xff (a)\n\n",
		"not UTF-8");
}
END_TEST

/* Two blocks of 100 and one of 7 bytes by g, inlined into f, which main calls; the peak is 200. */
static const char heaptrack_text[] =
	"v 10400 3\nX ./a\ns 4 main\ns 3 a.c\ns 1 f\ns 1 g\n"
	"i 1000 1 1 2 a\nt 1 0\n"
	"i 1010 1 4 2 7 3 2 8\nt 2 1\n"
	"i ffffffffff600000 1\nt 3 0\n"
	"a 64 2\n+ 0\n+ 0\n- 0\nc 5\na 7 2\n+ 1\na 1 3\n+ 2\n- 2\n- 2\nR 9\n";

START_TEST(heaptrack)
{
	struct incstack_profile *profile = read_text(INCSTACK_FORMAT_HEAPTRACK, heaptrack_text);
	struct incstack_profile_frame frame = frame_named(profile, "g");

	has(profile, 0, "[unknown] 1\nmain;f;g 207\n");
	has(profile, 1, "[unknown] 1\nmain;f;g 3\n");
	has(profile, 2, "main;f;g 200\n");
	has(profile, 3, "main;f;g 107\n");
	ck_assert_str_eq(frame.file, "a.c");
	ck_assert_int_eq(frame.line, 7);
	ck_assert_uint_eq(frame.flags, INCSTACK_OBJECT_VIRTUAL);
	frame = frame_named(profile, "f");
	ck_assert_int_eq(frame.line, 8);
	ck_assert_uint_eq(frame.flags, 0);
	incstack_profile_destroy(profile);
}
END_TEST

/* Strings have no length before version 3. */
START_TEST(heaptrack_old)
{
	reads_as(INCSTACK_FORMAT_HEAPTRACK, "v 10100 2\ns main\ni 10 1 1\nt 1 0\na a 1\n+ 0\n", 0,
		 "main 10\n");
}
END_TEST

START_TEST(heaptrack_refuses)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "does not begin with a version"},
		{"a;b 3\n", "does not begin with a version"},
		{"v 1 9\n", "a version of heaptrack's files other"},
		{"v 1 3\ns 9 main\n", "another length"},
		{"v 1 3\ns 1 \xff\n", "not UTF-8"},
		{"v 1 3\ni 10\n", "without a module"},
		{"v 1 3\ni 10 1 1\n", "a string that is not there"},
		{"v 1 3\ns 1 f\ni 10 1 1 1\n", "a file without a line"},
		{"v 1 3\nt 1 0\n", "not there"},
		{"v 1 3\ni 10 1\nt 1 5\n", "not there"},
		{"v 1 3\na 5 1\n", "a trace that is not there"},
		{"v 1 3\n+ 0\n", "an allocation that is not there"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(INCSTACK_FORMAT_HEAPTRACK, bad[i].text, bad[i].why);
}
END_TEST

/* A pointer line of many functions, and traces that call each other. */
START_TEST(heaptrack_is_bounded)
{
	enum { FUNCTIONS = 256, TRACES = 40000 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fputs("v 1 3\ns 1 f\ni 1 1", out);
	for (int i = 0; i < FUNCTIONS; i++)
		fputs(" 1 1 1", out);
	for (unsigned i = 0; i < TRACES; i++)
		fprintf(out, "\nt 1 %x", i);
	fputs("\n", out);
	fclose(out);
	refuses(INCSTACK_FORMAT_HEAPTRACK, text, "more contexts than a file of this size has");
	free(text);
	out = open_memstream(&text, &size);
	fputs("v 1 3\ns 1 f\ni 1 1", out);
	for (int i = 0; i <= FUNCTIONS; i++)
		fputs(" 1 1 1", out);
	fputs("\n", out);
	fclose(out);
	refuses(INCSTACK_FORMAT_HEAPTRACK, text, "more than 256 functions");
	free(text);
}
END_TEST

static const char massif_text[] =
	"desc: --massif-out-file=ms.out\ncmd: ./a\ntime_unit: i\n#-----------\nsnapshot=0\n"
	"heap_tree=detailed\nn0: 5 (heap allocation functions) malloc\n"
	"#-----------\nsnapshot=1\nmem_heap_B=157\nheap_tree=peak\n"
	"n2: 157 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
	" n2: 150 0x109170: f(int) (a.c:2)\n"
	"  n0: 100 0x109184: main (a.c:3)\n"
	"  n0: 50 0x109192: ??? (in /usr/lib/libc.so.6)\n"
	" n0: 7 in 3 places, all below massif's threshold (1.00%)\n"
	"#-----------\nsnapshot=2\nheap_tree=empty\n";

START_TEST(massif)
{
	struct incstack_profile *profile = read_text(INCSTACK_FORMAT_MASSIF, massif_text);
	const struct incstack_profile_frame frame = frame_named(profile, "f(int)");

	has(profile, 0, "[below massif's threshold] 7\n[unknown];f(int) 50\nmain;f(int) 100\n");
	ck_assert_str_eq(frame.file, "a.c");
	ck_assert_int_eq(frame.line, 2);
	incstack_profile_destroy(profile);
	refuses(INCSTACK_FORMAT_MASSIF, "desc: \ncmd: a\n", "no snapshot of the peak");
	refuses(INCSTACK_FORMAT_MASSIF, "a;b 3\n", "not a file of massif");
	refuses(INCSTACK_FORMAT_MASSIF, "desc:\nheap_tree=peak\nx\n", "not a line");
	refuses(INCSTACK_FORMAT_MASSIF, "desc:\nheap_tree=peak\nn1: 5 (heap\n n0: 6 0x1: f (a)\n",
		"more than their callee");
	refuses(INCSTACK_FORMAT_MASSIF, "desc:\nheap_tree=peak\n  n1: 5 (heap\n", "not a line");
}
END_TEST

#define DHAT_HEAD "{\"dhatFileVersion\":2,\"mode\":\"heap\",\"cmd\":\"./a\",\"pps\":["

START_TEST(dhat)
{
	struct incstack_profile *profile = read_text(
		INCSTACK_FORMAT_DHAT, DHAT_HEAD
		"{\"tb\":150,\"tbk\":2,\"gb\":100,\"eb\":50,\"fs\":[1,2]},"
		"{\"tb\":0,\"tbk\":1,\"fs\":[2]}],\"ftbl\":[\"[root]\",\"0x10: f (a.c:2)\","
		"\"0x20: main (in /bin/a)\"]}");
	struct incstack_profile_meta meta = {.size = sizeof(meta)};

	has(profile, 0, "main;f 150\n");
	has(profile, 1, "main 1\nmain;f 2\n");
	has(profile, 2, "main;f 100\n");
	has(profile, 3, "main;f 50\n");
	ck_assert_int_eq(frame_named(profile, "f").line, 2);
	ck_assert_int_eq(incstack_profile_meta(profile, &meta), 0);
	ck_assert_str_eq(meta.program, "./a");
	incstack_profile_destroy(profile);
	refuses(INCSTACK_FORMAT_DHAT, "{}", "not a file of DHAT");
	refuses(INCSTACK_FORMAT_DHAT, "{\"dhatFileVersion\":1}", "other than 2");
	refuses(INCSTACK_FORMAT_DHAT, "{\"dhatFileVersion\":2,\"mode\":\"copy\"}", "--mode");
	refuses(INCSTACK_FORMAT_DHAT, DHAT_HEAD "{\"tb\":-1}]}", "no number");
	refuses(INCSTACK_FORMAT_DHAT, DHAT_HEAD "{\"tb\":7,\"fs\":[]}],\"ftbl\":[\"f\"]}",
		"without frames");
	refuses(INCSTACK_FORMAT_DHAT, DHAT_HEAD "{\"tb\":1,\"fs\":[3]}],\"ftbl\":[\"a\"]}",
		"not in the table");
}
END_TEST

/* ---- packed files and unknown names ---- */

static struct bytes gzipped(const char *text)
{
	struct bytes packed = {malloc(4096), 4096};
	z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)text,
		      .avail_in = (uInt)strlen(text),
		      .next_out = (Bytef *)packed.at,
		      .avail_out = 4096};

	ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	packed.size -= z.avail_out;
	deflateEnd(&z);
	return packed;
}

static struct bytes zstd_packed(const char *text)
{
	struct bytes packed = {malloc(4096), 0};

	packed.size = ZSTD_compress(packed.at, 4096, text, strlen(text), 3);
	ck_assert(!ZSTD_isError(packed.size));
	return packed;
}

static void reads_packed(struct bytes packed)
{
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(
		read_bytes(packed.at, packed.size, INCSTACK_FORMAT_FOLDED, &profile, &problem), 0);
	has(profile, 0, "a;b 3\nc 4\n");
	incstack_profile_destroy(profile);
	for (size_t cut = 4; cut < packed.size; cut++) {
		ck_assert_int_eq(
			read_bytes(packed.at, cut, INCSTACK_FORMAT_FOLDED, &profile, &problem),
			INCSTACK_EFORMAT);
		ck_assert_str_eq(problem.why, "the compressed data are cut off");
	}
	free(packed.at);
}

START_TEST(packed_streams)
{
	reads_packed(gzipped("a;b 3\nc 4\n"));
	reads_packed(zstd_packed("a;b 3\nc 4\n"));
	ck_assert_int_eq(incstack_profile_format_of("x.folded.gz"), INCSTACK_FORMAT_FOLDED);
	ck_assert_int_eq(incstack_profile_format_of("x.firefox.json.zst"), INCSTACK_FORMAT_FIREFOX);
	ck_assert_int_eq(incstack_profile_format_of("x.pb.gz"), INCSTACK_FORMAT_PPROF);
	ck_assert_int_eq(incstack_profile_format_of("x.gz"), 0);
	ck_assert_int_eq(incstack_profile_format_of("massif"), INCSTACK_FORMAT_MASSIF);
}
END_TEST

/* A packed file of a few kilobytes, which unpacks to half a gigabyte of empty lines. */
START_TEST(packed_endlessly)
{
	enum { PART = 1 << 20, PARTS = 512 };
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *profile = NULL;
	char *part = malloc(PART), *packed = malloc(PART);
	size_t size, used = 0;

	memset(part, '\n', PART);
	size = ZSTD_compress(packed, PART, part, PART, 3);
	for (int i = 0; i < PARTS; i++, used += size)
		memcpy(part + used, packed, size);
	ck_assert_int_eq(read_bytes(part, used, INCSTACK_FORMAT_FOLDED, &profile, &problem),
			 INCSTACK_EFORMAT);
	ck_assert_str_eq(problem.why, "the file unpacks to more than 2,048 times its size");
	free(part);
	free(packed);
}
END_TEST

/* More than the buffers of the reader and of zstd hold, so that zstd keeps bytes back at the end. */
START_TEST(packed_large)
{
	enum { LINES = 200000, LINE = 8 };
	char *text = malloc(LINES * LINE + 1), *packed = malloc(LINES * LINE);
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	struct incstack_profile *profile = NULL;
	size_t size;

	for (size_t i = 0; i < LINES; i++)
		memcpy(text + i * LINE, i % 2 ? "ab;c 12\n" : "aa;c 34\n", LINE);
	text[LINES * LINE] = 0;
	size = ZSTD_compress(packed, LINES * LINE, text, LINES * LINE, 3);
	ck_assert(!ZSTD_isError(size));
	ck_assert_int_eq(read_bytes(packed, size, INCSTACK_FORMAT_FOLDED, &profile, &problem), 0);
	has(profile, 0, "aa;c 3400000\nab;c 1200000\n");
	incstack_profile_destroy(profile);
	free(text);
	free(packed);
}
END_TEST

START_TEST(guess)
{
	guesses(perf_text, INCSTACK_FORMAT_PERF_SCRIPT);
	guesses(heaptrack_text, INCSTACK_FORMAT_HEAPTRACK);
	guesses(massif_text, INCSTACK_FORMAT_MASSIF);
	guesses(DHAT_HEAD "]}", INCSTACK_FORMAT_DHAT);
	guesses("a;b 3\n", 0);
	guesses("v for vendetta\n", 0);
	guesses("# nothing\n", 0);
}
END_TEST

static struct incstack_profile *made(void)
{
	return read_text(INCSTACK_FORMAT_FOLDED, "a 1\n");
}

START_TEST(cannot_be_written)
{
	struct incstack_profile *profile = made();

	for (int format = INCSTACK_FORMAT_PERF_SCRIPT; format <= INCSTACK_FORMAT_DHAT; format++) {
		ck_assert_int_eq(incstack_profile_write(
					 profile, (enum incstack_profile_format)format, 0, stdout),
				 INCSTACK_EINVAL);
		ck_assert(!incstack__profile_format_writes(format));
	}
	ck_assert(incstack__profile_format_writes(INCSTACK_FORMAT_HTML));
	incstack_profile_destroy(profile);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("profile_foreign");
	TCase *tests = tcase_create("foreign");

	tcase_add_test(tests, perf_script);
	tcase_add_test(tests, perf_script_refuses);
	tcase_add_test(tests, heaptrack);
	tcase_add_test(tests, heaptrack_old);
	tcase_add_test(tests, heaptrack_refuses);
	tcase_add_test(tests, heaptrack_is_bounded);
	tcase_add_test(tests, massif);
	tcase_add_test(tests, dhat);
	tcase_add_test(tests, packed_streams);
	tcase_add_test(tests, packed_large);
	tcase_add_test(tests, packed_endlessly);
	tcase_add_test(tests, guess);
	tcase_add_test(tests, cannot_be_written);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
