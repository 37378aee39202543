/* SPDX-License-Identifier: MIT
 *
 * What the lines that `insert` inserts into Lua call, and what a host calls. A frame of Lua is a
 * CallInfo (`ci`). A state with all its coroutines has one stack of the library: the frames of a
 * coroutine lie on the frames of who resumed it. A state may be used on any thread, by one at a time.
 */
#ifndef INCSTACK_LUA_H
#define INCSTACK_LUA_H

#include <incstack/heap.h>

#include "lstate.h"

/* ---- for the inserted lines ---------------------------------------------------------- */

/* The mark of a frame, in CallInfo.callstatus: the library wants to know before the frame runs
 * again. Lua uses the bits 0 to 13, and clears all bits when a call begins. */
#define INCSTACK_LUA_MARK (1 << 14)

/* Requests of samples, for all states of the process. */
extern struct incstack_heap_trigger incstack_lua_trigger;

/* Not 0: a sample is wanted, so incstack_lua_poll must be called. */
#define incstack_lua_wanted() \
	((__atomic_load_n(&incstack_lua_trigger.word, __ATOMIC_RELAXED) & 0xffffu) != 0)

/* Takes the sample of the running function. `pc` is the next instruction plus 1, or null in a C
 * function. Returns 1 if another sample is wanted at once. */
int incstack_lua_poll(lua_State *L, const Instruction *pc);

/* Control returns to L->ci, which has a mark. */
void incstack_lua_returned(lua_State *L);

/* The same, if the frame that runs now has a mark. It stands wherever a function ends. */
#define incstack_lua_back(L) \
	do { \
		if (luai_unlikely((L)->ci->callstatus & INCSTACK_LUA_MARK)) \
			incstack_lua_returned(L); \
	} while (0)

/* An error is about to pop all frames that are younger than `to`, a frame of L, which continues. */
void incstack_lua_popped(lua_State *L, CallInfo *to);

/* L is about to run, called by the frame that runs in `from`. Nothing happens if `from` is not traced,
 * because a host called it instead of resuming it. */
void incstack_lua_enter(lua_State *L, lua_State *from);

/* L has yielded, ended or failed. */
void incstack_lua_leave(lua_State *L);

#if defined(INCSTACK_LUA_MIXED)
#include "incstack_lua_mixed.h"
#else
#define incstack_lua_begins(L) ((void)0)
#define incstack_lua_executes(L, ci) ((void)0)
#define incstack_lua_runs(L, ci) ((void)0)
#define incstack_lua_resumes(L, again) ((void)0)
#define incstack_lua_jumps(L) ((void)0)
#endif

/* ---- for a host ------------------------------------------------------------------------ */

/* Starts to trace a state. L is its main coroutine, and runs. Returns 0, or an INCSTACK_E*. */
int incstack_lua_open(lua_State *L);

/* The last traces are used, and the state is not traced any more. lua_close calls it. */
void incstack_lua_close(lua_State *L);

/* What the program `lua` calls: opens the state if the environment asks for it. */
void incstack_lua_start(lua_State *L);

/* ---- for who uses the traces: profile.c, or check.c ---------------------------------------- */

/* The kinds of frames. */
enum { INCSTACK_LUA_C = 1, INCSTACK_LUA_LUA, INCSTACK_LUA_MAIN, INCSTACK_LUA_COROUTINE };

/* A Lua function. It may be collected before its traces are used. */
struct incstack_lua_function {
	const void *proto; /* where it was */
	int line;
	char *name, *file;
};

/* What is known of a state that is traced: G(L)->incstack. */
struct incstack_lua {
	struct incstack_heap *heap;
	struct incstack_heap_stack *stack;
	lua_State *running;                      /* the coroutine that runs */
	uint64_t failures;                       /* samples and reports that the library refused */
	size_t marks;                            /* that were set so far */
	void *user;                              /* what belongs to the user of the traces */
	struct incstack_lua_mixed *mixed;        /* the machine's stack (mixed.c), or null */
	struct incstack_lua_function *functions; /* number N is functions[N - 1] */
	unsigned int count, room;
	const Instruction *last_pc; /* the place whose line was looked up last */
	unsigned int last_number;
	int last_line;
};

/* Called by open and close. Open sets lua->user, and may change the options. Returns 1, or 0 on failure. */
int incstack_lua_user_open(struct incstack_lua *lua, struct incstack_heap_options *options);
void incstack_lua_user_close(struct incstack_lua *lua);

/* Called at a poll. Returns 1 if a sample is due, and its id and weight. */
int incstack_lua_due(struct incstack_lua *lua, uint64_t *id, uint64_t *weight);

/* Called by close: retrieves the traces and uses them. */
void incstack_lua_collect(struct incstack_lua *lua);

/* Describes a frame: kind, function (a C function's address, or a Lua function's number), line. */
void incstack_lua_describe(struct incstack_lua *lua, CallInfo *ci,
			   struct incstack_heap_frame *frame);

#endif
