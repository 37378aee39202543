/* SPDX-License-Identifier: MIT
 *
 * Writes folded stacks, one context a line. It holds one line at a time.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "writer.h"

static void write_name(const char *text, size_t length, FILE *stream)
{
	for (size_t i = 0; i < length; i++) {
		int byte = text[i] == ';' ? ':' : text[i] == '\n' ? ' ' : text[i];

		putc_unlocked(byte, stream);
	}
}

static void write_line(const struct incstack_profile *profile, const uint32_t *path, size_t depth,
		       uint64_t weight, FILE *stream)
{
	while (depth--) {
		char buffer[INCSTACK__FRAME_TEXT];
		size_t length;
		const char *text = incstack__frame_text(profile, path[depth], buffer, &length);

		write_name(text, length, stream);
		if (depth)
			putc_unlocked(';', stream);
	}
	fprintf(stream, " %" PRIu64 "\n", weight);
}

/* Whether our reader takes the line. */
static bool fits(const struct incstack_profile *profile, const uint32_t *path, size_t depth)
{
	size_t size = 24; /* the weight */

	for (size_t i = 0; i < depth && size < INCSTACK_FOLDED_LINE_MAX; i++) {
		char buffer[INCSTACK__FRAME_TEXT];
		size_t length;

		(void)incstack__frame_text(profile, path[i], buffer, &length);
		size += length + 1;
	}
	return size < INCSTACK_FOLDED_LINE_MAX;
}

int incstack_profile_write_folded(const struct incstack_profile *profile, uint32_t kind,
				  FILE *stream)
{
	uint32_t *path = NULL;
	size_t room = 0, depth;
	int error = 0;

	if (!profile || !stream || kind >= profile->kinds)
		return INCSTACK_EINVAL;
	for (uint32_t node = 1; node < profile->nodes_used && !error; node++) {
		uint64_t weight = incstack_profile_self(profile, node, kind);

		if (!weight)
			continue;
		error = incstack__node_path(profile, node, &path, &room, &depth);
		if (!error && !fits(profile, path, depth))
			error = INCSTACK_ELIMIT;
		if (!error)
			write_line(profile, path, depth, weight, stream);
		if (ferror(stream))
			error = INCSTACK_EIO;
	}
	free(path);
	if (!error && fflush(stream))
		error = INCSTACK_EIO;
	return error;
}

static int add(struct incstack_profile_writer *writer)
{
	return incstack_profile_write_folded(writer->profile, writer->kind, writer->stream);
}

const struct incstack__writer_ops incstack__write_folded = {
	.size = sizeof(struct incstack_profile_writer),
	.add = add,
};
