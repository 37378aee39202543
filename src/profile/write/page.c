/* SPDX-License-Identifier: MIT
 *
 * The numbers of things in the page of the flame graph.
 */
#include "page.h"

uint32_t incstack__page_number(struct incstack__page_numbers *numbers, uint32_t thing)
{
	if (!numbers->number[thing]) {
		numbers->thing[numbers->used] = thing;
		numbers->number[thing] = ++numbers->used;
	}
	return numbers->number[thing] - 1;
}

uint32_t incstack__page_function(struct incstack__page *page, const struct incstack__box *box)
{
	page->function_frame[box->function] = box->frame;
	return incstack__page_number(&page->functions, box->function);
}

bool incstack__page_leaves_out(const struct incstack__page *page, size_t box)
{
	const uint64_t *total = page->boxes.total + box * page->boxes.kinds;

	for (uint32_t k = 0; k < page->boxes.kinds; k++)
		if (total[k])
			return !page->boxes.box[box].is_kept;
	return false;
}
