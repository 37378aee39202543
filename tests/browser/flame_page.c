/* SPDX-License-Identifier: MIT
 *
 * Writes the pages that flame.py opens: DIRECTORY/plain.html and DIRECTORY/diff.html.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "profile/analysis.h"
#include "profile/timeline.h"

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
		{1000, 0, 0, 1}, {1600, 60, 0, 1}, {4000, 40, 1, 1}};
	const struct incstack__profile_timeline timeline = {threads, samples, 2, 3};

	check(incstack__profile_set_timeline(profile, &timeline));
}

static FILE *create(const char *directory, const char *name)
{
	char path[4096];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	stream = fopen(path, "w");
	if (!stream)
		check(INCSTACK_EIO);
	return stream;
}

static struct incstack_profile *profile_from(const char *folded)
{
	struct incstack_profile *profile;
	FILE *stream = fmemopen((void *)(uintptr_t)folded, strlen(folded), "r");

	check(incstack_profile_read(stream, INCSTACK_FORMAT_FOLDED, 0, &profile, NULL));
	fclose(stream);
	return profile;
}

int main(int argc, char **argv)
{
	static const char before[] = "main;parse;std::sort 30\nmain;parse 10\nmain;eval;parse 5\n"
				     "main;eval;</script><b>\"x\"\\ 40\nmain;eval 15\n";
	static const char after[] = "main;parse;std::sort 10\nmain;parse 10\nmain;eval;parse 5\n"
				    "main;eval;</script><b>\"x\"\\ 60\nmain;eval 15\n";
	struct incstack_profile *a = profile_from(before), *b = profile_from(after), *both;
	const struct incstack_profile_meta meta = {.size = sizeof(meta),
						   .program = "./prog </title>",
						   .mode = "patch",
						   .lost = 7,
						   .duration_ns = 1500000000};
	FILE *plain, *diff;

	if (argc != 2)
		return 2;
	plain = create(argv[1], "plain.html");
	diff = create(argv[1], "diff.html");
	check(incstack_profile_set_meta(a, &meta));
	add_timeline(a);
	check(incstack_profile_write(a, INCSTACK_FORMAT_HTML, 0, plain));
	check(incstack__profile_overlay(a, b, 0, &both));
	check(incstack__profile_write_difference(both, diff));
	incstack_profile_destroy(a);
	incstack_profile_destroy(b);
	incstack_profile_destroy(both);
	return fclose(plain) || fclose(diff);
}
