/* SPDX-License-Identifier: MIT
 *
 * Fuzz target of the folded reader: whatever is accepted is written, read again
 * and written again, and must come out the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct incstack_profile *read_bytes(const void *data, size_t size)
{
	static const struct incstack_profile_kind kind = {"samples", "count"};
	struct incstack_profile *profile = NULL;
	struct incstack_profile_fault fault;
	FILE *stream = fmemopen((void *)(uintptr_t)data, size, "r");

	if (!stream || incstack_profile_create(&kind, 1, &profile))
		abort();
	if (incstack_profile_read_folded(profile, 0, stream, &fault)) {
		if (fault.offset > size || !fault.line)
			abort();
		incstack_profile_destroy(profile);
		profile = NULL;
	}
	fclose(stream);
	return profile;
}

static char *write_bytes(struct incstack_profile *profile, size_t *size)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, size);

	if (!stream || incstack_profile_write_folded(profile, 0, stream) || fclose(stream))
		abort();
	incstack_profile_destroy(profile);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct incstack_profile *profile = size ? read_bytes(data, size) : NULL;
	size_t first_size, second_size;
	char *first, *second;

	if (!profile)
		return 0;
	first = write_bytes(profile, &first_size);
	if (first_size) {
		profile = read_bytes(first, first_size);
		if (!profile)
			abort();
		second = write_bytes(profile, &second_size);
		if (first_size != second_size || memcmp(first, second, first_size))
			abort();
		free(second);
	}
	free(first);
	return 0;
}
