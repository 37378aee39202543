/* SPDX-License-Identifier: MIT
 *
 * The least that an embedder needs: a table with one function, which tells how to walk frames
 * that keep a frame pointer. The program samples a recursion and prints how few frames were
 * walked for all that the traces show.
 *
 * Build: cc -fno-omit-frame-pointer 1_frames.c $(pkg-config --static --cflags --libs incstack)
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include <incstack/incstack.h>

static struct incstack_stack *stack;

/* The linker puts these around the code of the program. */
extern const char __executable_start, etext;

/* This file is compiled with frame pointers. The walk ends in the code that called main. */
static int find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	if (address < (uintptr_t)&__executable_start || address >= (uintptr_t)&etext)
		*rule = (struct incstack_rule){.kind = INCSTACK_RULE_END};
	else
		*rule = (struct incstack_rule){.kind = INCSTACK_RULE_FP,
					       .cfa_offset = 16,
					       .ra_offset = 8,
					       .fp_offset = 16};
	return 0;
}

/* The top of the trace is the caller of this function: the frame pointer leads to the saved one,
 * above it are the return address and then the caller's frame. */
__attribute__((noinline)) static int sample(void)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	const struct incstack_top top = {
		.pc = frame[1], .sp = (uintptr_t)(frame + 2), .fp = frame[0]};

	return incstack_stack_sample_at_poll(stack, 0, 1, &top);
}

__attribute__((noinline)) static int work(int depth)
{
	int errors = 0;

	if (depth > 0)
		errors += work(depth - 1);
	for (int i = 0; i < 10; i++)
		errors += sample() != 0;
	return errors;
}

static int own_stack(struct incstack_runtime *runtime)
{
	pthread_attr_t attributes;
	void *low;
	size_t bytes;

	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return INCSTACK_ENOMEM;
	pthread_attr_getstack(&attributes, &low, &bytes);
	pthread_attr_destroy(&attributes);
	return incstack_stack_create(runtime, (uintptr_t)low, (uintptr_t)low + bytes, &stack);
}

static void print(const struct incstack_tree *tree)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	uint64_t shown = 0;

	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		for (const struct incstack_frame_object *o = t->top; o; o = o->parent)
			shown++;
	incstack_stack_stats(stack, &stats);
	printf("%" PRIu64 " traces show %" PRIu64 " frames; %" PRIu64 " were walked\n", tree->count,
	       shown, stats.walked);
}

int main(void)
{
	const struct incstack_embedder embedder = {.size = sizeof(embedder),
						   .code.find_rule = find_rule};
	const struct incstack_options options = {.size = sizeof(options), .embedder = &embedder};
	struct incstack_runtime *runtime;
	struct incstack_tree *tree;
	int error = incstack_runtime_create(&options, &runtime);

	if (!error)
		error = own_stack(runtime);
	if (!error && work(100) != 0)
		error = INCSTACK_EROOM;
	if (!error)
		error = incstack_stack_retrieve(stack, &tree);
	if (error) {
		fprintf(stderr, "1_frames: %s\n", incstack_error_text(error));
		return 1;
	}
	print(tree);
	incstack_tree_release(tree);
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(runtime);
	return 0;
}
