/* SPDX-License-Identifier: MIT
 *
 * Writes the flame graph: the page, with the data of the profile put into it. All contexts are in the page, as
 * many as a browser can hold; if there are more, the smallest are left out.
 */
#include <stdlib.h>

#include "page.h"
#include "profile/analysis.h"

extern const char incstack__page_head[], incstack__page_tail[], incstack__page_end[];

/* A page with so many boxes has 20 MB. A browser draws it in two seconds. */
#define BOXES_MOST 2000000

struct html_writer {
	struct incstack__profile_writer common;
	bool written;
};

static void put_kinds(const struct incstack__page *page)
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

static int put_data(struct incstack__page *page)
{
	FILE *stream = page->stream;
	int error;

	fprintf(stream, "{\"diff\":%s,\"shares\":%s,\"meta\":{",
		page->difference ? "true" : "false", page->shares ? "true" : "false");
	incstack__json_meta(page->profile, stream);
	fputs("},\"kinds\":[", stream);
	put_kinds(page);
	fputs("],\n", stream);
	error = incstack__write_tree(page);
	if (!error)
		error = incstack__write_left_out(page);
	if (!error)
		error = incstack__write_frames(page);
	if (!error && page->profile->timeline) {
		fputs(",\n\"timeline\":", stream);
		error = incstack__write_bars(page);
	}
	if (!error && page->profile->curve) {
		fputs(",\n\"curve\":", stream);
		error = incstack__write_curve(page);
	}
	putc_unlocked('}', stream);
	return error;
}

static int put_page(struct incstack__page *page)
{
	int error;

	fwrite(incstack__page_head, 1, (size_t)(incstack__page_tail - incstack__page_head),
	       page->stream);
	error = put_data(page);
	fwrite(incstack__page_tail, 1, (size_t)(incstack__page_end - incstack__page_tail),
	       page->stream);
	return error;
}

static int numbers_make(struct incstack__page_numbers *numbers, size_t things)
{
	numbers->number = calloc(things + 1, sizeof(*numbers->number));
	numbers->thing = calloc(things + 1, sizeof(*numbers->thing));
	return numbers->number && numbers->thing ? 0 : INCSTACK_ENOMEM;
}

static void numbers_free(struct incstack__page_numbers *numbers)
{
	free(numbers->number);
	free(numbers->thing);
}

static int prepare(struct incstack__page *page)
{
	const struct incstack_profile *profile = page->profile;
	size_t functions = profile->names_used + profile->frames_used;

	page->number = calloc(page->boxes.count, sizeof(*page->number));
	page->function_frame = calloc(functions + 1, sizeof(*page->function_frame));
	if (!page->number || !page->function_frame || numbers_make(&page->functions, functions) ||
	    numbers_make(&page->frames, profile->frames_used) ||
	    numbers_make(&page->files, profile->names_used))
		return INCSTACK_ENOMEM;
	return numbers_make(&page->modules, profile->names_used);
}

int incstack__page_write(struct incstack__page *page)
{
	int error = incstack__boxes_make(page->profile, &page->boxes);

	if (error)
		return error;
	incstack__boxes_select(&page->boxes, page->most);
	error = prepare(page);
	if (!error)
		error = put_page(page);
	free(page->number);
	free(page->function_frame);
	numbers_free(&page->functions);
	numbers_free(&page->frames);
	numbers_free(&page->files);
	numbers_free(&page->modules);
	incstack__boxes_free(&page->boxes);
	return error;
}

static int add(struct incstack__profile_writer *common)
{
	struct html_writer *writer = (struct html_writer *)(void *)common;
	struct incstack__page page = {
		.profile = common->profile, .stream = common->stream, .most = BOXES_MOST};

	if (writer->written)
		return INCSTACK_EINVAL; /* HTML has one part */
	writer->written = true;
	return incstack__page_write(&page);
}

const struct incstack__writer_ops incstack__write_html = {
	.size = sizeof(struct html_writer),
	.add = add,
};

int incstack__profile_write_difference(const struct incstack_profile *both, bool shares,
				       FILE *stream)
{
	struct incstack__page page = {.profile = both,
				      .stream = stream,
				      .difference = true,
				      .shares = shares,
				      .most = BOXES_MOST};
	int error;

	if (!both || !stream || both->kinds != 2)
		return INCSTACK_EINVAL;
	error = incstack__page_write(&page);
	return !error && (ferror(stream) || fflush(stream)) ? INCSTACK_EIO : error;
}
