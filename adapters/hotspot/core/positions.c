/* SPDX-License-Identifier: MIT
 *
 * Positions in compiled code. Each has one place in the table. A writer makes the version of the place odd,
 * writes, and makes it even again. A reader that saw another version before than after has read nothing.
 * Each load is an acquire and each store a release, so that none moves across the version.
 */
#include <stdbool.h>

#include "positions.h"

static uint64_t get(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void set(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static uint32_t place_of(uintptr_t pc)
{
	return (uint32_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 32) % INCSTACK__POSITIONS;
}

static bool is_of(const struct incstack__position *p, uintptr_t pc, uint64_t code)
{
	return get(&p->pc) == pc && get(&p->code) == code;
}

int incstack__positions_find(const struct incstack__positions *positions, uintptr_t pc,
			     uint64_t code, struct incstack_virtual_frame *out)
{
	const struct incstack__position *p = &positions->places[place_of(pc)];
	uint64_t version = get(&p->version);
	if (version == 0 || version & 1 || !is_of(p, pc, code))
		return 0;
	uint64_t count = get(&p->count);
	for (uint64_t i = 0; i < count && i < INCSTACK__POSITION_FRAMES; i++)
		out[i] = (struct incstack_virtual_frame){
			.function = get(&p->methods[i]),
			.position = __atomic_load_n(&p->bcis[i], __ATOMIC_ACQUIRE)};
	return get(&p->version) == version ? (int)count : 0;
}

void incstack__positions_keep(struct incstack__positions *positions, uintptr_t pc, uint64_t code,
			      const struct incstack_virtual_frame *frames, int count)
{
	struct incstack__position *p = &positions->places[place_of(pc)];
	uint64_t version = get(&p->version);
	if (count < 1 || count > INCSTACK__POSITION_FRAMES || version & 1 ||
	    !__atomic_compare_exchange_n(&p->version, &version, version + 1, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	set(&p->pc, pc);
	set(&p->code, code);
	set(&p->count, (uint64_t)count);
	for (int i = 0; i < count; i++) {
		set(&p->methods[i], frames[i].function);
		__atomic_store_n(&p->bcis[i], frames[i].position, __ATOMIC_RELEASE);
	}
	set(&p->version, version + 2);
}
