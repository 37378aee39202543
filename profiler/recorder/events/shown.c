/* SPDX-License-Identifier: MIT
 *
 * Hides the thunks from the program. Before the program looks at a return address or walks its
 * stack, the return addresses that thunks have replaced are restored (walker.c).
 */
#include <stdatomic.h>

#include "recorder/code/code.h"
#include "recorder/events/events.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

/* The first and the last byte of this object, as the linker names them. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* A child that is not recorded has no thunks, because they were lifted when it was forked. */
static void walked(struct incstack__walker *walk)
{
	if (incstack__record_local.mine &&
	    atomic_load_explicit(&incstack__recording.on, memory_order_relaxed))
		incstack__record_as_event(incstack__walker_lift, walk);
}

void incstack__record_walk(uintptr_t *slot, bool by_caller)
{
	struct incstack__walker walk = {.slot = slot,
					.word = by_caller ? 0 : incstack_slot_read(slot)};

	if (incstack__record_local.mine)
		walked(&walk);
	else
		incstack__walker_first = walk;
}

void incstack__record_shown(uintptr_t *slot)
{
	const uintptr_t real = incstack_slot_read(slot);

	if (__builtin_expect(real == *slot, 1))
		return;
	if (incstack__record_local.mine)
		walked(NULL);
	if (incstack_slot_read(slot) != *slot) /* the barrier counts as vanished unannounced */
		*slot = real;
}

const void *incstack__record_real_address(const void *address)
{
	return (const void *)incstack_slot_read((const uintptr_t *)&address);
}

/* Called before a possible unwinder looks at a frame. An unwinder whose functions are not known
 * must meet no thunk (D2). If it is not certain that the caller is an unwinder, it suffices to lift
 * the barriers. */
void incstack__record_lookup(uintptr_t caller, bool certain)
{
	static _Atomic uintptr_t known;
	const uintptr_t from = incstack_slot_read(&caller);

	if (__builtin_expect(from == atomic_load_explicit(&known, memory_order_relaxed), 1) ||
	    from - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start) ||
	    incstack__record_local.state != 0)
		return;
	if (incstack_unwinder_known(from)) {
		if (certain) /* it is libgcc_s; other answers may change later */
			atomic_store_explicit(&known, from, memory_order_relaxed);
		return;
	}
	if (certain)
		incstack__record_fall_back(INCSTACK__NOTE_FOREIGN_UNWINDER);
	if (incstack__record_local.mine)
		walked(NULL);
}
