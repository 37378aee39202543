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

static void set_mapped(stack *s, uintptr_t low, uintptr_t high)
{
	s->mapped_low = low;
	s->mapped_high = high;
	if (!s->anywhere)
		return;
	s->low = low;
	s->high = high;
}

/* Called when a walk begins. */
void incstack__mapped_clear(stack *s)
{
	set_mapped(s, 0, 0);
}

/* Whether the word at the address, which must be aligned, can be read. */
bool incstack__mapped(stack *s, uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(PAGE - 1);
	if (address >= s->mapped_low && address < s->mapped_high)
		return true;
	if (!incstack__page_readable(page))
		return false;
	set_mapped(s, page == s->mapped_high ? s->mapped_low : page, page + PAGE);
	return true;
}
