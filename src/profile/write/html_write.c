/* SPDX-License-Identifier: MIT
 *
 * Writes the flame graph: the page, with the profile's contexts put into it. Contexts that are
 * too narrow for any screen are left out. Their weight stays in the totals of their callers, and
 * the page tells how many there were.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "writer.h"

/* A context with less than this part of every total is narrower than a pixel. */
#define SMALLEST_PART 5000

extern const char incstack__flame_page[], incstack__flame_page_end[];

struct page {
	const struct incstack_profile *profile;
	FILE *stream;
	bool difference, written;
	uint64_t *totals; /* of all nodes, for one kind after the other */
	uint32_t *number; /* of each node in the page; the root is 0 */
	uint32_t *name;   /* of each frame in the page, plus one; 0: none yet */
	uint32_t names, nodes;
	uint64_t hidden;
};

struct html_writer {
	struct incstack_profile_writer common;
	struct page page;
};

static uint64_t total(const struct page *page, uint32_t node, uint32_t kind)
{
	return page->totals[(size_t)kind * page->profile->nodes_used + node];
}

static bool wide_enough(const struct page *page, uint32_t node)
{
	for (uint32_t k = 0; k < page->profile->kinds; k++)
		if (total(page, node, k) > total(page, INCSTACK_PROFILE_ROOT, k) / SMALLEST_PART)
			return true;
	return false;
}

static void put_totals(const struct page *page, uint32_t node)
{
	for (uint32_t k = 0; k < page->profile->kinds; k++) {
		if (k)
			putc_unlocked(',', page->stream);
		incstack__json_number(total(page, node, k), page->stream);
	}
}

/* Writes [parent, name, flags, total...]. Names are numbered in the order of their first use. */
static void put_node(struct page *page, uint32_t node)
{
	const struct incstack__node *n = &page->profile->nodes[node];

	if (!page->name[n->frame])
		page->name[n->frame] = ++page->names;
	fprintf(page->stream, "%s[%u,%u,%u,", page->nodes ? ",\n" : "\n", page->number[n->parent],
		page->name[n->frame] - 1, page->profile->frames[n->frame].flags);
	put_totals(page, node);
	putc_unlocked(']', page->stream);
	page->number[node] = ++page->nodes;
}

static void put_nodes(struct page *page)
{
	for (uint32_t node = 1; node < page->profile->nodes_used; node++) {
		if (wide_enough(page, node))
			put_node(page, node);
		else
			page->hidden++;
	}
}

static int put_names(const struct page *page)
{
	uint32_t *frames = calloc(page->names + 1u, sizeof(*frames));

	if (!frames)
		return INCSTACK_ENOMEM;
	for (uint32_t i = 0; i < page->profile->frames_used; i++)
		if (page->name[i])
			frames[page->name[i] - 1] = i;
	for (uint32_t i = 0; i < page->names; i++) {
		fputs(i ? ",\n" : "\n", page->stream);
		incstack__json_frame(page->profile, frames[i], page->stream);
	}
	free(frames);
	return 0;
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
	put_totals(page, INCSTACK_PROFILE_ROOT);
	fputs("],\n\"nodes\":[", stream);
	put_nodes(page);
	fputs("],\n\"names\":[", stream);
	error = put_names(page);
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
	const struct incstack_profile *profile = page->profile;
	size_t nodes = profile->nodes_used;
	int error = INCSTACK_ENOMEM;

	page->totals = calloc(nodes * profile->kinds, sizeof(*page->totals));
	page->number = calloc(nodes, sizeof(*page->number));
	page->name = calloc(profile->frames_used + 1, sizeof(*page->name));
	if (page->totals && page->number && page->name) {
		for (uint32_t k = 0; k < profile->kinds; k++)
			(void)incstack_profile_totals(profile, k, page->totals + k * nodes);
		error = put_page(page);
	}
	free(page->totals);
	free(page->number);
	free(page->name);
	return error;
}

static int add(struct incstack_profile_writer *common)
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

int incstack_profile_write_difference(const struct incstack_profile *both, FILE *stream)
{
	struct page page = {.profile = both, .stream = stream, .difference = true};
	int error;

	if (!both || !stream || both->kinds != 2)
		return INCSTACK_EINVAL;
	error = write_page(&page);
	return !error && (ferror(stream) || fflush(stream)) ? INCSTACK_EIO : error;
}
