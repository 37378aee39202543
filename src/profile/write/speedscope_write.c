/* SPDX-License-Identifier: MIT
 *
 * Writes speedscope files: one sampled profile for each kind, with a common table of frames.
 * Samples and weights are two arrays, so each is kept in a temporary file. The frames come first,
 * which makes the file easy to read.
 */
#include <stdlib.h>
#include <string.h>

#include "writer.h"

struct speedscope_writer {
	struct incstack__profile_writer common;
	struct incstack__column samples[INCSTACK_PROFILE_KINDS_MAX];
	struct incstack__column weights[INCSTACK_PROFILE_KINDS_MAX];
	uint64_t total[INCSTACK_PROFILE_KINDS_MAX];
	uint32_t *path;
	size_t path_room;
};

static struct speedscope_writer *speedscope_of(struct incstack__profile_writer *writer)
{
	return (struct speedscope_writer *)(void *)writer;
}

static int begin(struct incstack__profile_writer *common)
{
	struct speedscope_writer *writer = speedscope_of(common);
	int error = 0;

	for (uint32_t k = 0; k < common->profile->kinds && !error; k++) {
		error = incstack__column_open(&writer->samples[k]);
		if (!error)
			error = incstack__column_open(&writer->weights[k]);
	}
	return error;
}

static void put_path(const uint32_t *path, size_t depth, FILE *stream)
{
	putc_unlocked('[', stream);
	while (depth--) {
		incstack__json_number(path[depth], stream);
		if (depth)
			putc_unlocked(',', stream);
	}
	putc_unlocked(']', stream);
}

static int add_node(struct speedscope_writer *writer, uint32_t node)
{
	const struct incstack_profile *profile = writer->common.profile;
	size_t depth;
	int error = incstack__node_path(profile, node, &writer->path, &writer->path_room, &depth);

	for (uint32_t k = 0; k < profile->kinds && !error; k++) {
		uint64_t weight = incstack__profile_self(profile, node, k);

		if (!weight)
			continue;
		incstack__column_next(&writer->samples[k]);
		put_path(writer->path, depth, writer->samples[k].file);
		incstack__column_number(&writer->weights[k], weight);
		writer->total[k] += weight;
	}
	return error;
}

static int add(struct incstack__profile_writer *common)
{
	int error = 0;

	for (uint32_t node = 1; node < common->profile->nodes_used && !error; node++)
		if (incstack__profile_weighs(common->profile, node))
			error = add_node(speedscope_of(common), node);
	return error;
}

static void put_frames(const struct incstack_profile *profile, FILE *stream)
{
	fputs("\"shared\":{\"frames\":[", stream);
	for (size_t i = 0; i < profile->frames_used; i++) {
		int32_t line = profile->frames[i].line;

		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", stream);
		incstack__json_frame(profile, (uint32_t)i, stream);
		if (profile->frames[i].file) {
			fputs(",\"file\":", stream);
			incstack__json_string(incstack__text(profile, profile->frames[i].file - 1),
					      stream);
		}
		if (line)
			fprintf(stream, ",\"line\":%d", (int)line);
		if (profile->frames[i].flags & INCSTACK_OBJECT_VIRTUAL)
			fputs(",\"inlineDepth\":1", stream);
		putc_unlocked('}', stream);
	}
	fputs("]},\n", stream);
}

/* Returns speedscope's name of a unit, or "none" for a unit that speedscope does not know. */
static const char *unit_of(const char *unit)
{
	static const char *const known[] = {"bytes", "nanoseconds", "microseconds", "milliseconds",
					    "seconds"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(unit, known[i]))
			return unit;
	return "none";
}

static int put_kind(struct speedscope_writer *writer, uint32_t k)
{
	FILE *stream = writer->common.stream;
	struct incstack_profile_kind kind = {"", ""};
	int error;

	(void)incstack_profile_kind(writer->common.profile, k, &kind);
	fputs(k ? ",\n{\"type\":\"sampled\",\"name\":" : "\n{\"type\":\"sampled\",\"name\":",
	      stream);
	incstack__json_string(kind.name, stream);
	fprintf(stream, ",\"unit\":\"%s\",\"kindUnit\":", unit_of(kind.unit));
	incstack__json_string(kind.unit, stream);
	fputs(",\"startValue\":0,\"endValue\":", stream);
	incstack__json_number(writer->total[k], stream);
	fputs(",\n\"samples\":[", stream);
	error = incstack__column_copy(&writer->samples[k], stream);
	fputs("],\n\"weights\":[", stream);
	if (!error)
		error = incstack__column_copy(&writer->weights[k], stream);
	fputs("]}", stream);
	return error;
}

static int finish(struct incstack__profile_writer *common)
{
	const struct incstack_profile *profile = common->profile;
	FILE *stream = common->stream;
	int error = 0;

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"incstack\",\"activeProfileIndex\":",
	      stream);
	incstack__json_number(incstack__default_kind(profile), stream);
	fputs(",\"name\":", stream);
	incstack__json_string(profile->meta.program ? profile->meta.program : "profile", stream);
	fputs(",\n\"incstack\":{", stream);
	incstack__json_meta(profile, stream);
	fputs("},\n", stream);
	put_frames(profile, stream);
	fputs("\"profiles\":[", stream);
	for (uint32_t k = 0; k < profile->kinds && !error; k++)
		error = put_kind(speedscope_of(common), k);
	fputs("]}\n", stream);
	return error;
}

static void release(struct incstack__profile_writer *common)
{
	struct speedscope_writer *writer = speedscope_of(common);

	for (uint32_t k = 0; k < INCSTACK_PROFILE_KINDS_MAX; k++) {
		incstack__column_close(&writer->samples[k]);
		incstack__column_close(&writer->weights[k]);
	}
	free(writer->path);
}

const struct incstack__writer_ops incstack__write_speedscope = {
	.size = sizeof(struct speedscope_writer),
	.begin = begin,
	.add = add,
	.finish = finish,
	.release = release,
};
