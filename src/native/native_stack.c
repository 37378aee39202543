/* SPDX-License-Identifier: MIT
 *
 * Finds the bounds of the calling thread's stack.
 */
#include <pthread.h>
#include <stddef.h>

#include <incstack/native.h>

#include "trace/shared.h"

/* glibc derives the lowest address of the main thread's stack from RLIMIT_STACK and the mapping
 * below the stack. For other threads it is the mapping without its guard. Both ranges have all
 * addresses that the stack may ever use. */
static int range_of_attributes(const pthread_attr_t *attributes, uintptr_t *low, uintptr_t *high)
{
	void *base;
	size_t bytes;

	if (pthread_attr_getstack(attributes, &base, &bytes) != 0)
		return INCSTACK_EINVAL;
	*low = (uintptr_t)base;
	*high = (uintptr_t)base + bytes;
	return 0;
}

int incstack_native_stack_range(uintptr_t *low, uintptr_t *high)
{
	pthread_attr_t attributes;
	int result;

	if (!low || !high)
		return INCSTACK_EINVAL;
	/* It fails if there is no memory or if a file in /proc cannot be opened. */
	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return INCSTACK_ENOMEM;
	result = range_of_attributes(&attributes, low, high);
	pthread_attr_destroy(&attributes);
	return result;
}

int incstack_stack_create_native(struct incstack_runtime *runtime, struct incstack_stack **stack)
{
	uintptr_t low;
	uintptr_t high;
	int result;

	if (!runtime || !stack)
		return INCSTACK_EINVAL;
	result = incstack_native_stack_range(&low, &high);
	if (result < 0)
		return result;
	result = incstack_stack_create(runtime, low, high, stack);
	if (result == 0)
		incstack__stack_is_of_thread(*stack);
	return result;
}
