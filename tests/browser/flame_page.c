/* SPDX-License-Identifier: MIT
 *
 * Writes the pages that flame.py opens: DIRECTORY/plain.html and others. With MOST FROM TO, it writes the page of
 * a pprof file (.pb.gz) or of folded stacks, with MOST boxes or few more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "profile/analysis.h"
#include "profile/timeline.h"
#include "profile/write/page.h"

static void check(int error)
{
	if (!error)
		return;
	fprintf(stderr, "flame_page: %s\n", incstack_error_text(error));
	exit(1);
}

/* Two threads with a sample each, a fifth of the time and all of it after a first one that has no
 * weight. */
static void add_timeline(struct incstack_profile *profile)
{
	static const struct incstack__profile_thread threads[] = {{"worker <b>", 42}, {"", 0}};
	static const struct incstack__profile_sample samples[] = {
		{1000, 0, 0, 1, 0}, {1600, 60, 0, 1, 0}, {4000, 40, 1, 1, 0}};
	const struct incstack__profile_timeline timeline = {threads, samples, 2, 3};

	check(incstack__profile_set_timeline(profile, &timeline));
}

static FILE *open_file(const char *path, const char *mode)
{
	FILE *stream = fopen(path, mode);

	if (!stream)
		check(INCSTACK_EIO);
	return stream;
}

static FILE *create(const char *directory, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.html", directory, name);
	return open_file(path, "w");
}

static struct incstack_profile *profile_from(const char *folded)
{
	struct incstack_profile *profile;
	FILE *stream = fmemopen((void *)(uintptr_t)folded, strlen(folded), "r");

	check(incstack_profile_read(stream, INCSTACK_FORMAT_FOLDED, 0, &profile, NULL));
	fclose(stream);
	return profile;
}

static void write_page(struct incstack_profile *profile, const char *directory, const char *name)
{
	FILE *stream = create(directory, name);

	check(incstack_profile_write(profile, INCSTACK_FORMAT_HTML, 0, stream));
	check(fclose(stream) ? INCSTACK_EIO : 0);
	incstack_profile_destroy(profile);
}

static void write_plain(const char *folded, const char *directory)
{
	struct incstack_profile *profile = profile_from(folded);
	const struct incstack_profile_meta meta = {.size = sizeof(meta),
						   .program = "./prog </title>",
						   .mode = "patch",
						   .lost = 7,
						   .duration_ns = 1500000000};

	check(incstack_profile_set_meta(profile, &meta));
	add_timeline(profile);
	write_page(profile, directory, "plain");
}

static void write_diff(const char *before, const char *after, bool shares, const char *directory)
{
	struct incstack_profile *a = profile_from(before), *b = profile_from(after), *both;
	FILE *stream = create(directory, shares ? "shares" : "diff");

	check(incstack__profile_overlay(a, b, 0, &both));
	check(incstack__profile_write_difference(both, shares, stream));
	check(fclose(stream) ? INCSTACK_EIO : 0);
	incstack_profile_destroy(a);
	incstack_profile_destroy(b);
	incstack_profile_destroy(both);
}

/* A tower that is higher than the window. */
static void write_deep(const char *directory)
{
	char folded[4096] = "main;f1 1000\nmain;f2 900\nmain";

	for (int i = 0; i < 100; i++)
		sprintf(folded + strlen(folded), ";deep%d", i);
	strcat(folded, " 5000\n");
	write_page(profile_from(folded), directory, "deep");
}

/* One function calls so many others that each is too narrow. */
static void write_wide(const char *directory)
{
	static char folded[5000 * 64];
	size_t used = 0;

	for (int i = 0; i < 5000; i++)
		used += (size_t)sprintf(folded + used, "main;dispatch;handler_%04d %d\n", i,
					1000 + i % 13);
	write_page(profile_from(folded), directory, "wide");
}

/* A function that is called from two of its lines, and inlines another one. */
static void write_lines(const char *directory)
{
	static const struct incstack_profile_kind kinds[] = {{"allocated", "bytes"},
							     {"live", "bytes"}};
	static const struct {
		const char *name, *file;
		int32_t line;
		uint32_t parent, flags;
		uint64_t weights[2];
	} frames[] = {
		{"main", "/src/main.c", 7, 0, 0, {0, 0}},
		{"work", "/src/work.c", 12, 1, 0, {10, 0}},
		{"grow", "/src/grow.h", 3, 2, INCSTACK_OBJECT_VIRTUAL, {3000, 2000}},
		{"work", "/src/work.c", 15, 1, 0, {20, 0}},
		{"grow", "/src/grow.h", 3, 4, INCSTACK_OBJECT_VIRTUAL, {5000, 0}},
		{"hot.constprop.0", "/src/work.c", 40, 1, 0, {40, 40}},
	};
	struct incstack_profile *profile;

	check(incstack_profile_create(kinds, 2, &profile));
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		const struct incstack_profile_frame frame = {.size = sizeof(frame),
							     .name = frames[i].name,
							     .name_length = strlen(frames[i].name),
							     .file = frames[i].file,
							     .line = frames[i].line,
							     .position = -1,
							     .flags = frames[i].flags};
		uint32_t node;

		check(incstack_profile_add_node(profile, frames[i].parent, &frame, &node));
		check(incstack_profile_add_weights(profile, node, frames[i].weights));
	}
	write_page(profile, directory, "lines");
}

static int convert(const char *most, const char *from, const char *to)
{
	FILE *source = open_file(from, "r"), *target = open_file(to, "w");
	struct incstack_profile *profile;
	struct incstack__page page = {.stream = target, .most = strtoul(most, NULL, 10)};

	check(incstack_profile_read(
		source, strstr(from, ".pb.gz") ? INCSTACK_FORMAT_PPROF : INCSTACK_FORMAT_FOLDED,
		INCSTACK_KEEP_LABELS | INCSTACK_KEEP_MAPPINGS, &profile, NULL));
	page.profile = profile;
	check(incstack__page_write(&page));
	incstack_profile_destroy(profile);
	fclose(source);
	return fclose(target) != 0;
}

int main(int argc, char **argv)
{
	static const char before[] = "main;parse;std::sort 30\nmain;parse 10\nmain;eval;parse 5\n"
				     "main;eval;</script><b>\"x\"\\ 40\nmain;eval 15\n";
	static const char after[] = "main;parse;std::sort 10\nmain;parse 10\nmain;eval;parse 5\n"
				    "main;eval;</script><b>\"x\"\\ 60\nmain;eval 15\n";

	if (argc == 4)
		return convert(argv[1], argv[2], argv[3]);
	if (argc != 2)
		return 2;
	write_plain(before, argv[1]);
	write_diff(before, after, false, argv[1]);
	write_diff(before, after, true, argv[1]);
	write_page(profile_from("main;f;g;f;g 7\nmain;f;h 2\nmain;f 1\nmain;g;f 4\n"), argv[1],
		   "recursion");
	write_deep(argv[1]);
	write_wide(argv[1]);
	write_lines(argv[1]);
	return 0;
}
