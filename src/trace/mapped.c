/* SPDX-License-Identifier: MIT
 *
 * Checks which memory outside a known stack can be read, such as a coroutine's stack without
 * known bounds or a signal stack. A walk there follows the words of the stack, which may have
 * any value. The kernel is asked about each page once per walk, because memory that was
 * readable at one sample may be unmapped at the next.
 */
#include "mapped.h"
#include "shared.h"

enum { PAGE = 4096 };

/* Whether the word at the address, which must be aligned, can be read. */
bool incstack__mapped(struct mapped *m, uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(PAGE - 1);
	if (address >= m->low && address < m->high)
		return true;
	if (!incstack__page_readable(page))
		return false;
	m->low = page == m->high ? m->low : page;
	m->high = page + PAGE;
	return true;
}

/* Called after each step of a walk. The readable memory takes the place of unknown bounds. */
void incstack__mapped_use(stack *s)
{
	if (bounds_known(s))
		return;
	s->low = s->mapped.low;
	s->high = s->mapped.high;
}

/* Called when a walk begins. */
void incstack__mapped_clear(stack *s)
{
	s->mapped = (struct mapped){0, 0};
	incstack__mapped_use(s);
}
