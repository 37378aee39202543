/* SPDX-License-Identifier: MIT
 *
 * Writes folded stacks: one line for each stack of names. Contexts that differ only
 * in details that a folded stack does not have, for example a source line, become one.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "profile/merge.h"
#include "writer.h"

static char byte_written(char byte)
{
	return byte == ';' ? ':' : byte == '\n' ? ' ' : byte;
}

static void write_name(const char *text, size_t length, FILE *stream)
{
	for (size_t i = 0; i < length; i++)
		putc_unlocked(byte_written(text[i]), stream);
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

/* Whether our reader accepts the line. */
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

static int write_lines(const struct incstack_profile *profile, uint32_t kind, FILE *stream)
{
	uint32_t *path = NULL;
	size_t room = 0, depth;
	int error = 0;

	for (uint32_t node = 1; node < profile->nodes_used && !error; node++) {
		uint64_t weight = incstack__profile_self(profile, node, kind);

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
	return error;
}

/* For each frame, makes a frame in `written` that has only its name. */
static int name_frames(struct incstack_profile *written, const struct incstack_profile *profile,
		       uint32_t *frames)
{
	char *name = NULL;
	size_t room = 0;
	int error = 0;

	for (uint32_t i = 0; i < profile->frames_used && !error; i++) {
		char buffer[INCSTACK__FRAME_TEXT];
		size_t length;
		const char *text = incstack__frame_text(profile, i, buffer, &length);

		error = incstack__reserve((void **)&name, &room, length + 1, 1);
		for (size_t at = 0; at < length && !error; at++)
			name[at] = byte_written(text[at]);
		if (!error)
			error = incstack__frame_named(written, name, length, &frames[i]);
	}
	free(name);
	return error;
}

static int write_merged(struct incstack_profile *written,
			const struct incstack__profile_writer *writer, const uint32_t *frames)
{
	const struct incstack_profile *profile = writer->profile;
	uint32_t *nodes = malloc(profile->nodes_used * sizeof(*nodes));
	int error = nodes ? incstack__map_nodes(written, profile, frames, nodes) : INCSTACK_ENOMEM;

	for (uint32_t i = 1; i < profile->nodes_used && !error; i++)
		error = incstack__node_weigh(written, nodes[i], 0,
					     incstack__profile_self(profile, i, writer->kind));
	free(nodes);
	return error ? error : write_lines(written, 0, writer->stream);
}

/* `written` gets the names of all frames. If no two frames share a name, the profile is written as
 * it is, without a second tree, which would need as much memory as the first. */
static int add(struct incstack__profile_writer *writer)
{
	static const struct incstack_profile_kind weights = {"weights", "count"};
	const struct incstack_profile *profile = writer->profile;
	uint32_t *frames = malloc((profile->frames_used + 1) * sizeof(*frames));
	struct incstack_profile *written = NULL;
	int error = frames ? incstack_profile_create(&weights, 1, &written) : INCSTACK_ENOMEM;

	if (!error)
		error = name_frames(written, profile, frames);
	if (!error && written->frames_used == profile->frames_used)
		error = write_lines(profile, writer->kind, writer->stream);
	else if (!error)
		error = write_merged(written, writer, frames);
	incstack_profile_destroy(written);
	free(frames);
	return error;
}

const struct incstack__writer_ops incstack__write_folded = {
	.size = sizeof(struct incstack__profile_writer),
	.add = add,
};
