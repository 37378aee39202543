/* SPDX-License-Identifier: MIT
 *
 * pprof: a gzipped protobuf message whose fields may come in any order, so
 * strings, functions and locations go out when first met, before the samples that
 * need them. Field numbers are those of profile.proto.
 */
#include <stdlib.h>
#include <string.h>

#include <pb_encode.h>

#include "function_set.h"
#include "gzip.h"
#include "pprof.h"
#include "pprof_chains.h"
#include "writer.h"

struct pprof_writer {
	struct incstack_profile_writer common;
	struct incstack__deflater gzip;
	bool open;
	size_t frames;    /* of the profile, already written */
	size_t functions; /* of the set, likewise */
	struct incstack__function_set set;
	struct incstack__pprof_chains chains;
	uint64_t strings; /* in the string table so far */
	uint32_t *path;
	uint64_t *ids; /* of the locations of a path, innermost first */
	size_t path_room, ids_room;
	pb_byte_t *message, *packed;
	size_t message_room, packed_room;
};

static struct pprof_writer *pprof_of(struct incstack_profile_writer *writer)
{
	return (struct pprof_writer *)(void *)writer;
}

/* A stream over a buffer with room for `size` bytes. */
static int start(pb_byte_t **buffer, size_t *room, size_t size, pb_ostream_t *stream)
{
	int error = incstack__reserve((void **)buffer, room, size, 1);

	*stream = pb_ostream_from_buffer(*buffer, *room);
	return error;
}

static bool put_number(pb_ostream_t *stream, uint32_t field, uint64_t value)
{
	return !value ||
	       (pb_encode_tag(stream, PB_WT_VARINT, field) && pb_encode_varint(stream, value));
}

/* A field of the outermost message: its head, then its bytes. */
static int put_field(struct pprof_writer *writer, uint32_t field, const void *bytes, size_t size)
{
	pb_byte_t head[2 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(head, sizeof(head));
	int error;

	(void)pb_encode_tag(&stream, PB_WT_STRING, field);
	(void)pb_encode_varint(&stream, size);
	error = incstack__deflater_write(&writer->gzip, head, stream.bytes_written);
	return error || !size ? error : incstack__deflater_write(&writer->gzip, bytes, size);
}

static int put_top_number(struct pprof_writer *writer, uint32_t field, uint64_t value)
{
	pb_byte_t bytes[2 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));

	(void)put_number(&stream, field, value);
	return incstack__deflater_write(&writer->gzip, bytes, stream.bytes_written);
}

static int put_string(struct pprof_writer *writer, const char *text, size_t length, uint64_t *index)
{
	*index = writer->strings++;
	return put_field(writer, PPROF_STRING, text, length);
}

/* A message of up to three numbers in fields 1 to 3. */
static int put_numbers(struct pprof_writer *writer, uint32_t field, uint64_t a, uint64_t b)
{
	pb_byte_t bytes[4 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));

	(void)put_number(&stream, 1, a);
	(void)put_number(&stream, 2, b);
	return put_field(writer, field, bytes, stream.bytes_written);
}

static int put_kind(struct pprof_writer *writer, uint32_t kind)
{
	struct incstack_profile_kind text = {"", ""};
	uint64_t name, unit;
	int error;

	(void)incstack_profile_kind(writer->common.profile, kind, &text);
	error = put_string(writer, text.name, strlen(text.name), &name);
	if (!error)
		error = put_string(writer, text.unit, strlen(text.unit), &unit);
	return error ? error : put_numbers(writer, PPROF_SAMPLE_TYPE, name, unit);
}

static int begin(struct incstack_profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);
	uint64_t empty;
	int error = incstack__deflater_open(&writer->gzip, common->stream);

	if (error)
		return error;
	writer->open = true;
	error = incstack__function_set_init(&writer->set);
	if (!error)
		error = incstack__table_init(&writer->chains.table);
	if (!error)
		error = put_string(writer, "", 0, &empty);
	for (uint32_t k = 0; k < common->profile->kinds && !error; k++)
		error = put_kind(writer, k);
	return error;
}

/* A function's identifier is its number + 1. System names stay empty. */
static int put_function(struct pprof_writer *writer, uint32_t function)
{
	const struct incstack_profile *profile = writer->common.profile;
	uint32_t frame = writer->set.functions[function].frame;
	pb_byte_t bytes[6 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *text = incstack__frame_text(profile, frame, buffer, &length);
	uint64_t name, file = 0;
	int error = put_string(writer, text, length, &name);

	if (!error && profile->frames[frame].file) {
		text = incstack__text(profile, profile->frames[frame].file - 1);
		error = put_string(writer, text, strlen(text), &file);
	}
	if (error)
		return error;
	(void)put_number(&stream, PPROF_FUNCTION_ID, (uint64_t)function + 1);
	(void)put_number(&stream, PPROF_FUNCTION_NAME, name);
	(void)put_number(&stream, PPROF_FUNCTION_FILE, file);
	return put_field(writer, PPROF_FUNCTION, bytes, stream.bytes_written);
}

/* Line: function_id = 1, line = 2. The frame's function is in the file already. */
static int put_line(struct pprof_writer *writer, uint32_t frame, pb_ostream_t *location)
{
	const struct incstack_profile *profile = writer->common.profile;
	int32_t bci = profile->frames[frame].bci;
	pb_byte_t line[4 * INCSTACK__VARINT_MAX];
	pb_ostream_t inner = pb_ostream_from_buffer(line, sizeof(line));
	uint32_t function;
	int error = incstack__function_of(&writer->set, profile, frame, &function);

	if (error)
		return error;
	(void)put_number(&inner, PPROF_LINE_FUNCTION, (uint64_t)function + 1);
	(void)put_number(&inner, PPROF_LINE_LINE, bci > 0 ? (uint64_t)bci : 0);
	(void)pb_encode_tag(location, PB_WT_STRING, PPROF_LOCATION_LINE);
	(void)pb_encode_string(location, line, inner.bytes_written);
	return 0;
}

/* Location: id = 1, line = 4, innermost first: those before the last are inlined. */
static int put_location(struct pprof_writer *writer, uint64_t id)
{
	uint32_t frame, lines = incstack__pprof_chain_lines(&writer->chains, id);
	uint64_t rest = id;
	pb_ostream_t message;
	int error = start(&writer->message, &writer->message_room,
			  ((size_t)lines * 6 + 2) * INCSTACK__VARINT_MAX, &message);

	if (error)
		return error;
	(void)put_number(&message, PPROF_LOCATION_ID, id);
	while (rest && !error) {
		rest = incstack__pprof_chain_next(&writer->chains, rest, &frame);
		error = put_line(writer, frame, &message);
	}
	return error ? error
		     : put_field(writer, PPROF_LOCATION, writer->message, message.bytes_written);
}

/* New frames: their functions, and the locations of those that are not inlined. */
static int put_frames(struct pprof_writer *writer)
{
	const struct incstack_profile *profile = writer->common.profile;
	int error = 0;

	for (; writer->frames < profile->frames_used && !error; writer->frames++) {
		uint32_t function, frame = (uint32_t)writer->frames;

		error = incstack__function_of(&writer->set, profile, frame, &function);
		if (!error && function == writer->functions)
			error = put_function(writer, (uint32_t)writer->functions++);
		if (!error && !(profile->frames[frame].flags & INCSTACK_OBJECT_VIRTUAL))
			error = put_location(writer, incstack__pprof_chain_single(frame));
	}
	return error;
}

/* Makes locations of the first `depth` frames of the path: an inlined frame is in the location
 * of its caller. They are written where they are new; *first is where the ids begin. */
static int put_path(struct pprof_writer *writer, size_t depth, size_t *first)
{
	const struct incstack__frame *frames = writer->common.profile->frames;
	int error = incstack__reserve((void **)&writer->ids, &writer->ids_room, depth,
				      sizeof(*writer->ids));
	uint64_t id = 0;

	*first = depth;
	for (size_t i = depth; i > 0 && !error; i--) {
		uint32_t frame = writer->path[i - 1];

		if (frames[frame].flags & INCSTACK_OBJECT_VIRTUAL)
			error = incstack__pprof_chain(&writer->chains, id, frame, &id);
		else
			id = incstack__pprof_chain_single(frame);
		if (i > 1 && frames[writer->path[i - 2]].flags & INCSTACK_OBJECT_VIRTUAL)
			continue;
		writer->ids[--*first] = id;
		if (!error && incstack__pprof_chain_claim(&writer->chains, id))
			error = put_location(writer, id);
	}
	return error;
}

/* Sample: location_id = 1, leaf first, and value = 2, both packed. */
static int put_sample(struct pprof_writer *writer, uint32_t node)
{
	const struct incstack_profile *profile = writer->common.profile;
	pb_ostream_t packed, message;
	size_t depth, first, ids;
	int error = incstack__node_path(profile, node, &writer->path, &writer->path_room, &depth);

	if (!error)
		error = put_path(writer, depth, &first);
	if (!error)
		error = start(&writer->packed, &writer->packed_room,
			      (depth + profile->kinds) * INCSTACK__VARINT_MAX, &packed);
	if (!error)
		error = start(&writer->message, &writer->message_room,
			      (depth + profile->kinds + 4) * INCSTACK__VARINT_MAX, &message);
	if (error)
		return error;
	for (size_t i = first; i < depth; i++)
		(void)pb_encode_varint(&packed, writer->ids[i]);
	ids = packed.bytes_written;
	for (uint32_t k = 0; k < profile->kinds; k++)
		(void)pb_encode_varint(&packed, incstack_profile_self(profile, node, k));
	(void)pb_encode_tag(&message, PB_WT_STRING, PPROF_SAMPLE_LOCATION);
	(void)pb_encode_string(&message, writer->packed, ids);
	(void)pb_encode_tag(&message, PB_WT_STRING, PPROF_SAMPLE_VALUE);
	(void)pb_encode_string(&message, writer->packed + ids, packed.bytes_written - ids);
	return put_field(writer, PPROF_SAMPLE, writer->message, message.bytes_written);
}

static int add(struct incstack_profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);
	int error = put_frames(writer);

	for (uint32_t node = 1; node < common->profile->nodes_used && !error; node++)
		if (incstack__node_weighs(common->profile, node))
			error = put_sample(writer, node);
	return error;
}

static int put_comment(struct pprof_writer *writer, const char *key, const char *value)
{
	char *text;
	uint64_t string;
	int error, length = asprintf(&text, "incstack.%s=%s", key, value);

	if (length < 0)
		return INCSTACK_ENOMEM;
	error = put_string(writer, text, (size_t)length, &string);
	free(text);
	return error ? error : put_top_number(writer, PPROF_COMMENT, string);
}

static int put_count(struct pprof_writer *writer, const char *key, uint64_t count)
{
	char digits[24];

	if (!count)
		return 0;
	(void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
	return put_comment(writer, key, digits);
}

/* A name of the profile, + 1, as a string of the file; 0 stays 0. */
static int put_name(struct pprof_writer *writer, uint32_t name, uint64_t *string)
{
	const char *text;

	*string = 0;
	if (!name)
		return 0;
	text = incstack__text(writer->common.profile, name - 1);
	return put_string(writer, text, strlen(text), string);
}

static int put_extra(struct pprof_writer *writer)
{
	const struct incstack__extra *extra = &writer->common.profile->extra;
	uint64_t name, unit, string;
	int error = put_name(writer, extra->period_name, &name);

	if (!error)
		error = put_name(writer, extra->period_unit, &unit);
	if (!error && (name || unit))
		error = put_numbers(writer, PPROF_PERIOD_TYPE, name, unit);
	if (!error)
		error = put_top_number(writer, PPROF_PERIOD, extra->period);
	if (!error)
		error = put_name(writer, extra->default_kind, &string);
	if (!error)
		error = put_top_number(writer, PPROF_DEFAULT_TYPE, string);
	for (size_t i = 0; i < extra->comments_used && !error; i++) {
		error = put_name(writer, extra->comments[i], &string);
		if (!error)
			error = put_top_number(writer, PPROF_COMMENT, string);
	}
	return error;
}

static int finish(struct incstack_profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);
	const struct incstack_profile_meta *meta = &common->profile->meta;
	int error = put_top_number(writer, PPROF_TIME, meta->time_ns);

	if (!error)
		error = put_top_number(writer, PPROF_DURATION, meta->duration_ns);
	if (!error && meta->program)
		error = put_comment(writer, "program", meta->program);
	if (!error && meta->mode)
		error = put_comment(writer, "mode", meta->mode);
	if (!error)
		error = put_count(writer, "lost", meta->lost);
	if (!error)
		error = put_count(writer, "truncated", meta->truncated);
	if (!error)
		error = put_count(writer, "pruned", meta->pruned);
	if (!error)
		error = put_extra(writer);
	return error ? error : incstack__deflater_finish(&writer->gzip);
}

static void release(struct incstack_profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);

	if (writer->open)
		incstack__deflater_close(&writer->gzip);
	incstack__function_set_free(&writer->set);
	incstack__pprof_chains_free(&writer->chains);
	free(writer->path);
	free(writer->ids);
	free(writer->message);
	free(writer->packed);
}

const struct incstack__writer_ops incstack__write_pprof = {
	.size = sizeof(struct pprof_writer),
	.begin = begin,
	.add = add,
	.finish = finish,
	.release = release,
};
