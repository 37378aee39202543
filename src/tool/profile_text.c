/* SPDX-License-Identifier: MIT
 *
 * Prints names and amounts so that they fit the terminal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile_io.h"

static int continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

static size_t characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += !continues(*text);
	return count;
}

/* Returns the text after its first `count` characters. */
static const char *skip(const char *text, size_t count)
{
	for (; *text && (count || continues(*text)); text++)
		count -= !continues(*text);
	return text;
}

/* Prints a name without characters that control the terminal. */
static void put_plain(const char *text, size_t bytes, FILE *out)
{
	for (size_t i = 0; i < bytes; i++)
		fputc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i], out);
}

void tool_put_clipped(const char *text, size_t width, char cut, FILE *out)
{
	size_t count = characters(text);

	if (count <= width) {
		put_plain(text, strlen(text), out);
	} else if (cut == '<') {
		text = skip(text, count - (width - 3));
		fputs("...", out);
		put_plain(text, strlen(text), out);
	} else {
		put_plain(text, (size_t)(skip(text, width - 3) - text), out);
		fputs("...", out);
	}
}

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

static void put_frame(const struct incstack_profile *profile, uint32_t node, FILE *out)
{
	struct incstack_profile_frame frame;

	if (incstack_profile_frame(profile, node, &frame))
		return;
	if (frame.name)
		fwrite(frame.name, 1, frame.name_length, out);
	else
		fprintf(out, "0x%" PRIx64, frame.method);
	if (frame.bci > 0) /* contexts may differ only in this */
		fprintf(out, ":%" PRId32, frame.bci);
}

char *tool_context_text(const struct incstack_profile *profile, uint32_t node)
{
	uint32_t depth = 0, *path;
	char *text = NULL;
	size_t size;
	FILE *out;

	for (uint32_t n = node; n != INCSTACK_PROFILE_ROOT; n = incstack_profile_parent(profile, n))
		depth++;
	path = calloc(depth + 1, sizeof(*path));
	out = path ? open_memstream(&text, &size) : NULL;
	if (out) {
		for (uint32_t i = depth; i-- > 0; node = incstack_profile_parent(profile, node))
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
