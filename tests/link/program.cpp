/* SPDX-License-Identifier: MIT
 *
 * A program that tests/link/run links in every way. Traces through barriers must equal full walks,
 * and exceptions must pass, also to a handler in the direct caller of a patched frame. It is
 * compiled with frame pointers, which the core needs if it is used alone.
 */
#include <cstdint>
#include <cstdio>
#include <pthread.h>

#include <incstack/incstack.h>

#define NOINLINE __attribute__((noinline))

static incstack_stack *stack;
static uint64_t samples;

static NOINLINE void sample()
{
	const uintptr_t *fp = static_cast<const uintptr_t *>(__builtin_frame_address(0));
	incstack_top top = {};
	top.pc = fp[1];
	top.sp = reinterpret_cast<uintptr_t>(fp + 2);
	top.fp = fp[0];
	incstack_stack_sample(stack, samples++, 1, &top);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE int recurse(int depth, bool thrown)
{
	sample();
	if (depth == 0 && thrown)
		throw depth;
	int result = depth ? recurse(depth - 1, thrown) : 0;
	__asm__ volatile("" : "+r"(result));
	sample();
	return result + 1;
}

static NOINLINE int catches(int depth)
{
	int caught = 0;
	try {
		recurse(depth, true);
	} catch (int value) {
		caught = value + 1;
	}
	sample();
	return caught;
}

static uint64_t hash_of(const incstack_tree *tree)
{
	uint64_t hash = tree->count;
	for (const incstack_trace *t = tree->traces; t; t = t->next)
		for (const incstack_frame_object *o = t->top; o; o = o->parent)
			hash = (hash ^ o->function ^ o->address << 7) * 0x100000001b3u;
	return hash;
}

/* The same calls in each mode; 0 if something was lost. */
static NOINLINE uint64_t traces_in(enum incstack_mode mode)
{
	incstack_tree *tree;
	samples = 0;
	if (incstack_stack_set_mode(stack, mode))
		return 0;
	for (int depth = 0; depth < 12; depth += 2)
		if (recurse(depth, false) != depth + 1 || catches(depth) != 1)
			return 0;
	if (incstack_stack_retrieve(stack, &tree))
		return 0;
	uint64_t hash = tree->count == samples && !tree->truncated ? hash_of(tree) : 0;
	incstack_tree_release(tree);
	return hash;
}

static incstack_runtime *open_all()
{
	incstack_embedder embedder = {};
	incstack_options options = {};
	incstack_runtime *runtime;
	pthread_attr_t attributes;
	void *low;
	size_t bytes;
	embedder.size = sizeof(embedder);
	embedder.code.frame_pointers = 1;
	options.size = sizeof(options);
	options.embedder = &embedder;
	if (incstack_runtime_create(&options, &runtime))
		return nullptr;
	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &low, &bytes);
	pthread_attr_destroy(&attributes);
	uintptr_t from = reinterpret_cast<uintptr_t>(low);
	return incstack_stack_create(runtime, from, from + bytes, &stack) ? nullptr : runtime;
}

extern "C" int program()
{
	incstack_runtime *runtime = open_all();
	if (!runtime || incstack_stack_reserve(stack, 1 << 20))
		return 2;
	uint64_t hash[2];
	for (volatile int i = 0; i < 2; i = i + 1) /* one call: return addresses are compared */
		hash[i] = traces_in(i ? INCSTACK_MODE_PATCH : INCSTACK_MODE_FULL);
	incstack_stats stats = {};
	stats.size = sizeof(stats);
	incstack_stack_stats(stack, &stats);
	printf("traces %d, returns %d, unwound %d\n", (int)stats.samples, (int)stats.returns,
	       (int)stats.unwound);
	bool good = hash[0] && hash[0] == hash[1] && stats.returns && stats.unwound;
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(runtime);
	return good ? 0 : 1;
}

#ifndef LIBRARY
int main()
{
	return program();
}
#endif
