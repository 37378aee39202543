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

#include "profile/pprof.h"
#include "pprof_code.h"
#include "pprof_put.h"
#include "pprof_threads.h"
#include "writer.h"

struct pprof_writer {
	struct incstack__profile_writer common;
	struct incstack__pprof_put put;
	struct incstack__pprof_code code;
	struct incstack__pprof_threads threads;
	uint32_t *path; /* of a node: its frames, innermost first */
	size_t path_room;
	pb_byte_t *message, *packed; /* sized for the longest message, so encoding cannot fail */
	size_t message_room, packed_room;
};

static struct pprof_writer *pprof_of(struct incstack__profile_writer *writer)
{
	return (struct pprof_writer *)(void *)writer;
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
		error = incstack__pprof_code_init(&writer->code, &writer->put);
	if (!error)
		error = incstack__pprof_put_string(&writer->put, "", 0, &empty);
	for (uint32_t k = 0; k < common->profile->kinds && !error; k++)
		error = put_kind(writer, k);
	return error;
}

/* A label, in strings of the file. */
struct label {
	uint64_t key, text, number, unit;
};

/* A sample that is to be written. */
struct sample {
	const uint32_t *labels; /* frames; the innermost one is the last label */
	size_t label_count;
	size_t first, depth;    /* the identifiers of the locations: code.ids[first..depth) */
	const uint64_t *values; /* one number for each kind */
	const struct incstack__pprof_share *share; /* whose thread is a label; or null */
};

/* Writes a Label: key = 1, str = 2, num = 3, num_unit = 4. */
static void put_label(const struct label *label, pb_ostream_t *sample)
{
	pb_byte_t bytes[8 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));

	(void)incstack__pprof_put_number(&stream, PPROF_LABEL_KEY, label->key);
	(void)incstack__pprof_put_number(&stream, PPROF_LABEL_TEXT, label->text);
	(void)incstack__pprof_put_number(&stream, PPROF_LABEL_NUMBER, label->number);
	(void)incstack__pprof_put_number(&stream, PPROF_LABEL_UNIT, label->unit);
	(void)pb_encode_tag(sample, PB_WT_STRING, PPROF_SAMPLE_LABEL);
	(void)pb_encode_string(sample, bytes, stream.bytes_written);
}

static int put_frame_label(struct pprof_writer *writer, uint32_t frame, pb_ostream_t *sample)
{
	const struct incstack_profile *profile = writer->common.profile;
	const struct incstack__label *from =
		&profile->extra.labels[profile->frames[frame].function];
	struct label label = {.number = from->number};
	int error = incstack__pprof_put_name(&writer->put, from->key, &label.key);

	if (!error)
		error = incstack__pprof_put_name(&writer->put, from->text, &label.text);
	if (!error)
		error = incstack__pprof_put_name(&writer->put, from->unit, &label.unit);
	if (!error)
		put_label(&label, sample);
	return error;
}

/* Writes the strings of the keys once. */
static int put_keys(struct pprof_writer *writer)
{
	uint64_t *keys = writer->threads.keys;
	int error;

	if (keys[0])
		return 0;
	error = incstack__pprof_put_string(&writer->put, "thread", 6, &keys[0]);
	return error ? error : incstack__pprof_put_string(&writer->put, "tid", 3, &keys[1]);
}

static int put_thread(struct pprof_writer *writer, uint32_t number, pb_ostream_t *sample)
{
	const struct incstack__timeline_thread *thread =
		&writer->common.profile->timeline->threads[number];
	struct label name = {0}, id = {.number = thread->id};
	int error = put_keys(writer);

	name.key = writer->threads.keys[0];
	id.key = writer->threads.keys[1];
	if (!error)
		error = incstack__pprof_put_name(&writer->put, thread->name + 1, &name.text);
	if (error)
		return error;
	if (writer->common.profile->names[thread->name].length)
		put_label(&name, sample);
	if (thread->id)
		put_label(&id, sample);
	return 0;
}

static int put_labels(struct pprof_writer *writer, const struct sample *sample,
		      pb_ostream_t *message)
{
	int error = 0;

	for (size_t i = sample->label_count; i > 0 && !error; i--)
		error = put_frame_label(writer, sample->labels[i - 1], message);
	if (!error && sample->share)
		error = put_thread(writer, sample->share->thread, message);
	return error;
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
static int put_message(struct pprof_writer *writer, const struct sample *sample)
{
	const size_t numbers = sample->depth + writer->common.profile->kinds;
	pb_ostream_t packed, message;
	size_t ids;
	int error = incstack__pprof_put_start(&writer->packed, &writer->packed_room,
					      numbers * INCSTACK__VARINT_MAX, &packed);

	if (!error)
		error = incstack__pprof_put_start(&writer->message, &writer->message_room,
						  (numbers + 4 + (sample->label_count + 2) * 10) *
							  INCSTACK__VARINT_MAX,
						  &message);
	if (error)
		return error;
	for (size_t i = sample->first; i < sample->depth; i++)
		(void)pb_encode_varint(&packed, writer->code.ids[i]);
	ids = packed.bytes_written;
	for (uint32_t k = 0; k < writer->common.profile->kinds; k++)
		(void)pb_encode_varint(&packed, sample->values[k]);
	(void)pb_encode_tag(&message, PB_WT_STRING, PPROF_SAMPLE_LOCATION);
	(void)pb_encode_string(&message, writer->packed, ids);
	(void)pb_encode_tag(&message, PB_WT_STRING, PPROF_SAMPLE_VALUE);
	(void)pb_encode_string(&message, writer->packed + ids, packed.bytes_written - ids);
	error = put_labels(writer, sample, &message);
	return error ? error
		     : incstack__pprof_put_field(&writer->put, PPROF_SAMPLE, writer->message,
						 message.bytes_written);
}

/* Writes the samples of a node: one for each thread, or one. */
static int put_samples(struct pprof_writer *writer, uint32_t node)
{
	const struct incstack_profile *profile = writer->common.profile;
	const struct incstack__pprof_share *shares;
	const size_t count = incstack__pprof_threads_of(&writer->threads, profile, node, &shares);
	struct sample sample = {.values = profile->weights + (size_t)node * profile->kinds};
	int error = incstack__node_path(profile, node, &writer->path, &writer->path_room,
					&sample.depth);

	if (error)
		return error;
	sample.label_count = labels_of(writer, sample.depth);
	sample.depth -= sample.label_count;
	sample.labels = writer->path;
	error = incstack__pprof_code_path(&writer->code, writer->path + sample.label_count,
					  sample.depth, &sample.first);
	if (!error && !count)
		error = put_message(writer, &sample);
	for (size_t i = 0; i < count && !error; i++) {
		uint64_t values[INCSTACK_PROFILE_KINDS_MAX] = {0};

		incstack__pprof_share_add(&shares[i], values);
		sample.share = &shares[i];
		sample.values = values;
		error = put_message(writer, &sample);
	}
	return error;
}

static int add(struct incstack__profile_writer *common)
{
	struct pprof_writer *writer = pprof_of(common);
	int error = incstack__pprof_code_tables(&writer->code);

	if (!error)
		error = incstack__pprof_threads_make(&writer->threads, common->profile);
	for (uint32_t node = 1; node < common->profile->nodes_used && !error; node++)
		if (incstack__profile_weighs(common->profile, node))
			error = put_samples(writer, node);
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
	incstack__pprof_code_free(&writer->code);
	incstack__pprof_threads_free(&writer->threads);
	free(writer->path);
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
