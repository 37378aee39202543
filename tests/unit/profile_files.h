/* SPDX-License-Identifier: MIT
 *
 * Profiles from and to memory, for the tests of the file formats.
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
			     struct incstack_profile_fault *fault)
{
	FILE *stream =
		size ? fmemopen((void *)(uintptr_t)data, size, "r") : fopen("/dev/null", "r");
	int error;

	ck_assert_ptr_nonnull(stream);
	error = incstack_profile_read(stream, format, NULL, profile, fault);
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

static inline struct incstack_profile *profile_from(const char *folded)
{
	struct incstack_profile *profile = NULL;
	struct incstack_profile_fault fault;

	ck_assert_int_eq(
		read_bytes(folded, strlen(folded), INCSTACK_FORMAT_FOLDED, &profile, &fault), 0);
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
