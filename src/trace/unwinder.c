/* SPDX-License-Identifier: MIT
 *
 * Finds out which unwinder calls the thunks' personality routine. A process may have several:
 * libgcc_s, which glibc uses to end threads, LLVM's libunwind, and copies that are linked
 * statically into the program or a library. An unwinder's context may be passed only to the
 * functions of this unwinder, so they are looked up in the object that the call came from.
 */
#include <dlfcn.h>
#include <string.h>

#include "arch/arch.h"
#include "elf/symbols.h"
#include "elf/unwind_index.h"
#include "unwinder.h"

/* These are weak because the core links no unwinder. They serve calls from the object that
 * defines them, which may have them without exporting them. */
extern uintptr_t _Unwind_GetIP(struct _Unwind_Context *) __attribute__((weak));
extern uintptr_t _Unwind_GetGR(struct _Unwind_Context *, int) __attribute__((weak));
extern void _Unwind_SetIP(struct _Unwind_Context *, uintptr_t) __attribute__((weak));
extern void _Unwind_SetGR(struct _Unwind_Context *, int, uintptr_t) __attribute__((weak));
extern void _Unwind_Resume(void *) __attribute__((weak));

/* Returns the landing pad of the unwinder that has this _Unwind_Resume, or 0 if other unwinders
 * use all pads. */
static uintptr_t landing_of(uintptr_t resume)
{
	for (uintptr_t i = 0; i < INCSTACK__LANDINGS; i++) {
		uintptr_t was = 0;
		if (atomic_compare_exchange_strong(&incstack__landing_resume[i], &was, resume) ||
		    was == resume)
			return (uintptr_t)incstack__thunk_landing + i * INCSTACK__LANDING_SIZE;
	}
	return 0;
}

static bool complete(struct incstack__unwinder *u, uintptr_t resume)
{
	if (!u->get_ip || !u->get_gr || !u->set_ip || !u->set_gr || !resume)
		return false;
	u->landing = landing_of(resume);
	return u->landing != 0;
}

static bool use_linked(struct incstack__unwinder *u)
{
	u->get_ip = _Unwind_GetIP;
	u->get_gr = _Unwind_GetGR;
	u->set_ip = _Unwind_SetIP;
	u->set_gr = _Unwind_SetGR;
	return complete(u, (uintptr_t)_Unwind_Resume);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* _dl_find_object: glibc 2.35 */

extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

static bool use_exported(const struct link_map *map, struct incstack__unwinder *u)
{
	u->get_ip = (__typeof__(u->get_ip))incstack__elf_function(map, "_Unwind_GetIP");
	u->get_gr = (__typeof__(u->get_gr))incstack__elf_function(map, "_Unwind_GetGR");
	u->set_ip = (__typeof__(u->set_ip))incstack__elf_function(map, "_Unwind_SetIP");
	u->set_gr = (__typeof__(u->set_gr))incstack__elf_function(map, "_Unwind_SetGR");
	return complete(u, incstack__elf_function(map, "_Unwind_Resume"));
}

/* Whether the unwind information of the code at `address` names a personality routine, that is
 * whether its augmentation has a P. The unwinder's own functions have no personality. */
static bool has_personality(const struct incstack__elf_unwind_index *index, uintptr_t address)
{
	if (!index || !incstack__elf_unwind_index_is_usual(index))
		return false;
	const char *fde = incstack__elf_unwind_entry(index, address);
	int32_t back;
	memcpy(&back, fde + 4, sizeof(back));
	enum { AUGMENTATION = 9 }; /* after length, zero and version */
	for (const char *c = fde + 4 - back + AUGMENTATION; *c; c++)
		if (*c == 'P')
			return true;
	return false;
}

/* The target of the call instruction before pc, if it is call rel32 or call *rel32(%rip). */
static uintptr_t called_before(uintptr_t pc)
{
	const uint8_t *code = (const uint8_t *)pc;
	int32_t distance;
	memcpy(&distance, code - 4, sizeof(distance));
	uintptr_t target = pc + (uintptr_t)(intptr_t)distance;
	if (code[-5] == 0xe8)
		return target;
	return code[-6] == 0xff && code[-5] == 0x15 ? *(const uintptr_t *)target : 0;
}

/* Whether the code at pc is a function with cleanups, which is where the unwinder's frames end.
 * If it has called the _Unwind_Resume of an unwinder that is linked into the same object, sets
 * *resume to that function. */
bool incstack__unwinder_resumed(uintptr_t pc, uintptr_t unwinder, void (**resume)(void *))
{
	struct dl_find_object module;
	if (!_dl_find_object || _dl_find_object((void *)(pc - 1), &module) ||
	    !has_personality(module.dlfo_eh_frame, pc - 1))
		return false;
	uintptr_t low = (uintptr_t)module.dlfo_map_start, high = (uintptr_t)module.dlfo_map_end;
	uintptr_t target = called_before(pc);
	if (unwinder >= low && unwinder < high && target >= low && target < high)
		*resume = (void (*)(void *))target;
	return true;
}

/* Finds the functions of the unwinder whose code contains `caller`. Returns false if they cannot
 * be found. */
bool incstack__unwinder_find(uintptr_t caller, struct incstack__unwinder *u)
{
	struct dl_find_object module;
	uintptr_t linked = (uintptr_t)_Unwind_GetIP;
	if (!_dl_find_object)
		return use_linked(u);
	if (_dl_find_object((void *)caller, &module))
		return false;
	if (linked >= (uintptr_t)module.dlfo_map_start && linked < (uintptr_t)module.dlfo_map_end)
		return use_linked(u);
	/* Pools made at run time are registered only with the linked unwinder. */
	if (atomic_load_explicit(&incstack__pools.bytes, memory_order_relaxed))
		return false;
	return module.dlfo_link_map && use_exported(module.dlfo_link_map, u);
}

#else /* no function finds the object of an address without a lock */

bool incstack__unwinder_resumed(uintptr_t pc, uintptr_t unwinder, void (**resume)(void *))
{
	(void)pc;
	(void)unwinder;
	(void)resume;
	return true;
}

bool incstack__unwinder_find(uintptr_t caller, struct incstack__unwinder *u)
{
	(void)caller;
	return use_linked(u);
}

#endif

int incstack_unwinder_known(uintptr_t code)
{
	struct incstack__unwinder u;
	return incstack__unwinder_find(code, &u);
}
