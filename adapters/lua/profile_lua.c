/* SPDX-License-Identifier: MIT
 *
 * A profile of Lua's frames.
 */
#include "profiled.h"

int profile_open(struct incstack_lua *lua, struct incstack_heap_options *options)
{
	return (void)lua, (void)options, 1;
}

void profile_close(struct incstack_lua *lua)
{
	(void)lua;
}

int profile_sample(struct incstack_lua *lua, uint64_t id, uint64_t weight)
{
	return (void)lua, (void)id, (void)weight, 1;
}

void incstack_lua_collect(struct incstack_lua *lua)
{
	const struct profiled *user = lua->user;
	const struct incstack_heap_tree *tree;
	int error = incstack_heap_stack_retrieve(lua->stack, (uintptr_t)lua->running->ci, &tree);
	if (!error) {
		error = incstack_profile_add_heap_tree(user->profile, tree, profile_describe, NULL);
		incstack_heap_tree_release(tree, lua->stack);
	}
	lua->failures += error != 0;
}
