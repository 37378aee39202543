/* SPDX-License-Identifier: MIT
 *
 * Writes the difference of two profiles as JSON.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "writer.h"
#include "profile/delta.h"

void incstack__delta_json_begin(const char *before, const char *after, bool shares, FILE *stream)
{
	fputs("{\"before\":", stream);
	incstack__json_string(before, stream);
	fputs(",\"after\":", stream);
	incstack__json_string(after, stream);
	fprintf(stream, ",\"normalized\":%s,\"kinds\":[", shares ? "true" : "false");
}

/* Writes the members that all changes have. */
static void put_weights(uint64_t before, uint64_t after, FILE *stream)
{
	fprintf(stream, "\"before\":%" PRIu64 ",\"after\":%" PRIu64 ",\"difference\":%" PRId64,
		before, after, (int64_t)(after - before));
}

static void put_line(const struct incstack__change *line, FILE *stream)
{
	fputs("{\"file\":", stream);
	if (line->file)
		incstack__json_string(line->file, stream);
	else
		fputs("null", stream);
	fprintf(stream, ",\"line\":%" PRId32 ",", line->line);
	put_weights(line->before, line->after, stream);
	putc_unlocked('}', stream);
}

static void put_function(const struct incstack__kind_delta *of,
			 const struct incstack__change *function, FILE *stream)
{
	fputs("{\"name\":", stream);
	incstack__json_string(function->name, stream);
	putc_unlocked(',', stream);
	put_weights(function->before, function->after, stream);
	fputs(",\"lines\":[", stream);
	for (uint32_t i = 0; i < function->count; i++) {
		if (i)
			putc_unlocked(',', stream);
		put_line(&of->lines.at[function->first + i], stream);
	}
	fputs("]}", stream);
}

/* Writes the functions on the way to a context, outermost first. */
static int put_frames(const struct incstack_profile *contexts, uint32_t node, uint32_t **path,
		      size_t *room, FILE *stream)
{
	size_t depth;
	int error = incstack__node_path(contexts, node, path, room, &depth);

	for (size_t i = depth; i-- > 0 && !error;) {
		incstack__json_frame(contexts, (*path)[i], stream);
		if (i)
			putc_unlocked(',', stream);
	}
	return error;
}

static int put_contexts(const struct incstack__delta *delta,
			const struct incstack__changes *changes, size_t count, FILE *stream)
{
	uint32_t *path = NULL;
	size_t room = 0;
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		fputs(i ? ",\n{" : "\n{", stream);
		put_weights(changes->at[i].before, changes->at[i].after, stream);
		fputs(",\"frames\":[", stream);
		error = put_frames(incstack__delta_contexts(delta), changes->at[i].node, &path,
				   &room, stream);
		fputs("]}", stream);
	}
	free(path);
	return error;
}

int incstack__delta_json_kind(const struct incstack__delta *delta,
			      const struct incstack__kind_delta *of,
			      const struct incstack__delta_shown *shown, FILE *stream)
{
	int error;

	fputs(shown->first ? "\n{\"name\":" : ",\n{\"name\":", stream);
	incstack__json_string(shown->kind.name, stream);
	fputs(",\"unit\":", stream);
	incstack__json_string(shown->kind.unit, stream);
	putc_unlocked(',', stream);
	put_weights(of->before, of->after, stream);
	if (shown->is_exceeded >= 0)
		fprintf(stream, ",\"exceeded\":%s", shown->is_exceeded ? "true" : "false");
	fputs(",\n\"functions\":[", stream);
	for (size_t i = 0; i < shown->functions; i++) {
		fputs(i ? ",\n" : "\n", stream);
		put_function(of, &of->functions.at[i], stream);
	}
	fputs("],\n\"contexts\":[", stream);
	error = put_contexts(delta, &of->contexts, shown->contexts, stream);
	fprintf(stream, "],\n\"hidden\":{\"functions\":%zu,\"contexts\":%zu}}",
		of->functions.count - shown->functions, of->contexts.count - shown->contexts);
	return error;
}

void incstack__delta_json_end(FILE *stream)
{
	fputs("]}\n", stream);
}
