/* SPDX-License-Identifier: MIT
 *
 * A profile of Lua's frames and of the C functions between them. The machine frames of Lua itself are left
 * out: the loop, the calls, the interface. What libraries and hosts call within their C functions stays.
 */
#include <string.h>

#include "profiled.h"
#include "symbols.h"

int profile_open(struct incstack_lua *lua, struct incstack_heap_options *options)
{
	symbols_open();
	return incstack_lua_mixed_open(lua, options);
}

void profile_close(struct incstack_lua *lua)
{
	incstack_lua_mixed_close(lua);
}

int profile_sample(struct incstack_lua *lua, uint64_t id, uint64_t weight)
{
	lua->failures += incstack_lua_mixed_sample(lua, id, weight) != 0;
	return 0;
}

/* Lua's own functions: lua_call, luaV_execute and the like, but not the libraries' luaL_ and luaB_; and
 * some static ones. */
static int is_of_lua(const char *name)
{
	static const char *const others[] = {"ccall",    "f_call",      "resume",          "unroll",
					     "precover", "finishCcall", "callclosemethod", "GCTM"};
	if (strncmp(name, "lua", 3) == 0 && name[3] && strchr("_ACDEFGHKMOPRSTUVXYZ", name[3]) &&
	    (name[3] == '_' || name[4] == '_'))
		return 1;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(name, others[i]) == 0)
			return 1;
	return strncmp(name, "incstack_lua_", 13) == 0 || strncmp(name, "profile_sample", 14) == 0;
}

static int describe(void *unused, const struct incstack_mixed_frames *at,
		    struct incstack_profile_frame *frame)
{
	if (at->heap)
		return profile_describe(unused, &at->heap->frame, frame);
	const uintptr_t before = !(at->machine->flags & INCSTACK_OBJECT_EXACT);
	const char *name = symbols_name((uintptr_t)at->machine->function - before);
	if (!name)
		name = "[unknown C function]";
	frame->name = name;
	frame->name_length = strlen(name);
	frame->kind = INCSTACK_KIND_C;
	return !is_of_lua(name);
}

void incstack_lua_collect(struct incstack_lua *lua)
{
	const struct profiled *user = lua->user;
	struct incstack_mixed_tree tree;
	int error = incstack_lua_mixed_retrieve(lua, &tree);
	if (!error && tree.heap)
		error = incstack_profile_add_mixed_tree(user->profile, &tree, describe, NULL, NULL);
	if (!error)
		incstack_mixed_tree_release(&tree);
	lua->failures += error != 0;
}
