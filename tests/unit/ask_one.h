/* SPDX-License-Identifier: MIT
 *
 * A request for one thread.
 */
#ifndef ASK_ONE_H
#define ASK_ONE_H

#include <incstack/safepoint.h>

/* Requests one sample of a thread, whether it runs or waits. */
static inline int ask_one(struct incstack_safepoint *safepoint, uint64_t id,
			  incstack_operation *ask, void *argument, struct incstack_request **one)
{
	const struct incstack_request_options options = {
		.size = sizeof(options),
		.ids = &id,
		.count = 1,
		.n = 1,
		.flags = INCSTACK_REQUEST_WAITING,
		.operation = ask,
		.argument = argument,
	};
	return incstack_request_start(safepoint, &options, one);
}

#endif
