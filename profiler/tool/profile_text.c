/* SPDX-License-Identifier: MIT
 *
 * Amounts and contexts as text.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "profile_io.h"
#include "profile/nodes.h"

static const char *scaled(double value, double step, const char *const *units, size_t count,
			  char *text, size_t size)
{
	size_t unit = 0;

	for (; value >= step && unit + 1 < count; unit++)
		value /= step;
	snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

const char *tool_amount(uint64_t value, const char *unit, char *text, size_t size)
{
	static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	static const char *const times[] = {"ns", "us", "ms", "s"};

	if (!strcmp(unit, "bytes"))
		return scaled((double)value, 1024, bytes, 5, text, size);
	if (!strcmp(unit, "nanoseconds"))
		return scaled((double)value, 1000, times, 4, text, size);
	snprintf(text, size, "%" PRIu64, value);
	return text;
}

static void put_frame(const struct incstack_profile *profile, uint32_t number, FILE *out)
{
	struct incstack_profile_node node = {.size = sizeof(node)};

	(void)incstack_profile_node(profile, number, &node);
	if (node.frame.name)
		tool_name_put(node.frame.name, node.frame.name_length, out);
	else
		fprintf(out, "0x%" PRIx64, node.frame.function);
	if (node.frame.line) /* contexts may differ only in this */
		fprintf(out, ":%" PRId32, node.frame.line);
}

char *tool_context_text(const struct incstack_profile *profile, uint32_t node)
{
	uint32_t depth = 0, *path;
	char *text = NULL;
	size_t size;
	FILE *out;

	for (uint32_t n = node; n != INCSTACK_PROFILE_ROOT;
	     n = incstack__profile_parent(profile, n))
		depth++;
	path = calloc(depth + 1, sizeof(*path));
	out = path ? open_memstream(&text, &size) : NULL;
	if (out) {
		for (uint32_t i = depth; i-- > 0; node = incstack__profile_parent(profile, node))
			path[i] = node;
		for (uint32_t i = 0; i < depth; i++) {
			fputs(i ? " > " : "", out);
			put_frame(profile, path[i], out);
		}
		fclose(out);
	}
	free(path);
	return text;
}
