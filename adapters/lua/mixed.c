/* SPDX-License-Identifier: MIT
 *
 * One trace over Lua's frames and the machine's (mixed.h of the library): the anchors between the frames of
 * Lua, and the state of the machine's stack.
 */
#include <stddef.h>
#include <stdlib.h>

#include <incstack/native.h>

#include "lua.h"

#include "incstack_lua.h"
#include "ldo.h"

/* The machine's stack, of the thread that has opened the state. */
struct incstack_lua_mixed {
	struct incstack_runtime *runtime;
	struct incstack_stack *stack;
	struct incstack_mixed mixed;
	uintptr_t (*walk)(void *, void *, uintptr_t,
			  struct incstack_heap_frame *); /* as without anchors */
	int (*mark)(void *, void *, uintptr_t, int);
};

/* ---- anchors --------------------------------------------------------------------------- */

/* The name of an anchor is that of its entry, with this bit. */
enum { ANCHOR = 1 };

static int is_entry(const CallInfo *ci)
{
	return ci->callstatus & INCSTACK_LUA_ENTRY &&
	       ci->incstack.number == ci->incstack.L->incstack_number;
}

static uintptr_t walk(void *context, void *identity, uintptr_t name,
		      struct incstack_heap_frame *frame)
{
	const struct incstack_lua *lua = context;
	const CallInfo *ci = (const CallInfo *)(name & ~(uintptr_t)ANCHOR);
	if (!(name & ANCHOR)) {
		const uintptr_t caller = lua->mixed->walk(context, identity, name, frame);
		return is_entry(ci) ? name | ANCHOR : caller;
	}
	frame->function = ci->incstack.machine;
	frame->flags = INCSTACK_MIXED_ANCHOR;
	if (ci->previous)
		return (uintptr_t)ci->previous;
	return ci->incstack.L->incstack_from ? (uintptr_t)ci->incstack.L->incstack_from->ci : 0;
}

static int mark(void *context, void *identity, uintptr_t name, int on)
{
	const struct incstack_lua *lua = context;
	return name & ANCHOR ? -1 : lua->mixed->mark(context, identity, name, on);
}

/* ---- what Lua reports ------------------------------------------------------------------ */

/* Only frames from a mark on are known, and only those below it are still to be captured. */
void incstack_lua_forget(lua_State *L)
{
	struct incstack_lua *lua = G(L)->incstack;
	lua_State *from = L->incstack_from;
	if (!lua || lua->running != L || !from || lua->marks == L->incstack_marks)
		return;
	lua->failures += incstack_heap_stack_unwinding_to(lua->stack, (uintptr_t)L->ci,
							  (uintptr_t)from->ci) != 0;
	L->incstack_marks = lua->marks;
}

/* After an error that a coroutine has caught, its frames are there, but the machine frames that ran them are
 * gone. */
void incstack_lua_resume(lua_State *L, const char *machine, int again)
{
	if (again)
		incstack_lua_forget(L);
	L->incstack_number++;
	incstack_lua_set_entry(L, &L->base_ci, machine);
}

void incstack_lua_jumps(lua_State *L)
{
	struct incstack_lua *lua = G(L)->incstack;
	if (lua && lua->mixed)
		lua->failures +=
			incstack_stack_unwinding_to(lua->mixed->stack, (uintptr_t)L->errorJmp) != 0;
}

/* ---- samples --------------------------------------------------------------------------- */

__attribute__((noinline)) int incstack_lua_mixed_sample(struct incstack_lua *lua, uint64_t id,
							uint64_t weight)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	const struct incstack_top top = {
		.pc = frame[1], .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
	struct incstack_lua_mixed *m = lua->mixed;
	if (!m->mixed.heap)
		m->mixed = (struct incstack_mixed){.machine = m->stack, .heap = lua->stack};
	return incstack_mixed_sample(&m->mixed, &top, (uintptr_t)lua->running->ci, id, weight);
}

int incstack_lua_mixed_retrieve(struct incstack_lua *lua, struct incstack_mixed_tree *tree)
{
	*tree = (struct incstack_mixed_tree){NULL, NULL};
	if (!lua->mixed->mixed.heap)
		return 0; /* no sample was taken */
	return incstack_mixed_retrieve(&lua->mixed->mixed, (uintptr_t)lua->running->ci, tree);
}

struct incstack_stats incstack_lua_mixed_stats(const struct incstack_lua *lua)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	incstack_stack_stats(lua->mixed->stack, &stats);
	return stats;
}

/* ---- begin and end --------------------------------------------------------------------- */

/* Both stacks have the same mode, and barriers at the same distance. */
int incstack_lua_mixed_open(struct incstack_lua *lua, struct incstack_heap_options *options)
{
	struct incstack_lua_mixed *m = lua->mixed = calloc(1, sizeof(*m));
	if (!m)
		return 0;
	m->walk = options->walk;
	m->mark = options->mark;
	options->walk = walk;
	options->mark = mark;
	const struct incstack_options machine = {
		.size = sizeof(machine), .mode = options->mode, .distance = options->distance};
	if (incstack_runtime_create_native(&machine, &m->runtime) == 0 &&
	    incstack_stack_create_native(m->runtime, &m->stack) == 0)
		return 1;
	incstack_lua_mixed_close(lua);
	return 0;
}

void incstack_lua_mixed_close(struct incstack_lua *lua)
{
	struct incstack_lua_mixed *m = lua->mixed;
	if (!m)
		return;
	incstack_tree_release(m->mixed.kept);
	incstack_stack_destroy(m->stack);
	incstack_runtime_destroy(m->runtime);
	free(m);
	lua->mixed = NULL;
}
