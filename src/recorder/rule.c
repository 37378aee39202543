/* SPDX-License-Identifier: MIT
 *
 * Finds the unwind rules for the core, in the handler of a tick too.
 */
#include "native/native.h"
#include "recorder.h"

/* The first and the last byte of this object, as the linker names them. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static struct incstack__range stub;

void incstack__record_rule_stub(struct incstack__range range)
{
	stub = range;
}

/* Whether the code is the recorder's or the stub's. A signal handler may take a sample while an event
 * begins or ends. The event's own sample begins at the program's frame, so a barrier in a frame below
 * that would count as vanished, although the frame is about to return. */
static int is_own(uintptr_t address)
{
	return address - stub.low < stub.bytes ||
	       address - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start);
}

/* Finds rules without libunwind, which unblocks libc's internal signals. Also, its locks and that
 * of the dynamic linker may be held by a thread that is stopped or that waits for this one.
 *
 * In a handler it never fails with INCSTACK_EUNWIND, because another thread would ask for the rule
 * later, perhaps while the code is unloaded. Only the thread that runs the code may read its rules. */
int incstack__record_find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	if (incstack__record_local.handling && !incstack__record_host_knows(address))
		return INCSTACK_EBUSY;
	/* Until the mode has changed, no return into code whose rule is asked for now may be
	 * intercepted. acquire: pairs with the release in forbid_barriers (host.c). */
	const int forbidden =
		is_own(address) || incstack__record_host_forbids_barriers(address) ||
		__atomic_load_n(&incstack__recording.barriers_forbidden, __ATOMIC_ACQUIRE);
	const int error = incstack_native_embedder()->find_rule_quickly(context, address, rule);

	if (error == 0 && forbidden && rule->kind <= INCSTACK_RULE_FP_DEREF)
		rule->flags |= INCSTACK_RULE_NO_BARRIER;
	return error == INCSTACK_EUNWIND && incstack__record_local.handling ? INCSTACK_EBUSY
									    : error;
}
