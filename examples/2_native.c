/* SPDX-License-Identifier: MIT
 *
 * A native program that profiles itself: it samples at chosen points, folds the
 * traces into a calling context tree, and writes folded stacks to stdout.
 *
 * Link it with -rdynamic (CMake: ENABLE_EXPORTS), or dladdr does not know the functions.
 *
 *     2_native | incstack convert - flame.html --input-format folded
 *
 * Build: cc -rdynamic 2_native.c $(pkg-config --static --cflags --libs incstack-native incstack-profile)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <incstack/native.h>
#include <incstack/profile.h>

static struct incstack_stack *stack;

/* The work: walks a tree of calls, and a sample is due at every leaf. */
int leaf(int depth);
int inner(int depth);

__attribute__((noinline)) int leaf(int depth)
{
	const struct incstack_top top = incstack_native_top(NULL);
	return incstack_stack_sample(stack, 0, 1, &top) + depth;
}

__attribute__((noinline)) int inner(int depth)
{
	int left = depth > 0 ? inner(depth - 1) : leaf(depth);
	return left + leaf(depth);
}

/* A native frame's function is its return address, so the call lies before it. */
static int name_of(void *context, const struct incstack_profile_frame *frame,
		   struct incstack_profile_source *source)
{
	const uintptr_t before = !(frame->flags & INCSTACK_OBJECT_EXACT);
	Dl_info info;
	(void)context;
	if (dladdr((void *)((uintptr_t)frame->function - before), &info))
		source->name = info.dli_sname;
	source->kind = INCSTACK_KIND_C;
	return 0;
}

static int write_profile(const struct incstack_tree *tree)
{
	const struct incstack_profile_kind kind = {"samples", "count"};
	struct incstack_profile *profile, *named = NULL;
	int error = incstack_profile_create(&kind, 1, &profile);
	if (error)
		return error;
	error = incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, tree, NULL, NULL);
	if (!error)
		error = incstack_profile_name_frames(profile, name_of, NULL, &named);
	if (!error)
		error = incstack_profile_write(named, INCSTACK_FORMAT_FOLDED, 0, stdout);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
	return error;
}

int main(void)
{
	struct incstack_runtime *runtime;
	struct incstack_tree *tree;
	int error = incstack_runtime_create_native(NULL, &runtime);
	if (!error)
		error = incstack_stack_create_native(runtime, &stack);
	if (!error) {
		inner(20);
		error = incstack_stack_retrieve(stack, &tree);
	}
	if (!error) {
		error = write_profile(tree);
		incstack_tree_release(tree);
		incstack_stack_destroy(stack);
		incstack_runtime_destroy(runtime);
	}
	if (error)
		fprintf(stderr, "2_native: %s\n", incstack_error_text(error));
	return error != 0;
}
