/* SPDX-License-Identifier: MIT
 *
 * A host with many states and threads, linked with check.c: every thread runs a slice of a state, then one
 * of another state, which another thread has run before.
 *
 *     threads THREADS STATES SLICES PROGRAM
 *
 * The program returns a function, which is called once for each slice. Half of the states run it in
 * the main coroutine, half in a coroutine that the host resumes. It may call call_elsewhere.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

#include "incstack_lua.h"

enum { STATES_MAX = 256 };

static struct state {
	lua_State *L;
	int slices; /* that are left */
} states[STATES_MAX];
static int state_count, next;
static long failures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void say(lua_State *L)
{
	fprintf(stderr, "threads: %s\n", lua_tostring(L, -1));
	failures++;
}

/* Takes a state that no other thread has; null if there is none. */
static struct state *take(void)
{
	struct state *found = NULL;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < state_count && !found; i++) {
		struct state *s = &states[next++ % state_count];
		if (s->slices > 0)
			found = s;
	}
	if (found)
		found->slices = -found->slices; /* it is taken */
	pthread_mutex_unlock(&lock);
	return found;
}

static void give_back(struct state *s)
{
	pthread_mutex_lock(&lock);
	s->slices = -s->slices - 1;
	pthread_mutex_unlock(&lock);
}

/* call_elsewhere(f, ...): calls f on a new stack of Lua without lua_resume, which is not traced. An error
 * there is thrown in the main coroutine, over the coroutines between. */
static int call_elsewhere(lua_State *L)
{
	const int arguments = lua_gettop(L);
	lua_State *other = lua_newthread(L);
	lua_insert(L, 1);
	lua_xmove(L, other, arguments);
	lua_call(other, arguments - 1, 0);
	return 0;
}

/* The state's stack has the function, and a coroutine or nil. */
static void run_slice(lua_State *L)
{
	lua_State *co = lua_tothread(L, 2);
	int results;
	if (!co) {
		lua_pushvalue(L, 1);
		if (lua_pcall(L, 0, 0, 0) != LUA_OK)
			say(L);
	} else {
		if (lua_status(co) == LUA_OK)
			lua_pushvalue(L, 1), lua_xmove(L, co, 1);
		if (lua_resume(co, L, 0, &results) > LUA_YIELD)
			say(co);
		lua_settop(co, 0);
	}
	lua_settop(L, 2);
}

static void *work(void *unused)
{
	for (struct state *s = take(); s; s = take()) {
		run_slice(s->L);
		give_back(s);
	}
	return unused;
}

static void open_state(struct state *s, const char *program, int slices, int in_coroutine)
{
	lua_State *L = s->L = luaL_newstate();
	luaL_openlibs(L);
	lua_pushboolean(L, in_coroutine);
	lua_setglobal(L, "IN_COROUTINE");
	lua_register(L, "call_elsewhere", call_elsewhere);
	s->slices = slices;
	failures += incstack_lua_open(L) != 0;
	if (luaL_loadfile(L, program) != LUA_OK || lua_pcall(L, 0, 1, 0) != LUA_OK)
		say(L);
	if (in_coroutine)
		lua_newthread(L);
	else
		lua_pushnil(L);
}

int main(int argc, char **argv)
{
	pthread_t threads[STATES_MAX];
	const int thread_count = argc == 5 ? atoi(argv[1]) : 0;
	state_count = argc == 5 ? atoi(argv[2]) : 0;
	if (thread_count < 1 || thread_count > STATES_MAX || state_count < 1 ||
	    state_count > STATES_MAX) {
		fprintf(stderr, "usage: threads THREADS STATES SLICES PROGRAM\n");
		return 2;
	}
	for (int i = 0; i < state_count; i++)
		open_state(&states[i], argv[4], atoi(argv[3]), i % 2);
	for (int i = 0; i < thread_count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			abort();
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < state_count; i++)
		lua_close(states[i].L);
	return failures != 0;
}
