/* SPDX-License-Identifier: MIT
 *
 * Refuses outputs that are far larger than their inputs. Folded stacks, pprof, speedscope and OTLP repeat all callers
 * in each context, so a small file with a deep stack can become arbitrarily large (D114).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "expansion.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "profile/nodes.h"

enum { OUTPUT_EACH = 256 };
#define OUTPUT_LEAST ((uint64_t)64 << 20)

double tool_output_most(char *const *inputs, size_t count, double wanted)
{
	uint64_t bytes = 0;
	struct stat status;

	if (wanted > 0)
		return wanted;
	for (size_t i = 0; i < count; i++) {
		if (stat(inputs[i], &status) || !S_ISREG(status.st_mode))
			return 1e18; /* a pipe: its size is not known */
		bytes += (uint64_t)status.st_size;
	}
	return (double)(OUTPUT_LEAST + bytes * OUTPUT_EACH);
}

/* How many bytes a frame takes in a context. */
static double bytes_of(const struct incstack_profile_frame *frame, int format)
{
	return format == INCSTACK_FORMAT_FOLDED ? (double)frame->name_length + 1 : 2;
}

/* Returns how large the contexts will be, or -1 if there is no memory. A parent comes before its
 * children. */
static double size_of(const struct incstack_profile *profile, int format)
{
	const uint32_t nodes = incstack_profile_nodes(profile);
	double *bytes = calloc(nodes, sizeof(*bytes)), sum = 0;

	if (!bytes)
		return -1;
	for (uint32_t i = 1; i < nodes; i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};

		(void)incstack_profile_node(profile, i, &node);
		bytes[i] = bytes[node.parent] + bytes_of(&node.frame, format);
		if (incstack__profile_weighs(profile, i))
			sum += bytes[i];
	}
	free(bytes);
	return sum;
}

int tool_output_fits(const struct incstack_profile *profile, const char *path, int format,
		     double *left)
{
	const char *shown = strcmp(path, "-") ? path : "(stdout)";
	double size;

	if (format == INCSTACK_FORMAT_HTML || format == INCSTACK_FORMAT_FIREFOX)
		return TOOL_DONE;
	size = size_of(profile, format);
	if (size < 0) {
		fprintf(stderr, "incstack: %s: out of memory\n", tool_name(shown));
		return TOOL_FAILED;
	}
	if (size <= *left) {
		*left -= size;
		return TOOL_DONE;
	}
	fprintf(stderr,
		"incstack: %s: would have %.0f MB, because each context repeats its callers; use "
		"--max-output BYTES, or a Firefox file, which does not repeat callers\n",
		tool_name(shown), size / 1e6);
	return TOOL_FAILED;
}
