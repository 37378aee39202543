/* SPDX-License-Identifier: MIT
 *
 * What the checks of traces share: their settings, the description of a frame by hand and its comparison, and
 * their begin and end.
 *
 *   INCSTACK_LUA_CHECK     samples at every N-th poll, on average; every instruction is a poll
 *   INCSTACK_LUA_DISTANCE  the barrier distance; 0 (adaptive) unless it is set
 *   INCSTACK_LUA_MODE      enum incstack_heap_mode; 0 (barriers) unless it is set
 *   INCSTACK_LUA_SEED      chooses the polls; 1 unless it is set
 *   INCSTACK_LUA_REPORT    the file to which the counts are added, one line for each state
 */
#ifndef INCSTACK_LUA_CHECKS_H
#define INCSTACK_LUA_CHECKS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
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

/* The frames of one trace that a walk by hand has seen. */
struct expected {
	size_t first, count;
};

/* Returns the array with room for one more element of `size` bytes. */
static inline void *with_room(void *array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 1024;
	array = realloc(array, *room * size);
	if (!array)
		abort();
	return array;
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

/* ---- begin and end --------------------------------------------------------------------- */

/* When to sample. */
struct polls {
	unsigned int every, random;
};

/* Reads the settings, and lets every instruction be a poll. Returns 1, or 0 if they make no sense. */
static inline int read_settings(struct incstack_heap_options *options, struct polls *polls)
{
	options->distance = number("INCSTACK_LUA_DISTANCE", 0);
	options->mode = number("INCSTACK_LUA_MODE", INCSTACK_HEAP_BARRIER);
	polls->every = number("INCSTACK_LUA_CHECK", 1);
	polls->random = number("INCSTACK_LUA_SEED", 1);
	incstack_heap_trigger_request(&incstack_lua_trigger, 0xffff);
	return polls->every > 0;
}

struct count {
	const char *name;
	uint64_t value;
};

static inline void report_counts(const struct count *counts, size_t n)
{
	const char *name = getenv("INCSTACK_LUA_REPORT");
	FILE *file = name ? fopen(name, "a") : NULL;
	if (!file)
		return;
	for (size_t i = 0; i < n; i++)
		fprintf(file, "%s=%" PRIu64 " ", counts[i].name, counts[i].value);
	fputs("\n", file);
	fclose(file);
}

static lua_State *started; /* what incstack_lua_start opened */

static inline void finish(void)
{
	if (started)
		incstack_lua_close(started);
}

/* For incstack_lua_start. */
static inline void start(lua_State *L)
{
	if (!getenv("INCSTACK_LUA_CHECK") || incstack_lua_open(L) != 0)
		return;
	started = L;
	atexit(finish);
}

/* The state was closed. */
static inline void forget_started(const struct incstack_lua *lua)
{
	if (started && G(started) == G(lua->running))
		started = NULL;
}

#endif
