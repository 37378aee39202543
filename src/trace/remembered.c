/* SPDX-License-Identifier: MIT
 *
 * The memory of remembered walks.
 */
#include "remembered.h"

#include "shared.h"

int incstack__stack_remember(stack *s)
{
	if (!s->remembered)
		s->remembered = incstack__allocate(s->runtime, sizeof(*s->remembered));
	if (!s->remembered)
		return INCSTACK_ENOMEM;
	incstack__remembered_clear(s);
	return 0;
}

void incstack__remembered_free(stack *s)
{
	if (s->remembered)
		incstack__release(s->runtime, s->remembered, sizeof(*s->remembered));
	s->remembered = NULL;
}

/* Not memset, which may use vector registers. */
static void zero(void *memory, size_t bytes)
{
	volatile uintptr_t *word = memory;
	for (size_t i = 0; i < bytes / sizeof(*word); i++)
		word[i] = 0;
}

void incstack__remembered_clear(stack *s)
{
	struct remembered *r = s->remembered;
	if (!r)
		return;
	zero(r, sizeof(*r));
	r->rules_invalidated = rules_invalidated(s);
}
