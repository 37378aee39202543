/* SPDX-License-Identifier: MIT
 *
 * Finds a context of a partial calling context tree: looks at each one.
 */
#ifndef INCSTACK_TESTS_FIND_CONTEXT_H
#define INCSTACK_TESTS_FIND_CONTEXT_H

#include <incstack/pcct.h>

/* Returns the number of the context, or NONE if there is no such context. */
static inline uint32_t find_context(const struct incstack_pcct *pcct, uint32_t parent,
				    int32_t call_site, uint64_t function)
{
	struct incstack_pcct_context context = {.size = sizeof(context)};

	for (uint32_t i = 0; incstack_pcct_context(pcct, INCSTACK_PCCT_BY_NUMBER, i, &context) == 0;
	     i++)
		if (context.parent == parent && context.call_site == call_site &&
		    context.function == function)
			return context.number;
	return INCSTACK_PCCT_NONE;
}

#endif
