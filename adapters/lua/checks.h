/* SPDX-License-Identifier: MIT
 *
 * What the checks of traces share: the description of a frame by hand, and its comparison.
 */
#ifndef INCSTACK_LUA_CHECKS_H
#define INCSTACK_LUA_CHECKS_H

#include <stdint.h>
#include <stdlib.h>

#include "lua.h"

#include "incstack_lua.h"
#include "ldebug.h"

/* One frame, as the walk by hand saw it. */
struct step {
	int kind;
	uintptr_t runs; /* the C function, or the prototype of the Lua function */
	int line_defined;
	int line;
};

static inline unsigned int number(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);
	return text ? (unsigned int)atoi(text) : otherwise;
}

/* A number below `bound`, at random. */
static inline unsigned int below(unsigned int *random, unsigned int bound)
{
	*random = *random * 1664525u + 1013904223u;
	return (*random >> 8) % bound;
}

static inline struct step step_of(const lua_State *L, const CallInfo *ci)
{
	const TValue *function = s2v(ci->func);
	if (ci == &L->base_ci)
		return (struct step){.kind = L == G(L)->mainthread ? INCSTACK_LUA_MAIN
								   : INCSTACK_LUA_COROUTINE};
	if (ttislcf(function))
		return (struct step){INCSTACK_LUA_C, (uintptr_t)fvalue(function), 0, 0};
	if (ttisCclosure(function))
		return (struct step){INCSTACK_LUA_C, (uintptr_t)clCvalue(function)->f, 0, 0};
	const Proto *p = clLvalue(function)->p;
	const int line = luaG_getfuncline(p, pcRel(ci->u.l.savedpc, p));
	return (struct step){INCSTACK_LUA_LUA, (uintptr_t)p, p->linedefined, line > 0 ? line : 0};
}

static inline int is_same(const struct incstack_lua *lua, const struct incstack_heap_frame *frame,
			  const struct step *step)
{
	if (frame->kind != step->kind)
		return 0;
	if (frame->kind != INCSTACK_LUA_LUA)
		return frame->function == step->runs;
	if (frame->function - 1 >= lua->count)
		return 0;
	const struct incstack_lua_function *function = &lua->functions[frame->function - 1];
	return (uintptr_t)function->proto == step->runs && function->line == step->line_defined &&
	       (int)frame->position == step->line;
}

#endif
