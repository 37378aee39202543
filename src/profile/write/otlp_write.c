/* SPDX-License-Identifier: MIT
 *
 * Writes profiles of OpenTelemetry (OTLP): a message with one dictionary, and one profile for each kind of weight.
 * A message contains its parts with their lengths, so all of it is in memory until the end.
 */
#include <stdlib.h>
#include <string.h>

#include <incstack/version.h>

#include "otlp_dictionary.h"
#include "pprof_threads.h"
#include "writer.h"

struct otlp_writer {
	struct incstack__profile_writer common;
	struct incstack__otlp_dictionary dictionary;
	struct incstack__pprof_threads threads;
	struct incstack__bytes samples[INCSTACK_PROFILE_KINDS_MAX]; /* of each kind */
	struct incstack__bytes message, inner;                      /* that are being made */
	uint32_t *path; /* of a node: its frames, innermost first */
	size_t path_room;
	uint32_t *attributes; /* of a sample */
	size_t attributes_room;
};

static struct otlp_writer *otlp_of(struct incstack__profile_writer *writer)
{
	return (struct otlp_writer *)(void *)writer;
}

static int begin(struct incstack__profile_writer *common)
{
	return incstack__otlp_open(&otlp_of(common)->dictionary, common->profile);
}

/* ---- samples ----------------------------------------------------------------------------- */

/* Adds a sample to the profile of each kind that has a weight. */
static int put_sample(struct otlp_writer *writer, uint32_t stack, size_t attributes,
		      const uint64_t *values)
{
	for (uint32_t k = 0; k < writer->common.profile->kinds; k++) {
		if (!values[k])
			continue;
		incstack__bytes_number(&writer->message, OTLP_SAMPLE_STACK, stack);
		for (size_t i = 0; i < attributes; i++)
			incstack__bytes_varint(&writer->inner, writer->attributes[i]);
		if (attributes)
			incstack__bytes_message(&writer->message, OTLP_SAMPLE_ATTRIBUTES,
						&writer->inner);
		incstack__bytes_varint(&writer->inner, values[k]);
		incstack__bytes_message(&writer->message, OTLP_SAMPLE_VALUES, &writer->inner);
		incstack__bytes_message(&writer->samples[k], OTLP_PROFILE_SAMPLES,
					&writer->message);
		if (writer->samples[k].error)
			return writer->samples[k].error;
	}
	return 0;
}

/* Returns how many frames of the path are labels. They come first, as the innermost frames. */
static size_t labels_of(const struct otlp_writer *writer, size_t depth)
{
	const struct incstack__frame *frames = writer->common.profile->frames;
	size_t labels = 0;

	while (labels < depth && frames[writer->path[labels]].flags & INCSTACK_PROFILE_LABEL)
		labels++;
	return labels;
}

static int find_attributes(struct otlp_writer *writer, size_t labels)
{
	const struct incstack__frame *frames = writer->common.profile->frames;
	int error = incstack__reserve((void **)&writer->attributes, &writer->attributes_room,
				      labels + 2, sizeof(*writer->attributes));

	for (size_t i = 0; i < labels && !error; i++)
		error = incstack__otlp_label(&writer->dictionary,
					     (uint32_t)frames[writer->path[i]].function,
					     &writer->attributes[labels - 1 - i]);
	return error;
}

/* Adds the sample that a thread has of a node. */
static int put_share(struct otlp_writer *writer, uint32_t stack, size_t labels,
		     const struct incstack__pprof_share *share)
{
	uint64_t values[INCSTACK_PROFILE_KINDS_MAX] = {0};
	const uint32_t *numbers;
	size_t attributes = labels;
	int error = incstack__otlp_thread(&writer->dictionary, share->thread, &numbers);

	for (int i = 0; i < 2 && !error; i++)
		if (numbers[i])
			writer->attributes[attributes++] = numbers[i];
	incstack__pprof_share_add(share, values);
	return error ? error : put_sample(writer, stack, attributes, values);
}

static int put_node(struct otlp_writer *writer, uint32_t node)
{
	const struct incstack_profile *profile = writer->common.profile;
	const struct incstack__pprof_share *shares;
	const size_t count = incstack__pprof_threads_of(&writer->threads, profile, node, &shares);
	size_t depth, labels;
	uint32_t stack;
	int error = incstack__node_path(profile, node, &writer->path, &writer->path_room, &depth);

	if (error)
		return error;
	labels = labels_of(writer, depth);
	error = incstack__otlp_stack(&writer->dictionary, writer->path + labels, depth - labels,
				     &stack);
	if (!error)
		error = find_attributes(writer, labels);
	if (!error && !count)
		error = put_sample(writer, stack, labels,
				   &profile->weights[(size_t)node * profile->kinds]);
	for (size_t i = 0; i < count && !error; i++)
		error = put_share(writer, stack, labels, &shares[i]);
	return error;
}

static int add(struct incstack__profile_writer *common)
{
	struct otlp_writer *writer = otlp_of(common);
	int error = incstack__otlp_mappings(&writer->dictionary);

	if (!error)
		error = incstack__pprof_threads_make(&writer->threads, common->profile);
	for (uint32_t node = 1; node < common->profile->nodes_used && !error; node++)
		if (incstack__profile_weighs(common->profile, node))
			error = put_node(writer, node);
	return error;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* Adds a type: the strings of its name and its unit. */
static void put_type(struct otlp_writer *writer, uint32_t field, uint32_t name, uint32_t unit)
{
	incstack__bytes_number(&writer->inner, OTLP_TYPE_NAME, name);
	incstack__bytes_number(&writer->inner, OTLP_TYPE_UNIT, unit);
	incstack__bytes_message(&writer->message, field, &writer->inner);
}

/* Adds the profile of a kind to the profiles of the scope. */
static int put_profile(struct otlp_writer *writer, uint32_t kind, struct incstack__bytes *scope)
{
	const struct incstack_profile *profile = writer->common.profile;
	struct incstack__otlp_dictionary *d = &writer->dictionary;
	uint32_t name, unit, period_name, period_unit;
	int error = incstack__otlp_name(d, profile->kind_name[kind] + 1, &name);

	if (!error)
		error = incstack__otlp_name(d, profile->kind_unit[kind] + 1, &unit);
	if (!error)
		error = incstack__otlp_name(d, profile->extra.period_name, &period_name);
	if (!error)
		error = incstack__otlp_name(d, profile->extra.period_unit, &period_unit);
	if (error)
		return error;
	put_type(writer, OTLP_PROFILE_TYPE, name, unit);
	incstack__bytes_fixed(&writer->message, OTLP_PROFILE_TIME, profile->meta.time_ns);
	incstack__bytes_number(&writer->message, OTLP_PROFILE_DURATION, profile->meta.duration_ns);
	if (period_name || period_unit)
		put_type(writer, OTLP_PROFILE_PERIOD_TYPE, period_name, period_unit);
	incstack__bytes_number(&writer->message, OTLP_PROFILE_PERIOD, profile->extra.period);
	incstack__bytes_add(&writer->message, writer->samples[kind].at, writer->samples[kind].used);
	incstack__bytes_free(&writer->samples[kind]);
	incstack__bytes_message(scope, OTLP_PROFILES, &writer->message);
	return scope->error;
}

/* Adds an attribute of the scope, unless the text is null and the number is 0. */
static void put_meta(struct otlp_writer *writer, const char *key, const char *text, uint64_t number)
{
	struct incstack__bytes pair = {0};

	if (!text && !number)
		return;
	if (text)
		incstack__bytes_field(&writer->inner, OTLP_ANY_STRING, text, strlen(text));
	else
		incstack__bytes_number(&writer->inner, OTLP_ANY_NUMBER, number);
	incstack__bytes_field(&pair, OTLP_KEY, key, strlen(key));
	incstack__bytes_message(&pair, OTLP_VALUE, &writer->inner);
	incstack__bytes_message(&writer->message, OTLP_SCOPE_ATTRIBUTES, &pair);
	incstack__bytes_free(&pair);
}

/* Adds the scope: what has made the profile, and the meta data that OTLP has no fields for. */
static void put_scope(struct otlp_writer *writer, struct incstack__bytes *scope)
{
	const struct incstack_profile_meta *meta = &writer->common.profile->meta;
	char version[32];

	(void)snprintf(version, sizeof(version), "%d.%d.%d", INCSTACK_VERSION_MAJOR,
		       INCSTACK_VERSION_MINOR, INCSTACK_VERSION_PATCH);
	incstack__bytes_field(&writer->message, OTLP_SCOPE_NAME, "incstack", 8);
	incstack__bytes_field(&writer->message, OTLP_SCOPE_VERSION, version, strlen(version));
	put_meta(writer, "program", meta->program, 0);
	put_meta(writer, "mode", meta->mode, 0);
	put_meta(writer, "lost", NULL, meta->lost);
	put_meta(writer, "truncated", NULL, meta->truncated);
	put_meta(writer, "pruned", NULL, meta->pruned);
	incstack__bytes_message(scope, OTLP_SCOPE, &writer->message);
}

/* Writes a field of the outermost message. */
static int write_field(uint32_t field, struct incstack__bytes *content, FILE *stream)
{
	struct incstack__bytes head = {0};
	int error = content->error;

	incstack__bytes_varint(&head, (uint64_t)field << 3 | 2);
	incstack__bytes_varint(&head, content->used);
	if (!error)
		error = head.error;
	if (!error && (fwrite(head.at, 1, head.used, stream) != head.used ||
		       fwrite(content->at, 1, content->used, stream) != content->used))
		error = INCSTACK_EIO;
	incstack__bytes_free(&head);
	return error;
}

static int finish(struct incstack__profile_writer *common)
{
	struct otlp_writer *writer = otlp_of(common);
	struct incstack__bytes scope = {0}, resource = {0};
	int error = 0;

	put_scope(writer, &scope);
	for (uint32_t k = 0; k < common->profile->kinds && !error; k++)
		error = put_profile(writer, k, &scope);
	incstack__bytes_message(&resource, OTLP_SCOPE_PROFILES, &scope);
	incstack__bytes_free(&scope);
	if (!error)
		error = write_field(OTLP_RESOURCE_PROFILES, &resource, common->stream);
	incstack__bytes_free(&resource);
	return error ? error
		     : write_field(OTLP_DICTIONARY, &writer->dictionary.message, common->stream);
}

static void release(struct incstack__profile_writer *common)
{
	struct otlp_writer *writer = otlp_of(common);

	incstack__otlp_close(&writer->dictionary);
	incstack__pprof_threads_free(&writer->threads);
	for (int k = 0; k < INCSTACK_PROFILE_KINDS_MAX; k++)
		incstack__bytes_free(&writer->samples[k]);
	incstack__bytes_free(&writer->message);
	incstack__bytes_free(&writer->inner);
	free(writer->path);
	free(writer->attributes);
}

const struct incstack__writer_ops incstack__write_otlp = {
	.size = sizeof(struct otlp_writer),
	.begin = begin,
	.add = add,
	.finish = finish,
	.release = release,
};
