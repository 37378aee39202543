/* SPDX-License-Identifier: MIT
 *
 * The counter slots of threads. A thread has its own slot while it lives. Later the slot goes to
 * another thread, which adds to the slot's counts, because a reader sums up all slots. The first
 * slot is for counts under the recording's lock. The last slot belongs to no single thread: the
 * threads for which no other slot is left share it.
 *
 * The release in incstack__slot_give pairs with the acquire in take(), so that the new owner sees
 * the counts of the last owner.
 */
#include <stdatomic.h>

#include "recorder/output/output.h"
#include "recorder/system/system.h"

enum { LAST = INCSTACK__TRACEFILE_SLOTS - 1 };

/* A bit of `slots_taken` for each slot. */
static uint64_t bit_of(uint32_t number)
{
	return UINT64_C(1) << (number % 64);
}

static bool is_given_out(uint32_t number)
{
	return number != 0 && number != LAST;
}

/* Takes a slot for the calling thread. Returns false if another thread has it. */
static bool take(uint32_t number)
{
	_Atomic uint64_t *word = &incstack__recording.slots_taken[number / 64];

	return is_given_out(number) &&
	       !(atomic_load_explicit(word, memory_order_relaxed) & bit_of(number)) &&
	       !(atomic_fetch_or_explicit(word, bit_of(number), memory_order_acquire) &
		 bit_of(number));
}

struct incstack__tracefile_slot *incstack__slot_take(void)
{
	uint32_t number = 0;

	while (number < LAST && !take(number))
		number++;
	return &incstack__recording.slots[number];
}

void incstack__slot_give(const struct incstack__tracefile_slot *slot)
{
	const uint32_t number = slot ? (uint32_t)(slot - incstack__recording.slots) : 0;

	if (is_given_out(number))
		atomic_fetch_and_explicit(&incstack__recording.slots_taken[number / 64],
					  ~bit_of(number), memory_order_release);
}

bool incstack__slot_is_shared(const struct incstack__tracefile_slot *slot)
{
	return !is_given_out((uint32_t)(slot - incstack__recording.slots));
}
