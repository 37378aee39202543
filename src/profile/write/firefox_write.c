/* SPDX-License-Identifier: MIT
 *
 * Writes the Firefox Profiler's processed format, version 55. A profile with a timeline has the
 * threads of the timeline. Any other has a thread for each kind, because a thread has one kind of
 * weight. A table is several arrays. Those that grow with the contexts are kept in temporary files.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "firefox_thread.h"
#include "function_set.h"
#include "writer.h"

struct firefox_writer {
	struct incstack__profile_writer common;
	struct incstack__column frame, prefix; /* of the stack table */
	struct incstack__function_set set;
	struct incstack__column stack[INCSTACK_PROFILE_KINDS_MAX];
	struct incstack__column weight[INCSTACK_PROFILE_KINDS_MAX];
};

static struct firefox_writer *firefox_of(struct incstack__profile_writer *writer)
{
	return (struct firefox_writer *)(void *)writer;
}

static int begin(struct incstack__profile_writer *common)
{
	struct firefox_writer *writer = firefox_of(common);
	int error = incstack__function_set_init(&writer->set);

	if (!error)
		error = incstack__column_open(&writer->frame);
	if (!error)
		error = incstack__column_open(&writer->prefix);
	for (uint32_t k = 0; k < common->profile->kinds && !error; k++) {
		error = incstack__column_open(&writer->stack[k]);
		if (!error)
			error = incstack__column_open(&writer->weight[k]);
	}
	return error;
}

static void add_node(struct firefox_writer *writer, uint32_t node, uint64_t base)
{
	const struct incstack_profile *profile = writer->common.profile;
	uint32_t parent = profile->nodes[node].parent;

	incstack__column_number(&writer->frame, profile->nodes[node].frame);
	if (parent == INCSTACK_PROFILE_ROOT)
		incstack__column_null(&writer->prefix);
	else
		incstack__column_number(&writer->prefix, base + parent - 1);
	for (uint32_t k = 0; k < profile->kinds; k++) {
		uint64_t weight = incstack__profile_self(profile, node, k);

		if (!weight)
			continue;
		incstack__column_number(&writer->stack[k], base + node - 1);
		incstack__column_next(&writer->weight[k]);
		incstack__firefox_weight(incstack__text(profile, profile->kind_unit[k]), weight,
					 writer->weight[k].file);
	}
}

static int add(struct incstack__profile_writer *common)
{
	struct firefox_writer *writer = firefox_of(common);
	uint64_t base = writer->frame.count;

	for (uint32_t node = 1; node < common->profile->nodes_used; node++)
		add_node(writer, node, base);
	return ferror(writer->frame.file) || ferror(writer->prefix.file) ? INCSTACK_EIO : 0;
}

static int put_samples(struct firefox_writer *writer, uint32_t k, const char *unit, FILE *stream)
{
	uint64_t rows = writer->stack[k].count;
	int error;

	fprintf(stream, ",\n\"samples\":{\"length\":%" PRIu64 ",\"weightType\":\"%s\",\"stack\":[",
		rows, incstack__firefox_weight_type(unit));
	error = incstack__column_copy(&writer->stack[k], stream);
	fputs("],\"weight\":[", stream);
	if (!error)
		error = incstack__column_copy(&writer->weight[k], stream);
	putc_unlocked(']', stream);
	incstack__json_counting("time", rows, stream);
	putc_unlocked('}', stream);
	return error;
}

static int put_stacks(struct firefox_writer *writer, FILE *stream)
{
	int error;

	fprintf(stream, ",\n\"stackTable\":{\"length\":%" PRIu64 ",\"frame\":[",
		writer->frame.count);
	error = incstack__column_copy(&writer->frame, stream);
	fputs("],\"prefix\":[", stream);
	if (!error)
		error = incstack__column_copy(&writer->prefix, stream);
	fputs("]}", stream);
	return error;
}

static int put_frames(struct firefox_writer *writer, FILE *stream)
{
	const struct incstack_profile *profile = writer->common.profile;
	uint64_t rows = profile->frames_used;

	fprintf(stream, ",\n\"frameTable\":{\"length\":%" PRIu64 ",\"func\":[", rows);
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t function;
		int error = incstack__function_of(&writer->set, profile, i, &function);

		if (error)
			return error;
		if (i)
			putc_unlocked(',', stream);
		incstack__json_number(function, stream);
	}
	putc_unlocked(']', stream);
	incstack__firefox_frames(profile, NULL, rows, stream);
	return 0;
}

/* Writes the names, then the texts of frames without a name, then the names of modules. Returns the number of the
 * first of these. */
static uint64_t put_strings(const struct incstack_profile *profile, FILE *stream)
{
	uint64_t rows = profile->names_used;

	fputs(",\n\"stringArray\":[", stream);
	for (size_t i = 0; i < profile->names_used; i++) {
		const struct incstack__name *name = &profile->names[i];

		fputs(i ? ",\n" : "\n", stream);
		incstack__json_text(profile->texts + name->offset, name->length, stream);
	}
	for (uint32_t i = 0; i < profile->frames_used; i++)
		if (profile->frames[i].name == INCSTACK__NONE) {
			fputs(rows++ ? ",\n" : "\n", stream);
			incstack__json_frame(profile, i, stream);
		}
	incstack__firefox_lib_names(profile, stream);
	putc_unlocked(']', stream);
	return rows;
}

/* Writes the functions. They are numbered in the order of their first frames, and so are the
 * texts of frames without a name. */
static void put_functions(const struct firefox_writer *writer, FILE *stream)
{
	const struct incstack_profile *profile = writer->common.profile;
	uint64_t rows = writer->set.used, unnamed = profile->names_used;

	fprintf(stream, ",\n\"funcTable\":{\"length\":%" PRIu64 ",\"name\":[", rows);
	for (size_t i = 0; i < rows; i++) {
		uint32_t name = profile->frames[writer->set.functions[i].frame].name;

		fputs(i ? "," : "", stream);
		incstack__json_number(name == INCSTACK__NONE ? unnamed++ : name, stream);
	}
	fputs("],\"fileName\":[", stream);
	for (size_t i = 0; i < rows; i++) {
		uint32_t file = profile->frames[writer->set.functions[i].frame].file;

		fputs(i ? "," : "", stream);
		if (file)
			incstack__json_number(file - 1, stream);
		else
			fputs("null", stream);
	}
	fputs("],\"resource\":[", stream);
	for (size_t i = 0; i < rows; i++)
		incstack__firefox_resource(profile, writer->set.functions[i].frame, i, stream);
	putc_unlocked(']', stream);
	incstack__firefox_functions(rows, stream);
}

static int put_thread(struct firefox_writer *writer, uint32_t k)
{
	const struct incstack_profile *profile = writer->common.profile;
	struct incstack_profile_kind kind = {"", ""};
	FILE *stream = writer->common.stream;
	uint64_t names;
	int error;

	(void)incstack_profile_kind(profile, k, &kind);
	fputs(k ? ",\n{\"name\":" : "\n{\"name\":", stream);
	incstack__json_string(kind.name, stream);
	fputs(",\"kindUnit\":", stream);
	incstack__json_string(kind.unit, stream);
	incstack__firefox_head(k == 0, k + 1, stream);
	error = put_samples(writer, k, kind.unit, stream);
	if (!error)
		error = put_stacks(writer, stream);
	if (!error)
		error = put_frames(writer, stream);
	names = put_strings(profile, stream);
	put_functions(writer, stream);
	incstack__firefox_end(profile, names, stream);
	return error;
}

/* Returns the interval between samples, or 1, which the profiler needs where there is none. */
static double interval_ms(const struct incstack_profile *profile)
{
	const struct incstack__extra *extra = &profile->extra;
	const char *unit =
		extra->period_unit ? incstack__text(profile, extra->period_unit - 1) : "";

	return extra->period && !strcmp(unit, "nanoseconds") ? (double)extra->period / 1e6 : 1;
}

static int finish(struct incstack__profile_writer *common)
{
	const struct incstack_profile *profile = common->profile;
	FILE *stream = common->stream;
	int error = 0;

	fputs("{\"meta\":{\"version\":31,\"preprocessedProfileVersion\":55,"
	      "\"processType\":0,\"stackwalk\":1,\"symbolicated\":true,\"debug\":false,"
	      "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\","
	      "\"subcategories\":[\"Other\"]}],\"markerSchema\":[],\"product\":",
	      stream);
	incstack__json_string(profile->meta.program ? profile->meta.program : "profile", stream);
	fprintf(stream, ",\"interval\":%.6f,\"startTime\":%.3f,\n\"incstack\":{",
		interval_ms(profile), (double)profile->meta.time_ns / 1e6);
	incstack__json_meta(profile, stream);
	fputs("}},\n", stream);
	incstack__firefox_libs(profile, stream);
	fputs(",\"pages\":[],\"threads\":[", stream);
	if (profile->timeline)
		error = incstack__write_threads(profile, stream);
	for (uint32_t k = 0; k < profile->kinds && !error && !profile->timeline; k++)
		error = put_thread(firefox_of(common), k);
	fputs("]}\n", stream);
	return error;
}

static void release(struct incstack__profile_writer *common)
{
	struct firefox_writer *writer = firefox_of(common);

	incstack__function_set_free(&writer->set);
	incstack__column_close(&writer->frame);
	incstack__column_close(&writer->prefix);
	for (uint32_t k = 0; k < INCSTACK_PROFILE_KINDS_MAX; k++) {
		incstack__column_close(&writer->stack[k]);
		incstack__column_close(&writer->weight[k]);
	}
}

const struct incstack__writer_ops incstack__write_firefox = {
	.size = sizeof(struct firefox_writer),
	.begin = begin,
	.add = add,
	.finish = finish,
	.release = release,
};
