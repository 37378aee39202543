/* SPDX-License-Identifier: MIT
 *
 * Reads and writes profiles in memory, for the tests of the file formats.
 */
#ifndef INCSTACK_TESTS_PROFILE_FILES_H
#define INCSTACK_TESTS_PROFILE_FILES_H

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <incstack/profile.h>

struct bytes {
	char *at;
	size_t size;
};

static inline int read_bytes(const void *data, size_t size, enum incstack_profile_format format,
			     struct incstack_profile **profile,
			     struct incstack_profile_problem *problem)
{
	FILE *stream =
		size ? fmemopen((void *)(uintptr_t)data, size, "r") : fopen("/dev/null", "r");
	int error;

	ck_assert_ptr_nonnull(stream);
	error = incstack_profile_read(stream, format, 0, profile, problem);
	fclose(stream);
	return error;
}

static inline struct bytes write_bytes(const struct incstack_profile *profile,
				       enum incstack_profile_format format, uint32_t kind)
{
	struct bytes bytes = {NULL, 0};
	FILE *stream = open_memstream(&bytes.at, &bytes.size);

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(incstack_profile_write(profile, format, kind, stream), 0);
	ck_assert_int_eq(fclose(stream), 0);
	return bytes;
}

/* A pprof file with a mapping, labels and inlined frames: "f" in "g" at two addresses, an
 * address without a name, and a label without frames. */
static inline struct bytes labelled_pprof(void)
{
	static const char tables[] =
		"\x0a\x04\x08\x01\x10\x02"
		"\x1a\x12\x08\x07\x10\x80\x20\x18\x80\x40\x20\x10\x28\x05\x30\x06\x38\x01\x50\x01"
		"\x2a\x04\x08\x01\x10\x03\x2a\x04\x08\x02\x10\x04"
		"\x22\x11\x08\x01\x10\x07\x18\xb4\x24\x22\x02\x08\x01\x22\x04\x08\x02\x10\x05"
		"\x22\x09\x08\x02\x10\x07\x18\xb5\x24\x28\x01"
		"\x22\x11\x08\x03\x10\x07\x18\xb5\x24\x22\x02\x08\x01\x22\x04\x08\x02\x10\x05";
	static const char samples[] = "\x12\x14\x1a\x04\x08\x07\x10\x08\x0a\x01\x01\x12\x01\x03"
				      "\x1a\x06\x08\x09\x18\x2a\x20\x0a"
				      "\x12\x0c\x0a\x01\x01\x12\x01\x04\x1a\x04\x08\x07\x10\x0b"
				      "\x12\x06\x0a\x01\x03\x12\x01\x05"
				      "\x12\x06\x0a\x01\x02\x12\x01\x06"
				      "\x12\x09\x12\x01\x07\x1a\x04\x08\x07\x10\x08";
	static const char *const strings[] = {"",    "samples", "count", "f",    "g",     "/bin/x",
					      "id5", "user",    "ann",   "size", "bytes", "bob"};
	struct bytes bytes = {NULL, 0};
	FILE *stream = open_memstream(&bytes.at, &bytes.size);

	ck_assert_ptr_nonnull(stream);
	fwrite(tables, sizeof(tables) - 1, 1, stream);
	fwrite(samples, sizeof(samples) - 1, 1, stream);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		fprintf(stream, "\x32%c%s", (int)strlen(strings[i]), strings[i]);
	ck_assert_int_eq(fclose(stream), 0);
	return bytes;
}

/* As read_bytes, for pprof, and with all details that can be kept. */
static inline struct incstack_profile *read_labelled(struct bytes bytes)
{
	struct incstack_profile *profile = NULL;
	FILE *stream = fmemopen(bytes.at, bytes.size, "r");

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(incstack_profile_read(stream, INCSTACK_FORMAT_PPROF,
					       INCSTACK_KEEP_LABELS | INCSTACK_KEEP_MAPPINGS,
					       &profile, NULL),
			 0);
	fclose(stream);
	return profile;
}

static inline struct incstack_profile *profile_from(const char *folded)
{
	struct incstack_profile *profile = NULL;
	struct incstack_profile_problem problem = {.size = sizeof(problem)};

	ck_assert_int_eq(
		read_bytes(folded, strlen(folded), INCSTACK_FORMAT_FOLDED, &profile, &problem), 0);
	return profile;
}

static inline int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Folded text with lines summed by stack and sorted. */
static inline char *canonical(const char *text)
{
	size_t lines = 0, kept = 0, size = strlen(text);
	char *copy = strdup(text), *result = malloc(size + 32), *save = NULL, *end = result;
	char **line = malloc((size + 1) * sizeof(*line));

	ck_assert(copy && result && line);
	for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		line[lines++] = l;
	for (size_t i = 0; i < lines; i++) /* the space before the weight ends the key */
		*strrchr(line[i], ' ') = 0;
	qsort(line, lines, sizeof(*line), compare_lines);
	*end = 0;
	for (size_t i = 0; i < lines; i = kept) {
		unsigned long long sum = 0;

		for (kept = i; kept < lines && !strcmp(line[kept], line[i]); kept++)
			sum += strtoull(line[kept] + strlen(line[kept]) + 1, NULL, 10);
		end += sprintf(end, "%s %llu\n", line[i], sum);
	}
	free(line);
	free(copy);
	return result;
}

static inline char *folded_text(const struct incstack_profile *profile, uint32_t kind)
{
	struct bytes bytes = write_bytes(profile, INCSTACK_FORMAT_FOLDED, kind);
	char *text = canonical(bytes.at);

	free(bytes.at);
	return text;
}

#endif
