/* SPDX-License-Identifier: MIT
 *
 * Reads a moment from a trace file. Nothing in it is trusted.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "moment.h"

/* Where the payload is read, and what it may still have. */
struct place {
	const unsigned char *at;
	size_t left;
};

static int take(struct place *place, void *to, size_t bytes)
{
	if (place->left < bytes)
		return 0;
	memcpy(to, place->at, bytes);
	place->at += bytes;
	place->left -= bytes;
	return 1;
}

static const char *read_runs(const struct incstack__moment_area *area, uint64_t page_bytes,
			     const uint32_t *run)
{
	uint64_t pages = (area->high - area->low) / page_bytes;

	for (uint32_t i = 0; i < area->runs; i++) {
		if (incstack__run_state(run[i]) >= INCSTACK__PAGES ||
		    incstack__run_pages(run[i]) == 0 || incstack__run_pages(run[i]) > pages)
			return "the pages of a moment do not fit into their area";
		pages -= incstack__run_pages(run[i]);
	}
	return NULL;
}

static const char *read_areas(struct incstack__moment *moment, struct place *place)
{
	const struct incstack__moment_head *head = &moment->head;
	const char *problem = NULL;
	uint64_t low = 0;
	uint32_t runs = 0;

	for (uint32_t i = 0; i < head->areas && !problem; i++) {
		struct incstack__moment_area *area = &moment->areas[i];

		if (!take(place, area, sizeof(*area)) || area->low < low ||
		    area->low >= area->high || (area->low | area->high) % head->page_bytes != 0 ||
		    area->kind >= INCSTACK__AREA_KINDS || area->runs > head->runs - runs ||
		    !take(place, moment->run + runs, area->runs * sizeof(*moment->run)))
			return "an area of a moment is damaged";
		problem = read_runs(area, head->page_bytes, moment->run + runs);
		low = area->high;
		runs += area->runs;
	}
	if (!problem && (runs != head->runs || place->left != 0))
		problem = "a moment has the wrong size";
	return problem;
}

const char *incstack__moment_read(struct incstack__moment *moment, const unsigned char *payload,
				  size_t length)
{
	struct place place = {payload, length};
	struct incstack__moment_head *head = &moment->head;

	*moment = (struct incstack__moment){.areas = NULL};
	if (!take(&place, head, sizeof(*head)) || head->page_bytes < 4096 ||
	    (head->page_bytes & (head->page_bytes - 1)) != 0 ||
	    head->areas > place.left / sizeof(*moment->areas) ||
	    head->runs > place.left / sizeof(*moment->run))
		return "the beginning of a moment is damaged";
	moment->areas = calloc(head->areas + 1u, sizeof(*moment->areas));
	moment->run = calloc(head->runs + 1u, sizeof(*moment->run));
	if (!moment->areas || !moment->run)
		return incstack__tracefile_no_memory;
	return read_areas(moment, &place);
}

void incstack__moment_free(struct incstack__moment *moment)
{
	free(moment->areas);
	free(moment->run);
	*moment = (struct incstack__moment){.areas = NULL};
}

const char *incstack__moment_replace(struct incstack__moment *moment, const unsigned char *payload,
				     size_t length)
{
	struct incstack__moment next;
	const char *problem = incstack__moment_read(&next, payload, length);

	if (problem) {
		incstack__moment_free(&next);
		return problem;
	}
	incstack__moment_free(moment);
	*moment = next;
	return NULL;
}
