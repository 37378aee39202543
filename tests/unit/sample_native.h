/* SPDX-License-Identifier: MIT
 *
 * A sample of the function that calls this one.
 */
#ifndef SAMPLE_NATIVE_H
#define SAMPLE_NATIVE_H

#include <incstack/native.h>

static inline __attribute__((always_inline)) int sample_native(struct incstack_stack *s,
							       uint64_t id, uint64_t weight)
{
	const struct incstack_top top = incstack_native_top(NULL);
	return incstack_stack_sample(s, id, weight, &top);
}

#endif
