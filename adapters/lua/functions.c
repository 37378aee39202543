/* SPDX-License-Identifier: MIT
 *
 * Which function a frame runs. A Lua function may be collected before its traces are retrieved. So it
 * gets a number when a walk first meets it, and its name is copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"

#include "incstack_lua.h"
#include "ldebug.h"

/* Copies a text; a profile takes UTF-8 only, and the names of Lua may be anything. */
static char *copy(const char *text)
{
	char *copied = strdup(text);
	for (char *c = copied; c && *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return copied;
}

/* A function has the name by which its first caller knew it. */
static struct incstack_lua_function describe(lua_State *L, CallInfo *ci)
{
	const Proto *p = ci_func(ci)->p;
	lua_Debug ar = {.i_ci = ci};
	char unnamed[LUA_IDSIZE + 32];
	lua_getinfo(L, "Sn", &ar);
	snprintf(unnamed, sizeof(unnamed), "function <%s:%d>", ar.short_src, ar.linedefined);
	const char *name = *ar.what == 'm' ? "main chunk" : ar.name ? ar.name : unnamed;
	return (struct incstack_lua_function){p, p->linedefined, copy(name), copy(ar.short_src)};
}

/* Returns the number of a new function, from 1 on; 0 if there is no memory. */
static unsigned int number_of(struct incstack_lua *lua, CallInfo *ci)
{
	if (lua->count == lua->room) {
		const unsigned int room = 2 * lua->room + 256;
		void *moved = realloc(lua->functions, room * sizeof(*lua->functions));
		if (!moved)
			return 0;
		lua->functions = moved;
		lua->room = room;
	}
	lua->functions[lua->count] = describe(lua->running, ci);
	return ++lua->count;
}

/* In a recursion many frames stand at the same place, so the last line is remembered. */
static int line_of(struct incstack_lua *lua, const Proto *p, const Instruction *pc)
{
	if (lua->last_pc != pc || lua->last_number != p->incstack_number || !lua->last_number) {
		const int line = luaG_getfuncline(p, pcRel(pc, p));
		lua->last_pc = pc;
		lua->last_number = p->incstack_number;
		lua->last_line = line > 0 ? line : 0;
	}
	return lua->last_line;
}

static void describe_lua(struct incstack_lua *lua, CallInfo *ci, struct incstack_heap_frame *frame)
{
	Proto *p = ci_func(ci)->p;
	if (!p->incstack_number)
		p->incstack_number = number_of(lua, ci);
	frame->kind = INCSTACK_LUA_LUA;
	frame->function = p->incstack_number;
	frame->position = (uint32_t)line_of(lua, p, ci->u.l.savedpc);
}

void incstack_lua_describe(struct incstack_lua *lua, CallInfo *ci,
			   struct incstack_heap_frame *frame)
{
	const TValue *function = s2v(ci->func);
	if (!ci->previous) {
		const int is_main = ci == &G(lua->running)->mainthread->base_ci;
		frame->kind = is_main ? INCSTACK_LUA_MAIN : INCSTACK_LUA_COROUTINE;
		frame->function = 0;
	} else if (isLua(ci)) {
		describe_lua(lua, ci, frame);
	} else {
		frame->kind = INCSTACK_LUA_C;
		frame->function =
			(uintptr_t)(ttislcf(function) ? fvalue(function) : clCvalue(function)->f);
	}
}
