/* SPDX-License-Identifier: MIT
 *
 * Writes what each function has in the boxes that the page leaves out, so that the page can state sums that are
 * true.
 */
#include <stdlib.h>

#include "page.h"

/* The weights of the boxes of a function that are left out. */
struct left_out {
	uint64_t own[INCSTACK_PROFILE_KINDS_MAX], total[INCSTACK_PROFILE_KINDS_MAX];
	uint32_t box; /* one of them */
};

static void put_numbers(const struct incstack__page *page, const uint64_t *numbers)
{
	for (uint32_t k = 0; k < page->boxes.kinds; k++) {
		putc_unlocked(',', page->stream);
		incstack__json_number(numbers[k], page->stream);
	}
}

static void add_numbers(const struct incstack__page *page, uint64_t *sum, const uint64_t *numbers)
{
	for (uint32_t k = 0; k < page->boxes.kinds; k++)
		sum[k] += numbers[k];
}

static void add_left_out(const struct incstack__page *page, const bool *inside,
			 struct left_out *all)
{
	const struct incstack__boxes *boxes = &page->boxes;

	for (size_t i = 1; i < boxes->count; i++) {
		struct left_out *sum = &all[boxes->box[i].function];

		if (!incstack__page_leaves_out(page, i))
			continue;
		sum->box = (uint32_t)i;
		add_numbers(page, sum->own, boxes->own + i * boxes->kinds);
		if (!inside[i])
			add_numbers(page, sum->total, boxes->total + i * boxes->kinds);
	}
}

static int sum_left_out(const struct incstack__page *page, size_t functions, struct left_out *all)
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

/* Writes [function, own..., total...]. */
static void put_function(struct incstack__page *page, const struct left_out *sum, bool is_first)
{
	fprintf(page->stream, "%s[%u", is_first ? "\n" : ",\n",
		incstack__page_function(page, &page->boxes.box[sum->box]));
	put_numbers(page, sum->own);
	put_numbers(page, sum->total);
	putc_unlocked(']', page->stream);
}

int incstack__write_left_out(struct incstack__page *page)
{
	size_t functions = page->profile->names_used + page->profile->frames_used;
	struct left_out *all = page->hidden ? calloc(functions, sizeof(*all)) : NULL;
	bool is_first = true;
	int error = 0;

	if (page->hidden)
		error = all ? sum_left_out(page, functions, all) : INCSTACK_ENOMEM;
	fputs(",\n\"leftOut\":[", page->stream);
	for (size_t i = 0; all && !error && i < functions; i++) {
		if (!all[i].box)
			continue;
		put_function(page, &all[i], is_first);
		is_first = false;
	}
	putc_unlocked(']', page->stream);
	free(all);
	return error;
}
