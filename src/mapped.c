/* SPDX-License-Identifier: MIT
 *
 * Which memory outside of a known stack can be read: a coroutine's stack that nobody
 * described, or a signal's. A walk there goes where the words of the stack lead, and
 * those may be anything. The kernel is asked about each page once in a walk: memory
 * that could be read at one sample may be gone at the next.
 */
#include "internal.h"

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

/* A walk begins. */
void incstack__mapped_forget(stack *s)
{
	set_mapped(s, 0, 0);
}

/* Of an aligned address. */
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
