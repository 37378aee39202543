/* SPDX-License-Identifier: MIT
 *
 * The functions of the Itanium unwinder interface that the thunks' personality routine needs,
 * as provided by one particular unwinder.
 */
#ifndef INCSTACK__UNWINDER_H
#define INCSTACK__UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

struct _Unwind_Context;

struct incstack__unwinder {
	uintptr_t (*get_ip)(struct _Unwind_Context *);
	uintptr_t (*get_gr)(struct _Unwind_Context *, int);
	void (*set_ip)(struct _Unwind_Context *, uintptr_t);
	void (*set_gr)(struct _Unwind_Context *, int, uintptr_t);
	uintptr_t landing; /* the pad that calls its _Unwind_Resume: see thunks.S */
};

bool incstack__unwinder_resumed(uintptr_t pc, uintptr_t unwinder, void (**resume)(void *));
bool incstack__unwinder_find(uintptr_t caller, struct incstack__unwinder *u);

#endif
