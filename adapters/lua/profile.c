/* SPDX-License-Identifier: MIT
 *
 * A timer asks for samples, and their traces become a profile.
 *
 *   INCSTACK_LUA           the file for the profile; its suffix chooses the format
 *   INCSTACK_LUA_INTERVAL  microseconds from sample to sample; 1000 unless it is set
 *
 * The file is written when the state is closed, or when the process ends.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiled.h"

#include "lauxlib.h"

static lua_State *started; /* what incstack_lua_start opened */
static const char *path;
static uint64_t interval = 1000;
static atomic_uint ticks; /* of the timer, since the last sample */

/* ---- samples --------------------------------------------------------------------------- */

static void tick(int number)
{
	(void)number;
	atomic_fetch_add(&ticks, 1);
	incstack_heap_trigger_request(&incstack_lua_trigger, 1);
}

static int start_timer(void)
{
	timer_t timer;
	const struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
	const struct timespec every = {(time_t)(interval / 1000000),
				       (long)(interval % 1000000 * 1000)};
	const struct itimerspec times = {every, every};
	return sigaction(SIGPROF, &action, NULL) == 0 &&
	       timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
	       timer_settime(timer, 0, &times, NULL) == 0;
}

int incstack_lua_due(struct incstack_lua *lua, uint64_t *id, uint64_t *weight)
{
	struct profiled *user = lua->user;
	if (!incstack_heap_trigger_draw(&incstack_lua_trigger, &user->drawn))
		return 0;
	if (user->samples % 1024 == 1023)
		incstack_lua_collect(lua);
	*id = user->samples++;
	*weight = atomic_exchange(&ticks, 0) * interval;
	return profile_sample(lua, *id, *weight);
}

/* ---- traces ---------------------------------------------------------------------------- */

int profile_describe(void *unused, const struct incstack_heap_frame *at,
		     struct incstack_profile_frame *frame)
{
	frame->function = at->function | (uint64_t)at->kind << 56;
	frame->position = at->position ? (int32_t)at->position : -1;
	return (void)unused, 1;
}

/* ---- names and the file ---------------------------------------------------------------- */

/* With a module's table on top: returns the name of the function in it, or null. */
static const char *name_in(lua_State *L, lua_CFunction function)
{
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		if (lua_type(L, -2) == LUA_TSTRING && lua_tocfunction(L, -1) == function)
			return lua_tostring(L, -2);
	return NULL;
}

/* Writes the name that package.loaded has for a C function to `text`. */
static void name_c(lua_State *L, lua_CFunction function, char *text, size_t size)
{
	const int top = lua_gettop(L);
	snprintf(text, size, "C function");
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	for (lua_pushnil(L); lua_next(L, top + 1); lua_settop(L, top + 2)) {
		const char *module = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
		const char *name = module && lua_istable(L, -1) ? name_in(L, function) : NULL;
		if (name && strcmp(module, LUA_GNAME) != 0)
			snprintf(text, size, "%s.%s", module, name);
		else if (name)
			snprintf(text, size, "%s", name);
	}
	lua_settop(L, top);
}

static int find(void *context, const struct incstack_profile_frame *frame,
		struct incstack_profile_source *source)
{
	static char text[256];
	struct incstack_lua *lua = context;
	const uint64_t function = frame->function << 8 >> 8;
	const int kind = (int)(frame->function >> 56);
	source->name = kind == INCSTACK_LUA_MAIN ? "Lua" : "[coroutine]";
	if (kind == INCSTACK_LUA_C) {
		name_c(lua->running, (lua_CFunction)(uintptr_t)function, text, sizeof(text));
		source->name = text;
		source->file = "[C]";
		source->kind = INCSTACK_KIND_C;
	} else if (kind == INCSTACK_LUA_LUA && function) {
		source->name = lua->functions[function - 1].name;
		source->file = lua->functions[function - 1].file;
		source->line = frame->position;
		source->kind = INCSTACK_KIND_INTERPRETED;
	} else if (kind == 0 || kind == INCSTACK_LUA_LUA) {
		source->name = frame->name ? NULL : "?";
	}
	return 0;
}

/* A C function of Lua, so that an error while it looks up names is caught. */
static int write_profile(lua_State *L)
{
	struct incstack_lua *lua = lua_touserdata(L, 1);
	struct incstack_profile *profile = ((struct profiled *)lua->user)->profile, *named;
	const struct incstack_profile_meta meta = {
		.size = sizeof(meta), .mode = "Lua, by a timer", .lost = lua->failures};
	FILE *file = fopen(path, "w");
	incstack_profile_set_meta(profile, &meta);
	int error = file ? incstack_profile_name_frames(profile, find, lua, &named) : INCSTACK_EIO;
	if (!error) {
		error = incstack_profile_write(named, incstack_profile_format_of(path), 0, file);
		incstack_profile_destroy(named);
	}
	if ((file && fclose(file) != 0) || error)
		fprintf(stderr, "incstack: %s cannot be written\n", path);
	return 0;
}

void incstack_lua_user_close(struct incstack_lua *lua)
{
	struct profiled *user = lua->user;
	lua_State *L = lua->running;
	lua_gc(L, LUA_GCSTOP, 0); /* no finalizer runs now */
	if (lua->heap && lua_checkstack(L, 2)) {
		lua_pushcfunction(L, write_profile);
		lua_pushlightuserdata(L, lua);
		lua_pcall(L, 1, 0, 0);
	}
	lua_gc(L, LUA_GCRESTART, 0);
	profile_close(lua);
	incstack_profile_destroy(user->profile);
	free(user);
	if (started && G(started) == G(lua->running))
		started = NULL;
}

int incstack_lua_user_open(struct incstack_lua *lua, struct incstack_heap_options *options)
{
	static const struct incstack_profile_kind kinds[] = {{"samples", "count"},
							     {"time", "microseconds"}};
	struct profiled *user = lua->user = calloc(1, sizeof(*user));
	return user && incstack_profile_create(kinds, 2, &user->profile) == 0 &&
	       profile_open(lua, options);
}

static void finish(void)
{
	if (started)
		incstack_lua_close(started);
}

void incstack_lua_start(lua_State *L)
{
	const char *microseconds = getenv("INCSTACK_LUA_INTERVAL");
	path = getenv("INCSTACK_LUA");
	if (microseconds)
		interval = strtoull(microseconds, NULL, 10);
	if (path && interval && incstack_lua_open(L) == 0) {
		started = L;
		if (start_timer())
			atexit(finish);
	}
}
