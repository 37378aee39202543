/* SPDX-License-Identifier: MIT
 *
 * Shared by the fuzzers of the profile readers. A file that is accepted is written and read again,
 * and must have the same weights. FUZZ_FORMAT is the format of the file that includes this one. If it cannot
 * be written, FUZZ_WRITTEN is another format.
 */
#ifndef INCSTACK_TESTS_FUZZ_PROFILE_H
#define INCSTACK_TESTS_FUZZ_PROFILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "profile/nodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef FUZZ_WRITTEN
#define FUZZ_WRITTEN FUZZ_FORMAT
#endif

enum { NODES_MOST = 10000 };

static struct incstack_profile *read_bytes(const void *data, size_t size,
					   enum incstack_profile_format format)
{
	struct incstack_profile *profile = NULL;
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	FILE *stream = fmemopen((void *)(uintptr_t)data, size, "r");
	int error;

	if (!stream)
		abort();
	error = incstack_profile_read(stream, format, INCSTACK_KEEP_LABELS | INCSTACK_KEEP_MAPPINGS,
				      &profile, &problem);
	if ((error != 0) != (profile == NULL) || (error == INCSTACK_EFORMAT && !problem.why))
		abort();
	if (error && format == INCSTACK_FORMAT_FOLDED && (problem.offset > size || !problem.line))
		abort();
	fclose(stream);
	return profile;
}

static char *write_bytes(const struct incstack_profile *profile, size_t *size)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, size);

	if (!stream || incstack_profile_write(profile, FUZZ_WRITTEN, 0, stream) || fclose(stream))
		abort();
	return text;
}

/* The weight of one kind, of the nodes: no format says what the root weighs. */
static uint64_t weight(const struct incstack_profile *profile, uint32_t kind)
{
	uint64_t sum = 0;

	for (uint32_t node = 0; node < incstack_profile_nodes(profile); node++)
		sum += incstack__profile_self(profile, node, kind);
	return sum;
}

static void must_weigh_the_same(const struct incstack_profile *a, const struct incstack_profile *b)
{
	struct incstack_profile_kind kind;
	uint32_t k = 0;

	for (; !incstack_profile_kind(a, k, &kind); k++)
		if (weight(a, k) != weight(b, k))
			abort();
	if (!incstack_profile_kind(b, k, &kind))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct incstack_profile *profile = size ? read_bytes(data, size, FUZZ_FORMAT) : NULL,
				*again;
	size_t written_size;
	char *written;

	/* A file repeats the callers of each context, so a deep tree becomes very large. */
	if (!profile || incstack_profile_nodes(profile) > NODES_MOST) {
		incstack_profile_destroy(profile);
		return 0;
	}
	written = write_bytes(profile, &written_size);
	if (written_size) {
		again = read_bytes(written, written_size, FUZZ_WRITTEN);
		if (!again)
			abort();
		must_weigh_the_same(profile, again);
		incstack_profile_destroy(again);
	}
	free(written);
	incstack_profile_destroy(profile);
	return 0;
}

#endif
