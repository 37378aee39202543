/* SPDX-License-Identifier: MIT
 *
 * The flame graph: a page that needs nothing but itself.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "flame_page.h"
#include "report.h"

/* What is below this part of every total would be narrower than a pixel. */
#define SMALLEST_PART 5000

struct page {
	const struct tool_report *report;
	FILE *out;
	struct incstack__cct_values *inclusive; /* of each node */
	uint32_t *number;                       /* of each node in the page; 0 is the root */
	const char **names;                     /* of the page, by number of the node */
};

/* Children have higher indices than their parents. */
static void sum_up(struct page *page)
{
	const struct incstack__cct *cct = &page->report->replay->cct;

	for (uint32_t node = cct->count; node-- > 0;) {
		struct incstack__cct_values *own = &page->inclusive[node];
		struct incstack__cct_values *up = &page->inclusive[cct->nodes[node].parent];
		const struct incstack__cct_values *values = &cct->nodes[node].values;

		own->bytes += values->bytes;
		own->calls += values->calls;
		own->live += values->live;
		own->peak += values->peak;
		if (node == INCSTACK__CCT_ROOT)
			return;
		up->bytes += own->bytes;
		up->calls += own->calls;
		up->live += own->live;
		up->peak += own->peak;
	}
}

static int big_enough(const struct incstack__cct_values *part,
		      const struct incstack__cct_values *all)
{
	return part->bytes > all->bytes / SMALLEST_PART ||
	       part->calls > all->calls / SMALLEST_PART || part->live > all->live / SMALLEST_PART ||
	       part->peak > all->peak / SMALLEST_PART;
}

/* In a script: nothing may end the string or the script. */
static void put_string(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text != 0; text++) {
		const unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte == '"' || byte == '\\' || byte == '<' || byte == 0x7f)
			fprintf(out, "\\u%04x", byte);
		else
			fputc(byte, out);
	}
	fputc('"', out);
}

static void put_values(const struct incstack__cct_values *values, FILE *out)
{
	fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, values->bytes, values->calls,
		values->live, values->peak);
}

static void put_nodes(struct page *page)
{
	const struct incstack__cct *cct = &page->report->replay->cct;
	uint32_t count = 0;

	for (uint32_t node = 1; node < cct->count; node++) {
		if (!big_enough(&page->inclusive[node], &page->inclusive[INCSTACK__CCT_ROOT]))
			continue;
		page->names[count] =
			tool_symbols_name(page->report->symbols, cct->nodes[node].code);
		fprintf(page->out, "%s[%u,%u,", count == 0 ? "" : ",\n",
			page->number[cct->nodes[node].parent], count);
		page->number[node] = ++count;
		put_values(&page->inclusive[node], page->out);
		fputc(']', page->out);
	}
	fputs("],\nnames:[", page->out);
	for (uint32_t i = 0; i < count; i++) {
		fputs(i == 0 ? "" : ",\n", page->out);
		put_string(page->names[i], page->out);
	}
}

static void put_page(struct page *page)
{
	fputs(flame_page_head, page->out);
	fputs("{command:", page->out);
	put_string(incstack__trace_reader_header(page->report->reader)->command, page->out);
	fputs(",\ntotals:[", page->out);
	put_values(&page->inclusive[INCSTACK__CCT_ROOT], page->out);
	fputs("],\nnodes:[", page->out);
	put_nodes(page);
	fputs("]}", page->out);
	fputs(flame_page_tail, page->out);
}

int tool_report_html(const struct tool_report *report, FILE *out)
{
	const size_t count = report->replay->cct.count;
	struct page page = {report, out, calloc(count, sizeof(*page.inclusive)),
			    calloc(count, sizeof(*page.number)),
			    calloc(count, sizeof(*page.names))};
	const int ready = page.inclusive != NULL && page.number != NULL && page.names != NULL;

	if (ready) {
		sum_up(&page);
		put_page(&page);
	}
	free(page.inclusive);
	free(page.number);
	free(page.names);
	return ready ? 0 : -1;
}
