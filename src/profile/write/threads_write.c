/* SPDX-License-Identifier: MIT
 *
 * Writes the threads of a timeline in the Firefox Profiler's processed format. Each has its own
 * tables, which contain only what its samples need.
 */
#include <stdlib.h>
#include <string.h>

#include "firefox_thread.h"
#include "writer.h"
#include "profile/timeline.h"

/* Maps nodes, frames or names of files to their numbers in a table of the thread, plus 1, and back.
 * 0: not in the table. Each frame is also a function of the thread. */
struct map {
	uint32_t *number, *back;
	uint32_t used;
};

struct tables {
	const struct incstack_profile *profile;
	FILE *stream;
	struct map stacks, frames, files;
};

static int map_make(struct map *map, size_t size)
{
	map->number = calloc(size + 1, sizeof(*map->number));
	map->back = calloc(size + 1, sizeof(*map->back));
	return map->number && map->back ? 0 : INCSTACK_ENOMEM;
}

static void map_clear(struct map *map)
{
	for (uint32_t i = 0; i < map->used; i++)
		map->number[map->back[i]] = 0;
	map->used = 0;
}

static void map_free(struct map *map)
{
	free(map->number);
	free(map->back);
}

static uint32_t map_add(struct map *map, uint32_t what)
{
	if (!map->number[what]) {
		map->back[map->used++] = what;
		map->number[what] = map->used;
	}
	return map->number[what] - 1;
}

/* Adds a node and its callers, which get smaller numbers. The nodes that are not in the table yet
 * are appended to stacks->back, innermost first, and then reversed. */
static void add_stack(struct tables *tables, uint32_t node)
{
	const struct incstack__node *nodes = tables->profile->nodes;
	struct map *stacks = &tables->stacks;
	uint32_t first = stacks->used, count = 0;

	for (uint32_t n = node; n != INCSTACK_PROFILE_ROOT && !stacks->number[n];
	     n = nodes[n].parent)
		stacks->back[first + count++] = n;
	for (uint32_t i = 0; i < count / 2; i++) {
		uint32_t other = stacks->back[first + i];

		stacks->back[first + i] = stacks->back[first + count - 1 - i];
		stacks->back[first + count - 1 - i] = other;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = stacks->back[first + i], file;

		stacks->number[n] = ++stacks->used;
		(void)map_add(&tables->frames, nodes[n].frame);
		file = tables->profile->frames[nodes[n].frame].file;
		if (file)
			(void)map_add(&tables->files, file - 1);
	}
}

static void put_comma(uint32_t i, FILE *stream)
{
	if (i)
		putc_unlocked(',', stream);
}

static void put_samples(const struct tables *tables, const struct incstack__timeline_thread *thread,
			uint64_t start)
{
	const struct incstack__profile_sample *samples =
		tables->profile->timeline->samples + thread->first;
	const char *unit = incstack__text(tables->profile, tables->profile->kind_unit[0]);
	FILE *stream = tables->stream;

	fprintf(stream, ",\n\"samples\":{\"length\":%zu,\"weightType\":\"%s\",\"stack\":[",
		thread->count, incstack__firefox_weight_type(unit));
	for (uint32_t i = 0; i < thread->count; i++) {
		put_comma(i, stream);
		incstack__json_number(tables->stacks.number[samples[i].node] - 1, stream);
	}
	fputs("],\"weight\":[", stream);
	for (uint32_t i = 0; i < thread->count; i++) {
		put_comma(i, stream);
		incstack__firefox_weight(unit, samples[i].weight, stream);
	}
	fputs("],\"time\":[", stream);
	for (uint32_t i = 0; i < thread->count; i++) {
		put_comma(i, stream);
		fprintf(stream, "%.6f", (double)(samples[i].time_ns - start) / 1e6);
	}
	fputs("]}", stream);
}

static void put_stacks(const struct tables *tables)
{
	const struct incstack__node *nodes = tables->profile->nodes;
	const struct map *stacks = &tables->stacks;
	FILE *stream = tables->stream;

	fprintf(stream, ",\n\"stackTable\":{\"length\":%u,\"frame\":[", stacks->used);
	for (uint32_t i = 0; i < stacks->used; i++) {
		put_comma(i, stream);
		incstack__json_number(tables->frames.number[nodes[stacks->back[i]].frame] - 1,
				      stream);
	}
	fputs("],\"prefix\":[", stream);
	for (uint32_t i = 0; i < stacks->used; i++) {
		uint32_t parent = nodes[stacks->back[i]].parent;

		put_comma(i, stream);
		if (parent == INCSTACK_PROFILE_ROOT)
			fputs("null", stream);
		else
			incstack__json_number(stacks->number[parent] - 1, stream);
	}
	fputs("]}", stream);
}

static void put_frames(const struct tables *tables)
{
	uint32_t rows = tables->frames.used;
	FILE *stream = tables->stream;

	fprintf(stream, ",\n\"frameTable\":{\"length\":%u", rows);
	incstack__json_counting("func", rows, stream);
	incstack__firefox_frames(tables->profile, tables->frames.back, rows, stream);
}

/* The strings are the names of the functions, then those of the files, then those of the modules. */
static void put_functions(const struct tables *tables)
{
	const struct incstack_profile *profile = tables->profile;
	uint32_t rows = tables->frames.used;
	FILE *stream = tables->stream;

	fprintf(stream, ",\n\"funcTable\":{\"length\":%u", rows);
	incstack__json_counting("name", rows, stream);
	fputs(",\"fileName\":[", stream);
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t file = profile->frames[tables->frames.back[i]].file;

		put_comma(i, stream);
		if (file)
			incstack__json_number(rows + tables->files.number[file - 1] - 1, stream);
		else
			fputs("null", stream);
	}
	fputs("],\"resource\":[", stream);
	for (uint32_t i = 0; i < rows; i++)
		incstack__firefox_resource(profile, tables->frames.back[i], i, stream);
	putc_unlocked(']', stream);
	incstack__firefox_functions(rows, stream);
	fputs(",\n\"stringArray\":[", stream);
	for (uint32_t i = 0; i < rows; i++) {
		put_comma(i, stream);
		incstack__json_frame(profile, tables->frames.back[i], stream);
	}
	for (uint32_t i = 0; i < tables->files.used; i++) {
		const struct incstack__name *name = &profile->names[tables->files.back[i]];

		put_comma(rows + i, stream);
		incstack__json_text(profile->texts + name->offset, name->length, stream);
	}
	incstack__firefox_lib_names(profile, stream);
	putc_unlocked(']', stream);
}

/* Writes what the profiler shows about a thread. The name in the file is that of the thread. So the
 * kind of weight is in fields of its own, which only our own reader looks for. */
static void put_head(const struct tables *tables, const struct incstack__timeline_thread *thread,
		     int is_first)
{
	const struct incstack_profile *profile = tables->profile;
	const struct incstack__name *name = &profile->names[thread->name];
	struct incstack_profile_kind kind = {"", ""};
	FILE *stream = tables->stream;

	(void)incstack_profile_kind(profile, 0, &kind);
	fputs(is_first ? "\n{\"name\":" : ",\n{\"name\":", stream);
	incstack__json_text(profile->texts + name->offset, name->length, stream);
	fputs(",\"kind\":", stream);
	incstack__json_string(kind.name, stream);
	fputs(",\"kindUnit\":", stream);
	incstack__json_string(kind.unit, stream);
	incstack__firefox_head(is_first, thread->id, stream);
}

static void put_thread(struct tables *tables, const struct incstack__timeline_thread *thread,
		       uint64_t start, int is_first)
{
	const struct incstack__timeline *timeline = tables->profile->timeline;

	map_clear(&tables->stacks);
	map_clear(&tables->frames);
	map_clear(&tables->files);
	for (size_t i = 0; i < thread->count; i++)
		add_stack(tables, timeline->samples[thread->first + i].node);
	put_head(tables, thread, is_first);
	put_samples(tables, thread, start);
	put_stacks(tables);
	put_frames(tables);
	put_functions(tables);
	incstack__firefox_end(tables->profile, tables->frames.used + tables->files.used,
			      tables->stream);
}

static uint64_t first_time(const struct incstack__timeline *timeline)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < timeline->sample_count; i++)
		if (timeline->samples[i].time_ns < first)
			first = timeline->samples[i].time_ns;
	return first;
}

int incstack__write_threads(const struct incstack_profile *profile, FILE *stream)
{
	const struct incstack__timeline *timeline = profile->timeline;
	struct tables tables = {.profile = profile, .stream = stream};
	const uint64_t start = first_time(timeline);
	int is_first = 1;
	int error = map_make(&tables.stacks, profile->nodes_used);

	if (!error)
		error = map_make(&tables.frames, profile->frames_used);
	if (!error)
		error = map_make(&tables.files, profile->names_used);
	for (size_t i = 0; i < timeline->thread_count && !error; i++) {
		if (!timeline->threads[i].count)
			continue;
		put_thread(&tables, &timeline->threads[i], start, is_first);
		is_first = 0;
	}
	map_free(&tables.stacks);
	map_free(&tables.frames);
	map_free(&tables.files);
	return error;
}
