/* SPDX-License-Identifier: MIT
 *
 * Writes the flame graph: the page, with the boxes of the profile put into it. If there are too many, the
 * smallest are left out. Those below one box are one box in the page, so that no function gets their weight.
 * What functions have there is added up by function, so that the page can state sums that are true.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "writer.h"
#include "profile/analysis.h"

extern const char incstack__flame_page[], incstack__flame_page_end[];

/* The weights of the boxes of a function that are left out. */
struct left_out {
	uint64_t own[INCSTACK_PROFILE_KINDS_MAX], total[INCSTACK_PROFILE_KINDS_MAX];
	uint32_t frame;
};

struct page {
	const struct incstack_profile *profile;
	FILE *stream;
	bool difference, written;
	struct incstack__boxes boxes;
	uint32_t *number; /* of each box in the page; the root is 0 */
	uint32_t *name;   /* of each function in the page, plus one; 0: none yet */
	uint32_t *frames; /* of each name in the page */
	uint32_t names, nodes;
	uint64_t hidden;
};

struct html_writer {
	struct incstack__profile_writer common;
	struct page page;
};

static void put_numbers(const struct page *page, const uint64_t *numbers)
{
	for (uint32_t k = 0; k < page->boxes.kinds; k++) {
		if (k)
			putc_unlocked(',', page->stream);
		incstack__json_number(numbers[k], page->stream);
	}
}

/* Returns the number of the name in the page. Names are numbered in the order of their first use. */
static uint32_t name_of(struct page *page, uint32_t function, uint32_t frame)
{
	if (!page->name[function]) {
		page->frames[page->names] = frame;
		page->name[function] = ++page->names;
	}
	return page->name[function] - 1;
}

/* A frame of the page is inlined, whatever else it is. */
static uint32_t kind_of(const struct incstack__frame *frame)
{
	return frame->flags & INCSTACK_OBJECT_VIRTUAL ? INCSTACK_KIND_INLINED : frame->kind;
}

/* Writes [parent, name, kind, total...]. */
static void put_node(struct page *page, size_t i)
{
	const struct incstack__box *box = &page->boxes.box[i];

	fprintf(page->stream, "%s[%u,%u,%u,", page->nodes ? ",\n" : "\n", page->number[box->parent],
		name_of(page, box->function, box->frame),
		kind_of(&page->profile->frames[box->frame]));
	put_numbers(page, page->boxes.total + i * page->boxes.kinds);
	putc_unlocked(']', page->stream);
	page->number[i] = ++page->nodes;
}

static void put_nodes(struct page *page)
{
	for (size_t i = 1; i < page->boxes.count; i++)
		if (page->boxes.box[i].is_kept)
			put_node(page, i);
}

/* Whether the box is left out. One without any weight is nothing that could be shown. */
static bool is_left_out(const struct page *page, size_t i)
{
	const uint64_t *total = page->boxes.total + i * page->boxes.kinds;

	for (uint32_t k = 0; k < page->boxes.kinds; k++)
		if (total[k])
			return !page->boxes.box[i].is_kept;
	return false;
}

static void add_numbers(const struct page *page, uint64_t *sum, const uint64_t *numbers)
{
	for (uint32_t k = 0; k < page->boxes.kinds; k++)
		sum[k] += numbers[k];
}

/* Writes [node, count, total...] for each node below which boxes are left out. */
static int put_rests(struct page *page)
{
	const struct incstack__boxes *boxes = &page->boxes;
	uint64_t *sums = calloc((size_t)boxes->count * boxes->kinds, sizeof(*sums));
	uint32_t *counts = calloc(boxes->count, sizeof(*counts));
	bool first = true;

	for (size_t i = boxes->count; sums && counts && i-- > 1;) {
		uint32_t parent = boxes->box[i].parent;

		if (!is_left_out(page, i))
			continue;
		page->hidden++;
		counts[parent] += counts[i] + 1;
		if (boxes->box[parent].is_kept)
			add_numbers(page, sums + parent * boxes->kinds,
				    boxes->total + i * boxes->kinds);
	}
	for (size_t i = 0; sums && counts && i < boxes->count; i++) {
		if (!boxes->box[i].is_kept || !counts[i])
			continue;
		fprintf(page->stream, "%s[%u,%u,", first ? "\n" : ",\n", page->number[i],
			counts[i]);
		put_numbers(page, sums + i * boxes->kinds);
		putc_unlocked(']', page->stream);
		first = false;
	}
	free(sums);
	free(counts);
	return sums && counts ? 0 : INCSTACK_ENOMEM;
}

static void add_left_out(const struct page *page, const bool *inside, struct left_out *all)
{
	const struct incstack__boxes *boxes = &page->boxes;

	for (size_t i = 1; i < boxes->count; i++) {
		struct left_out *sum = &all[boxes->box[i].function];

		if (!is_left_out(page, i))
			continue;
		sum->frame = boxes->box[i].frame;
		add_numbers(page, sum->own, boxes->own + i * boxes->kinds);
		if (!inside[i])
			add_numbers(page, sum->total, boxes->total + i * boxes->kinds);
	}
}

static bool is_zero(const uint64_t *numbers, uint32_t count)
{
	while (count && !numbers[count - 1])
		count--;
	return !count;
}

static int sum_left_out(const struct page *page, size_t functions, struct left_out *all)
{
	bool *inside = calloc(page->boxes.count, sizeof(*inside));
	int error = INCSTACK_ENOMEM;

	if (inside)
		error = incstack__boxes_inside_themselves(&page->boxes, functions, inside);
	if (!error)
		add_left_out(page, inside, all);
	free(inside);
	return error;
}

/* Writes [name, own..., total...] for each function with boxes that are left out. */
static int put_left_out(struct page *page, size_t functions)
{
	struct left_out *all = page->hidden ? calloc(functions, sizeof(*all)) : NULL;
	bool first = true;
	int error;

	if (!page->hidden)
		return 0;
	error = all ? sum_left_out(page, functions, all) : INCSTACK_ENOMEM;
	for (uint32_t i = 0; !error && i < functions; i++) {
		if (is_zero(all[i].own, page->boxes.kinds) &&
		    is_zero(all[i].total, page->boxes.kinds))
			continue;
		fprintf(page->stream, "%s[%u,", first ? "\n" : ",\n",
			name_of(page, i, all[i].frame));
		put_numbers(page, all[i].own);
		putc_unlocked(',', page->stream);
		put_numbers(page, all[i].total);
		putc_unlocked(']', page->stream);
		first = false;
	}
	free(all);
	return error;
}

static void put_names(const struct page *page)
{
	for (uint32_t i = 0; i < page->names; i++) {
		fputs(i ? ",\n" : "\n", page->stream);
		incstack__json_frame(page->profile, page->frames[i], page->stream);
	}
}

static void put_kinds(const struct page *page)
{
	for (uint32_t k = 0; k < page->profile->kinds; k++) {
		struct incstack_profile_kind kind = {"", ""};

		(void)incstack_profile_kind(page->profile, k, &kind);
		fputs(k ? ",[" : "[", page->stream);
		incstack__json_string(kind.name, page->stream);
		putc_unlocked(',', page->stream);
		incstack__json_string(kind.unit, page->stream);
		putc_unlocked(']', page->stream);
	}
}

static int put_data(struct page *page)
{
	FILE *stream = page->stream;
	int error;

	fprintf(stream, "{\"diff\":%s,\"meta\":{", page->difference ? "true" : "false");
	incstack__json_meta(page->profile, stream);
	fputs("},\"kinds\":[", stream);
	put_kinds(page);
	fputs("],\"totals\":[", stream);
	put_numbers(page, page->boxes.total);
	fputs("],\n\"nodes\":[", stream);
	put_nodes(page);
	fputs("],\n\"rests\":[", stream);
	error = put_rests(page);
	fputs("],\n\"leftOut\":[", stream);
	if (!error)
		error = put_left_out(page, page->profile->names_used + page->profile->frames_used);
	fputs("],\n\"names\":[", stream);
	put_names(page);
	fprintf(stream, "],\"hidden\":%" PRIu64, page->hidden);
	if (!error && page->profile->timeline) {
		fputs(",\n\"timeline\":", stream);
		error = incstack__write_bars(page->profile, stream);
	}
	putc_unlocked('}', stream);
	return error;
}

static int put_page(struct page *page)
{
	static const char mark[] = "/*DATA*/";
	const char *here = strstr(incstack__flame_page, mark);
	const char *rest = here + sizeof(mark) - 1;
	int error;

	fwrite(incstack__flame_page, 1, (size_t)(here - incstack__flame_page), page->stream);
	error = put_data(page);
	fwrite(rest, 1, (size_t)(incstack__flame_page_end - rest), page->stream);
	return error;
}

static int write_page(struct page *page)
{
	size_t functions = page->profile->names_used + page->profile->frames_used;
	int error = incstack__boxes_make(page->profile, &page->boxes);

	if (error)
		return error;
	incstack__boxes_select(&page->boxes);
	page->number = calloc(page->boxes.count, sizeof(*page->number));
	page->name = calloc(functions + 1, sizeof(*page->name));
	page->frames = calloc(functions + 1, sizeof(*page->frames));
	error = page->number && page->name && page->frames ? put_page(page) : INCSTACK_ENOMEM;
	free(page->number);
	free(page->name);
	free(page->frames);
	incstack__boxes_free(&page->boxes);
	return error;
}

static int add(struct incstack__profile_writer *common)
{
	struct html_writer *writer = (struct html_writer *)(void *)common;

	if (writer->page.written)
		return INCSTACK_EINVAL; /* HTML has one part */
	writer->page.written = true;
	writer->page.profile = common->profile;
	writer->page.stream = common->stream;
	return write_page(&writer->page);
}

const struct incstack__writer_ops incstack__write_html = {
	.size = sizeof(struct html_writer),
	.add = add,
};

int incstack__profile_write_difference(const struct incstack_profile *both, FILE *stream)
{
	struct page page = {.profile = both, .stream = stream, .difference = true};
	int error;

	if (!both || !stream || both->kinds != 2)
		return INCSTACK_EINVAL;
	error = write_page(&page);
	return !error && (ferror(stream) || fflush(stream)) ? INCSTACK_EIO : error;
}
