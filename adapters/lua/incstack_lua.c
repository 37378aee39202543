/* SPDX-License-Identifier: MIT
 *
 * The adapter: all calls of the tracing library. Lua's frames are objects on the heap, and a bit in
 * each of them is the mark.
 */
#include <stddef.h>
#include <stdlib.h>

#include "lua.h"

#include "incstack_lua.h"

struct incstack_heap_trigger incstack_lua_trigger;

/* ---- what the library asks ------------------------------------------------------------- */

/* A coroutine's outermost frame is part of its lua_State. It was called by the frame that resumed
 * the coroutine. */
static CallInfo *caller_of(CallInfo *ci)
{
	if (ci->previous)
		return ci->previous;
	const lua_State *L = (lua_State *)(void *)((char *)ci - offsetof(lua_State, base_ci));
	return L->incstack_from ? L->incstack_from->ci : NULL;
}

static uintptr_t walk(void *lua, void *identity, uintptr_t name, struct incstack_heap_frame *frame)
{
	CallInfo *ci = (CallInfo *)name;
	(void)identity;
	incstack_lua_describe(lua, ci, frame);
	if (ci->callstatus & INCSTACK_LUA_MARK)
		frame->flags = INCSTACK_HEAP_MARKED;
	return (uintptr_t)caller_of(ci);
}

static void clear_mark(CallInfo *ci)
{
	ci->callstatus = (unsigned short)(ci->callstatus & ~INCSTACK_LUA_MARK);
}

static int mark(void *lua, void *identity, uintptr_t name, int on)
{
	CallInfo *ci = (CallInfo *)name;
	clear_mark(ci);
	if (on) {
		ci->callstatus |= INCSTACK_LUA_MARK;
		((struct incstack_lua *)lua)->marks++;
	}
	return (void)identity, 0;
}

static void *memory(void *lua, void *old, size_t bytes)
{
	(void)lua;
	if (!old)
		return malloc(bytes);
	free(old);
	return NULL;
}

/* ---- what Lua reports ------------------------------------------------------------------ */

static void returned(struct incstack_lua *lua, CallInfo *to)
{
	clear_mark(to);
	lua->failures += incstack_heap_stack_returned(lua->stack, (uintptr_t)to) != 0;
}

void incstack_lua_returned(lua_State *L)
{
	if (G(L)->incstack)
		returned(G(L)->incstack, L->ci);
}

/* Frames are about to go, and `to` is about to run. With `has_marks`, some of these frames have marks. */
static void pop(struct incstack_lua *lua, CallInfo *to, int has_marks)
{
	if (has_marks)
		lua->failures +=
			incstack_heap_stack_unwinding_to(lua->stack, (uintptr_t)lua->running->ci,
							 (uintptr_t)to) != 0;
	else if (to->callstatus & INCSTACK_LUA_MARK)
		returned(lua, to);
}

/* Cheaper than a walk of the library, which also asks for the line of each frame. */
static int is_marked(CallInfo *ci, const CallInfo *end)
{
	while (ci != end && !(ci->callstatus & INCSTACK_LUA_MARK))
		ci = caller_of(ci);
	return ci != end;
}

void incstack_lua_popped(lua_State *L, CallInfo *to)
{
	struct incstack_lua *lua = G(L)->incstack;
	lua_State *above = lua ? lua->running : NULL;
	/* An error that nobody catches in a coroutine is thrown in the main one. It may leave others. */
	while (above && above != L)
		above = above->incstack_from;
	if (!above)
		return; /* not traced */
	pop(lua, to, is_marked(lua->running->ci, to));
	for (above = lua->running; above != L; above = lua->running) {
		lua->running = above->incstack_from;
		above->incstack_from = NULL;
	}
}

void incstack_lua_enter(lua_State *L, lua_State *from)
{
	struct incstack_lua *lua = G(L)->incstack;
	if (!lua || lua->running != from)
		return;
	L->incstack_from = from;
	L->incstack_marks = lua->marks;
	lua->running = L;
}

/* Nobody knows who will resume L next, so its marks must go. If none was set since L was entered, it has none. */
void incstack_lua_leave(lua_State *L)
{
	struct incstack_lua *lua = G(L)->incstack;
	lua_State *from = L->incstack_from;
	if (!lua || lua->running != L || !from)
		return;
	pop(lua, from->ci, lua->marks != L->incstack_marks);
	lua->running = from;
	L->incstack_from = NULL;
}

/* ---- samples --------------------------------------------------------------------------- */

int incstack_lua_poll(lua_State *L, const Instruction *pc)
{
	struct incstack_lua *lua = G(L)->incstack;
	uint64_t id = 0, weight = 0;
	if (!lua || lua->running != L)
		return 0;
	if (pc)
		L->ci->u.l.savedpc = pc;
	if (incstack_lua_due(lua, &id, &weight))
		lua->failures +=
			incstack_heap_stack_sample(lua->stack, (uintptr_t)L->ci, id, weight) != 0;
	return incstack_lua_wanted();
}

/* ---- begin and end --------------------------------------------------------------------- */

static void destroy(struct incstack_lua *lua)
{
	incstack_heap_destroy(lua->heap);
	for (unsigned int i = 0; i < lua->count; i++) {
		free(lua->functions[i].name);
		free(lua->functions[i].file);
	}
	free(lua->functions);
	free(lua);
}

static int create(struct incstack_lua *lua)
{
	struct incstack_heap_options options = {.size = sizeof(options),
						.context = lua,
						.walk = walk,
						.mark = mark,
						.memory = memory};
	if (!incstack_lua_user_open(lua, &options))
		return INCSTACK_ENOMEM;
	int error = incstack_heap_create(&options, &lua->heap);
	if (!error)
		error = incstack_heap_stack_create(lua->heap, NULL, &lua->stack);
	if (error)
		incstack_lua_user_close(lua);
	return error;
}

int incstack_lua_open(lua_State *L)
{
	if (L != G(L)->mainthread || G(L)->incstack)
		return INCSTACK_EINVAL;
	struct incstack_lua *lua = calloc(1, sizeof(*lua));
	if (!lua)
		return INCSTACK_ENOMEM;
	lua->running = L;
	int error = create(lua);
	if (error)
		destroy(lua);
	else
		G(L)->incstack = lua;
	return error;
}

void incstack_lua_close(lua_State *L)
{
	struct incstack_lua *lua = G(L)->incstack;
	if (!lua)
		return;
	incstack_lua_collect(lua);
	incstack_heap_stack_lift(lua->stack, (uintptr_t)lua->running->ci);
	G(L)->incstack = NULL;
	incstack_lua_user_close(lua);
	destroy(lua);
}
