/* SPDX-License-Identifier: MIT
 *
 * Writes pprof files. A pprof file is one protobuf message, compressed by gzip. Its fields may come
 * in any order. So add() writes the mappings, functions and locations that are new since its last
 * call, then the samples. Strings, and locations with inlined frames, are written right before
 * their first use. The numbers of the fields are in pprof.h.
 */
#include <stdlib.h>
#include <string.h>

#include <pb_encode.h>

#include "function_set.h"
#include "profile/pprof.h"
#include "pprof_chains.h"
#include "pprof_put.h"
#include "writer.h"

struct pprof_writer {
	struct incstack__profile_writer common;
	struct incstack__pprof_put put;
	size_t frames;    /* of the profile, already written */
	size_t functions; /* of the set, already written */
	struct incstack__function_set set;
	struct incstack__pprof_chains chains;
	size_t mappings; /* of the profile, already written */
	uint32_t *path;  /* of a node: its frames, innermost first */
	uint64_t *ids;   /* of the locations of a path, innermost first */
	size_t path_room, ids_room;
	pb_byte_t *message, *packed; /* sized for the longest message, so encoding cannot fail */
	size_t message_room, packed_room;
};

static struct pprof_writer *pprof_of(struct incstack__profile_writer *writer)
{
	return (struct pprof_writer *)(void *)writer;
}

/* Makes a stream over a buffer with room for `size` bytes. */
static int start(pb_byte_t **buffer, size_t *room, size_t size, pb_ostream_t *stream)
{
	int error = incstack__reserve((void **)buffer, room, size, 1);

	*stream = pb_ostream_from_buffer(*buffer, *room);
	return error;
}

static int put_kind(struct pprof_writer *writer, uint32_t kind)
{
	struct incstack_profile_kind text = {"", ""};
	uint64_t name, unit;
	int error;

	(void)incstack_profile_kind(writer->common.profile, kind, &text);
	error = incstack__pprof_put_string(&writer->put, text.name, strlen(text.name), &name);
	if (!error)
		error = incstack__pprof_put_string(&writer->put, text.unit, strlen(text.unit),
						   &unit);
	return error ? error
		     : incstack__pprof_put_numbers(&writer->put, PPROF_SAMPLE_TYPE, name, unit);
}

static int begin(struct incstack__profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);
	uint64_t empty;
	int error = incstack__pprof_put_open(&writer->put, common->profile, common->stream);

	if (!error)
		error = incstack__function_set_init(&writer->set);
	if (!error)
		error = incstack__table_init(&writer->chains.table);
	if (!error)
		error = incstack__pprof_put_string(&writer->put, "", 0, &empty);
	for (uint32_t k = 0; k < common->profile->kinds && !error; k++)
		error = put_kind(writer, k);
	return error;
}

/* Writes a function. Its identifier is its number + 1. System names stay empty. */
static int put_function(struct pprof_writer *writer, uint32_t function)
{
	const struct incstack_profile *profile = writer->common.profile;
	uint32_t frame = writer->set.functions[function].frame;
	pb_byte_t bytes[6 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *text = incstack__frame_text(profile, frame, buffer, &length);
	uint64_t name, file;
	int error = incstack__pprof_put_string(&writer->put, text, length, &name);

	if (!error)
		error = incstack__pprof_put_name(&writer->put, profile->frames[frame].file, &file);
	if (error)
		return error;
	(void)incstack__pprof_put_number(&stream, PPROF_FUNCTION_ID, (uint64_t)function + 1);
	(void)incstack__pprof_put_number(&stream, PPROF_FUNCTION_NAME, name);
	(void)incstack__pprof_put_number(&stream, PPROF_FUNCTION_FILE, file);
	return incstack__pprof_put_field(&writer->put, PPROF_FUNCTION, bytes, stream.bytes_written);
}

/* Writes a Line: function_id = 1, line = 2. The frame's function was written before. */
static int put_line(struct pprof_writer *writer, uint32_t frame, pb_ostream_t *location)
{
	const struct incstack_profile *profile = writer->common.profile;
	pb_byte_t line[4 * INCSTACK__VARINT_MAX];
	pb_ostream_t inner = pb_ostream_from_buffer(line, sizeof(line));
	uint32_t function;
	int error = incstack__function_of(&writer->set, profile, frame, &function);

	if (error)
		return error;
	(void)incstack__pprof_put_number(&inner, PPROF_LINE_FUNCTION, (uint64_t)function + 1);
	(void)incstack__pprof_put_number(&inner, PPROF_LINE_LINE,
					 (uint64_t)profile->frames[frame].line);
	(void)pb_encode_tag(location, PB_WT_STRING, PPROF_LOCATION_LINE);
	(void)pb_encode_string(location, line, inner.bytes_written);
	return 0;
}

/* Whether a frame is an address without a name. In pprof, its location has no lines. */
static bool is_bare(const struct incstack__frame *frame)
{
	return frame->place && frame->name == INCSTACK__NONE;
}

static void put_place(const struct incstack_profile *profile, uint32_t place, pb_ostream_t *message)
{
	if (!place)
		return;
	const struct incstack__place *p = &profile->modules.places[place - 1];

	(void)incstack__pprof_put_number(message, PPROF_LOCATION_MAPPING, p->mapping);
	(void)incstack__pprof_put_number(message, PPROF_LOCATION_ADDRESS, p->address);
	(void)incstack__pprof_put_number(message, PPROF_LOCATION_FOLDED, p->folded);
}

/* Writes a Location: id = 1, line = 4, innermost first. All lines but the last are inlined. */
static int put_location(struct pprof_writer *writer, uint64_t id)
{
	const struct incstack_profile *profile = writer->common.profile;
	uint32_t frame = 0, lines = incstack__pprof_chain_lines(&writer->chains, id);
	uint64_t rest = id;
	pb_ostream_t message;
	int error = start(&writer->message, &writer->message_room,
			  ((size_t)lines * 6 + 8) * INCSTACK__VARINT_MAX, &message);

	if (error)
		return error;
	(void)incstack__pprof_put_number(&message, PPROF_LOCATION_ID, id);
	while (rest && !error) {
		rest = incstack__pprof_chain_next(&writer->chains, rest, &frame);
		if (!is_bare(&profile->frames[frame]))
			error = put_line(writer, frame, &message);
	}
	put_place(profile, profile->frames[frame].place, &message);
	return error ? error
		     : incstack__pprof_put_field(&writer->put, PPROF_LOCATION, writer->message,
						 message.bytes_written);
}

/* Writes what a new frame needs: its function, and its location unless it is inlined. */
static int put_frame(struct pprof_writer *writer, uint32_t number)
{
	const struct incstack_profile *profile = writer->common.profile;
	const struct incstack__frame *frame = &profile->frames[number];
	uint32_t function;
	int error = 0;

	if (frame->flags & INCSTACK_PROFILE_LABEL)
		return 0;
	if (!is_bare(frame)) {
		error = incstack__function_of(&writer->set, profile, number, &function);
		if (!error && function == writer->functions)
			error = put_function(writer, (uint32_t)writer->functions++);
	}
	if (!error && !(frame->flags & INCSTACK_OBJECT_VIRTUAL))
		error = put_location(writer, incstack__pprof_chain_single(number));
	return error;
}

/* Writes a mapping. Its identifier is its number + 1. */
static int put_mapping(struct pprof_writer *writer, size_t number)
{
	const struct incstack__modules *all = &writer->common.profile->modules;
	const struct incstack__mapping *mapping = &all->mappings[number];
	const struct incstack__module unknown = {0},
				      *module = mapping->module ? &all->modules[mapping->module - 1]
								: &unknown;
	pb_byte_t bytes[2 * PPROF_MAPPING_FIELDS * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));
	uint64_t file, build_id = 0;
	int error = incstack__pprof_put_name(&writer->put, module->file, &file);

	if (!error)
		error = incstack__pprof_put_name(&writer->put, module->build_id, &build_id);
	if (error)
		return error;
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_ID, number + 1);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_START, mapping->start);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_LIMIT, mapping->limit);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_OFFSET, mapping->offset);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_FILE, file);
	(void)incstack__pprof_put_number(&stream, PPROF_MAPPING_BUILD_ID, build_id);
	for (uint32_t i = PPROF_MAPPING_HAS; i < PPROF_MAPPING_FIELDS; i++)
		(void)incstack__pprof_put_number(&stream, i,
						 mapping->has >> (i - PPROF_MAPPING_HAS) & 1);
	return incstack__pprof_put_field(&writer->put, PPROF_MAPPING, bytes, stream.bytes_written);
}

/* Writes the mappings and frames that the profile has got since the last call. */
static int put_tables(struct pprof_writer *writer)
{
	const struct incstack_profile *profile = writer->common.profile;
	int error = 0;

	for (; writer->mappings < profile->modules.mappings_used && !error; writer->mappings++)
		error = put_mapping(writer, writer->mappings);
	for (; writer->frames < profile->frames_used && !error; writer->frames++)
		error = put_frame(writer, (uint32_t)writer->frames);
	return error;
}

/* Makes the locations of a path. An inlined frame is in the location of its caller. Writes the new
 * locations. *first is the index in writer->ids where the ids of the path begin. */
static int put_path(struct pprof_writer *writer, const uint32_t *path, size_t depth, size_t *first)
{
	const struct incstack__frame *frames = writer->common.profile->frames;
	int error = incstack__reserve((void **)&writer->ids, &writer->ids_room, depth,
				      sizeof(*writer->ids));
	uint64_t id = 0;

	*first = depth;
	for (size_t i = depth; i > 0 && !error; i--) {
		if (frames[path[i - 1]].flags & INCSTACK_OBJECT_VIRTUAL)
			error = incstack__pprof_chain(&writer->chains, id, path[i - 1], &id);
		else
			id = incstack__pprof_chain_single(path[i - 1]);
		if (i > 1 && frames[path[i - 2]].flags & INCSTACK_OBJECT_VIRTUAL)
			continue;
		writer->ids[--*first] = id;
		if (!error && incstack__pprof_chain_claim(&writer->chains, id))
			error = put_location(writer, id);
	}
	return error;
}

/* Writes a Label: key = 1, str = 2, num = 3, num_unit = 4. */
static int put_label(struct pprof_writer *writer, uint32_t frame, pb_ostream_t *sample)
{
	const struct incstack_profile *profile = writer->common.profile;
	const struct incstack__label *label =
		&profile->extra.labels[profile->frames[frame].function];
	pb_byte_t bytes[8 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));
	uint64_t key, text = 0, unit = 0;
	int error = incstack__pprof_put_name(&writer->put, label->key, &key);

	if (!error)
		error = incstack__pprof_put_name(&writer->put, label->text, &text);
	if (!error)
		error = incstack__pprof_put_name(&writer->put, label->unit, &unit);
	if (error)
		return error;
	(void)incstack__pprof_put_number(&stream, PPROF_LABEL_KEY, key);
	(void)incstack__pprof_put_number(&stream, PPROF_LABEL_TEXT, text);
	(void)incstack__pprof_put_number(&stream, PPROF_LABEL_NUMBER, label->number);
	(void)incstack__pprof_put_number(&stream, PPROF_LABEL_UNIT, unit);
	(void)pb_encode_tag(sample, PB_WT_STRING, PPROF_SAMPLE_LABEL);
	(void)pb_encode_string(sample, bytes, stream.bytes_written);
	return 0;
}

/* Returns how many frames of the path are labels. They come first, as the innermost frames. */
static size_t labels_of(const struct pprof_writer *writer, size_t depth)
{
	const struct incstack__frame *frames = writer->common.profile->frames;
	size_t labels = 0;

	while (labels < depth && frames[writer->path[labels]].flags & INCSTACK_PROFILE_LABEL)
		labels++;
	return labels;
}

/* Writes a Sample: location_id = 1, leaf first, and value = 2, both packed, label = 3. */
static int put_message(struct pprof_writer *writer, uint32_t node, size_t labels, size_t depth,
		       size_t first)
{
	const struct incstack_profile *profile = writer->common.profile;
	pb_ostream_t packed, message;
	size_t ids;
	int error = start(&writer->packed, &writer->packed_room,
			  (depth + profile->kinds) * INCSTACK__VARINT_MAX, &packed);

	if (!error)
		error = start(&writer->message, &writer->message_room,
			      (depth + profile->kinds + 4 + labels * 10) * INCSTACK__VARINT_MAX,
			      &message);
	if (error)
		return error;
	for (size_t i = first; i < depth; i++)
		(void)pb_encode_varint(&packed, writer->ids[i]);
	ids = packed.bytes_written;
	for (uint32_t k = 0; k < profile->kinds; k++)
		(void)pb_encode_varint(&packed, incstack__profile_self(profile, node, k));
	(void)pb_encode_tag(&message, PB_WT_STRING, PPROF_SAMPLE_LOCATION);
	(void)pb_encode_string(&message, writer->packed, ids);
	(void)pb_encode_tag(&message, PB_WT_STRING, PPROF_SAMPLE_VALUE);
	(void)pb_encode_string(&message, writer->packed + ids, packed.bytes_written - ids);
	while (labels && !error)
		error = put_label(writer, writer->path[--labels], &message);
	return error ? error
		     : incstack__pprof_put_field(&writer->put, PPROF_SAMPLE, writer->message,
						 message.bytes_written);
}

static int put_sample(struct pprof_writer *writer, uint32_t node)
{
	size_t depth, first, labels;
	int error = incstack__node_path(writer->common.profile, node, &writer->path,
					&writer->path_room, &depth);

	if (error)
		return error;
	labels = labels_of(writer, depth);
	depth -= labels;
	error = put_path(writer, writer->path + labels, depth, &first);
	return error ? error : put_message(writer, node, labels, depth, first);
}

static int add(struct incstack__profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);
	int error = put_tables(writer);

	for (uint32_t node = 1; node < common->profile->nodes_used && !error; node++)
		if (incstack__profile_weighs(common->profile, node))
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
	error = incstack__pprof_put_string(&writer->put, text, (size_t)length, &string);
	free(text);
	return error ? error : incstack__pprof_put_top_number(&writer->put, PPROF_COMMENT, string);
}

static int put_count(struct pprof_writer *writer, const char *key, uint64_t count)
{
	char digits[24];

	if (!count)
		return 0;
	(void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
	return put_comment(writer, key, digits);
}

static int put_extra(struct pprof_writer *writer)
{
	const struct incstack__extra *extra = &writer->common.profile->extra;
	uint64_t name, unit, string;
	int error = incstack__pprof_put_name(&writer->put, extra->period_name, &name);

	if (!error)
		error = incstack__pprof_put_name(&writer->put, extra->period_unit, &unit);
	if (!error && (name || unit))
		error = incstack__pprof_put_numbers(&writer->put, PPROF_PERIOD_TYPE, name, unit);
	if (!error)
		error = incstack__pprof_put_top_number(&writer->put, PPROF_PERIOD, extra->period);
	if (!error)
		error = incstack__pprof_put_name(&writer->put, extra->default_kind, &string);
	if (!error)
		error = incstack__pprof_put_top_number(&writer->put, PPROF_DEFAULT_TYPE, string);
	for (size_t i = 0; i < extra->comments_used && !error; i++) {
		error = incstack__pprof_put_name(&writer->put, extra->comments[i], &string);
		if (!error)
			error = incstack__pprof_put_top_number(&writer->put, PPROF_COMMENT, string);
	}
	return error;
}

static int finish(struct incstack__profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);
	const struct incstack_profile_meta *meta = &common->profile->meta;
	int error = incstack__pprof_put_top_number(&writer->put, PPROF_TIME, meta->time_ns);

	if (!error)
		error = incstack__pprof_put_top_number(&writer->put, PPROF_DURATION,
						       meta->duration_ns);
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
	return error ? error : incstack__deflater_finish(&writer->put.gzip);
}

static void release(struct incstack__profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);

	incstack__pprof_put_close(&writer->put);
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
