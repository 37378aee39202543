/* SPDX-License-Identifier: MIT
 *
 * The page of the flame graph while it is written: which boxes, functions and frames have which numbers in it.
 */
#ifndef INCSTACK_PROFILE_PAGE_H
#define INCSTACK_PROFILE_PAGE_H

#include "boxes.h"
#include "writer.h"

/* The numbers that things got in the page, in the order of their first use. */
struct incstack__page_numbers {
	uint32_t *number; /* of each thing, plus 1; 0: it has none yet */
	uint32_t *thing;  /* of each number */
	uint32_t used;
};

struct incstack__page {
	const struct incstack_profile *profile;
	FILE *stream;
	bool difference;
	bool shares; /* of a difference: weights count relative to the total of their side */
	size_t most; /* the number of boxes that the page may have */
	struct incstack__boxes boxes;
	uint32_t *number; /* of each box in the page, or of the box that stands for it */
	struct incstack__page_numbers functions, frames, files, modules;
	uint32_t *function_frame; /* a frame of each function */
	uint32_t count;           /* of the boxes in the page */
	uint64_t hidden;          /* contexts without a box of their own */
};

/* Writes the page. Errors: ENOMEM. */
int incstack__page_write(struct incstack__page *page);

/* ---- the parts of the page; each writes members of an object of JSON ------------------------------ */

/* Writes the boxes, and gives them numbers. */
int incstack__write_tree(struct incstack__page *page);
/* Writes what functions have in boxes that are left out. */
int incstack__write_left_out(struct incstack__page *page);
/* Writes the functions, frames, files and modules that have got numbers. */
int incstack__write_frames(struct incstack__page *page);
/* Writes the timeline of the threads, as a value: bars for the busiest threads, and what is in them. */
int incstack__write_bars(const struct incstack__page *page);
/* Writes the curve of the live memory, as a value. */
int incstack__write_curve(const struct incstack__page *page);

/* Returns the number of a thing. */
uint32_t incstack__page_number(struct incstack__page_numbers *numbers, uint32_t thing);
uint32_t incstack__page_function(struct incstack__page *page, const struct incstack__box *box);
/* Whether the box is left out. A box without any weight is nothing that could be shown. */
bool incstack__page_leaves_out(const struct incstack__page *page, size_t box);

#endif
