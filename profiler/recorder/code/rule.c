/* SPDX-License-Identifier: MIT
 *
 * Finds the unwind rules for the core, also in the handler of a tick.
 */
#include <stdatomic.h>

#include "native/native.h"
#include "recorder/code/code.h"
#include "recorder/code/unruled.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

static struct incstack__range stub;

void incstack__record_rule_stub(struct incstack__range range)
{
	stub = range;
}

/* Whether the code is the recorder's or the stub's. A signal handler may take a sample while their
 * frames are on the stack. The sample of the interrupted event begins at the program's frame, which
 * is older. It does not meet barriers in their frames, so these barriers would count as
 * vanished. */
static bool is_own(uintptr_t address)
{
	const struct incstack__range own = incstack__range_own();

	return address - stub.low < stub.bytes || address - own.low < own.bytes;
}

/* Finds rules without libunwind (D46).
 *
 * In a handler it never fails with INCSTACK_EUNWIND, because another thread would ask for the rule
 * later, perhaps while the code is unloaded. Only the thread that runs the code may read its
 * rules. */
int incstack__record_find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	if (incstack__record_local.handling && !incstack__record_host_knows(address))
		return INCSTACK_EBUSY;
	/* Until the mode has changed, no return into code whose rule is asked for now may be
	 * intercepted. acquire: pairs with the release in forbid_barriers (host.c). */
	const bool forbidden =
		is_own(address) || incstack__record_host_forbids_barriers(address) ||
		atomic_load_explicit(&incstack__recording.barriers_forbidden, memory_order_acquire);
	int error = incstack_native_embedder()->code.find_rule_quickly(context, address, rule);

	if (error == INCSTACK_EUNWIND)
		error = incstack__record_pointer_rule(address, rule);
	if (error == 0 && forbidden && rule->kind <= INCSTACK_RULE_FP_DEREF)
		rule->flags |= INCSTACK_RULE_NO_BARRIER;
	return error == INCSTACK_EUNWIND && incstack__record_local.handling ? INCSTACK_EBUSY
									    : error;
}
