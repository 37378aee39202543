/* SPDX-License-Identifier: MIT
 *
 * Between profile.c, which has the timer, the names and the file, and what takes the traces: profile_lua.c,
 * or profile_mixed.c, whose traces also show the machine's frames.
 */
#ifndef INCSTACK_LUA_PROFILED_H
#define INCSTACK_LUA_PROFILED_H

#include <incstack/profile_heap.h>

#include "lua.h"

#include "incstack_lua.h"

/* What lua->user points to. */
struct profiled {
	struct incstack_profile *profile;
	uint32_t drawn;
	unsigned int samples;
};

/* Called by incstack_lua_user_open and incstack_lua_user_close. Open returns 1, or 0 on failure. */
int profile_open(struct incstack_lua *lua, struct incstack_heap_options *options);
void profile_close(struct incstack_lua *lua);

/* A sample is due: takes it and returns 0, or returns 1 if the adapter is to take it. */
int profile_sample(struct incstack_lua *lua, uint64_t id, uint64_t weight);

/* Describes a frame of Lua for the profile: its function gets the kind, too. */
int profile_describe(void *unused, const struct incstack_heap_frame *at,
		     struct incstack_profile_frame *frame);

#endif
