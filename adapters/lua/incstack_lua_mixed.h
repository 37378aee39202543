/* SPDX-License-Identifier: MIT
 *
 * Traces that show Lua's frames and the C functions between them, with INCSTACK_LUA_MIXED. A frame that a
 * machine frame runs, the outermost of several, is an entry: it has an address within the machine frame.
 * A frame of Lua code is run by luaV_execute, a C function by precallC, the base of a coroutine by
 * lua_resume. incstack_lua.h includes this file.
 */
#ifndef INCSTACK_LUA_MIXED_H
#define INCSTACK_LUA_MIXED_H

#include <incstack/mixed.h>

struct incstack_lua;

/* In CallInfo.callstatus: an entry, if the number is still that of the coroutine. When a coroutine runs on
 * other machine frames than before, it gets a new number: that voids all its entries. */
#define INCSTACK_LUA_ENTRY (1 << 15)

/* L is a new coroutine. */
#define incstack_lua_begins(L) ((L)->incstack_number = 0)

static inline void incstack_lua_set_entry(lua_State *L, CallInfo *ci, const char *machine)
{
	ci->callstatus |= INCSTACK_LUA_ENTRY;
	ci->incstack.machine = (size_t)machine;
	ci->incstack.number = L->incstack_number;
	ci->incstack.L = L;
}

/* Returns the outermost of the frames that one luaV_execute runs; ci is the youngest. They are several if
 * a coroutine goes on. */
static inline CallInfo *incstack_lua_fresh(CallInfo *ci)
{
	while (!(ci->callstatus & CIST_FRESH))
		ci = ci->previous;
	return ci;
}

/* What the library knows of the frames of L is void: another machine frame is about to run them. */
void incstack_lua_forget(lua_State *L);

/* The function in which this stands runs the C function ci. */
#define incstack_lua_runs(L, ci) \
	char incstack_here = 0; \
	incstack_lua_set_entry(L, ci, &incstack_here)

/* It runs Lua code from ci on, up to the frame where luaV_execute returns. If that frame was an entry before,
 * a coroutine goes on, and its frames change their machine frame. */
#define incstack_lua_executes(L, ci) \
	char incstack_here = 0; \
	incstack_lua_execute(L, incstack_lua_fresh(ci), &incstack_here)
static inline void incstack_lua_execute(lua_State *L, CallInfo *ci, const char *machine)
{
	if (luai_unlikely(ci->callstatus & INCSTACK_LUA_ENTRY))
		incstack_lua_forget(L);
	incstack_lua_set_entry(L, ci, machine);
}

/* It runs the coroutine L, whose frames no other machine frame runs now: `again` after an error that L has caught. */
#define incstack_lua_resumes(L, again) \
	char incstack_here = 0; \
	incstack_lua_resume(L, &incstack_here, again)
void incstack_lua_resume(lua_State *L, const char *machine, int again);

/* A longjmp to L->errorJmp follows. */
void incstack_lua_jumps(lua_State *L);

/* ---- for a user of the traces ----------------------------------------------------------- */

/* Prepares the machine's stack; incstack_lua_user_open calls it. The state then stays on its thread. Returns 1,
 * or 0 on failure. */
int incstack_lua_mixed_open(struct incstack_lua *lua, struct incstack_heap_options *options);
void incstack_lua_mixed_close(struct incstack_lua *lua);

/* Takes a sample, whose top is the caller of this function. Returns 0, or an INCSTACK_E*. */
int incstack_lua_mixed_sample(struct incstack_lua *lua, uint64_t id, uint64_t weight);

/* Hands over the traces. Returns 0, or an INCSTACK_E*. */
int incstack_lua_mixed_retrieve(struct incstack_lua *lua, struct incstack_mixed_tree *tree);

/* The counters of the machine's stack. */
struct incstack_stats incstack_lua_mixed_stats(const struct incstack_lua *lua);

#endif
