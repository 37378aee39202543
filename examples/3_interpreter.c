/* SPDX-License-Identifier: MIT
 *
 * An interpreter whose frames are on the heap. Only the interpreter can walk them, so it provides
 * the walk, and a mark in a frame is the barrier. It prints folded stacks.
 * Build: cc 3_interpreter.c $(pkg-config --static --cflags --libs incstack-profile)
 */
#include <stdio.h>
#include <stdlib.h>

#include <incstack/profile.h>

/* The language: a digit calls that function, 's' takes a sample, the end returns. */
static const char *const names[] = {"main", "parse", "eval", "leaf"};
static const char *const code[] = {"1s21", "22s", "3s3s", "ss"};

struct frame {
	struct frame *caller;
	unsigned function, at;
	int armed; /* the library wants to know before it runs again */
};

static const struct incstack_profile_kind kind = {"samples", "count"};
static struct frame *top;
static struct incstack_stack *stack;
/* A number that decode understands without the frame. */
#define PC_OF(frame) (100 * (frame)->function + (frame)->at)

static int caller(void *context, void *identity, struct incstack_frame *frame)
{
	const struct frame *to = ((struct frame *)frame->sp)->caller; /* sp names the frame */
	if (to == NULL)
		return (void)context, (void)identity, 0; /* it was the outermost frame */
	*frame = (struct incstack_frame){.pc = PC_OF(to),
					 .sp = (uintptr_t)to,
					 .flags = to->armed ? INCSTACK_FRAME_ARMED : 0};
	return 1;
}

static int arm(void *context, void *identity, uintptr_t frame)
{
	((struct frame *)frame)->armed = 1;
	return (void)context, (void)identity, 0;
}

static void disarm(void *context, void *identity, uintptr_t frame)
{
	(void)context, (void)identity, ((struct frame *)frame)->armed = 0;
}

static int decode(void *context, const struct incstack_frame *frame,
		  struct incstack_virtual_frame *out, int max)
{
	*out = (struct incstack_virtual_frame){frame->pc / 100, (int32_t)(frame->pc % 100), 0};
	return (void)context, (void)max, 1;
}

static int name(void *context, const struct incstack_profile_frame *frame,
		struct incstack_profile_source *source)
{
	source->name = names[frame->function];
	source->kind = INCSTACK_KIND_INTERPRETED;
	return (void)context, 0;
}

static void call(unsigned function)
{
	struct frame *callee = malloc(sizeof(*callee));
	*callee = (struct frame){.caller = top, .function = function};
	top = callee;
}

static void give_back(void)
{
	struct frame *callee = top;
	top = callee->caller;
	free(callee);
	if (top && top->armed) { /* it is about to run again */
		top->armed = 0;
		incstack_stack_returned(stack, (uintptr_t)top);
	}
}

/* Runs the top frame until all have returned. */
static int run(void)
{
	int error = 0;
	for (call(0); top && error == 0;) {
		const char op = code[top->function][top->at++];
		const struct incstack_top here = {.pc = PC_OF(top), .sp = (uintptr_t)top};
		if (op == 's')
			error = incstack_stack_sample_at_poll(stack, 0, 1, &here);
		else
			op ? call((unsigned)(op - '0')) : give_back();
	}
	return error;
}
#define FAILS(call) ((error = (call)) != 0)

int main(void)
{
	const struct incstack_embedder embedder = {.size = sizeof(embedder), .code.decode = decode};
	const struct incstack_stack_walker walker = {sizeof(walker), caller, arm, disarm, NULL};
	const struct incstack_options options = {.size = sizeof(options), .embedder = &embedder};
	struct incstack_runtime *runtime;
	struct incstack_profile *profile, *named;
	struct incstack_tree *tree;
	int error;
	if (FAILS(incstack_runtime_create(&options, &runtime)) ||
	    FAILS(incstack_stack_create_embedder(runtime, &walker, NULL, &stack)) || FAILS(run()) ||
	    FAILS(incstack_stack_retrieve(stack, &tree)) ||
	    FAILS(incstack_profile_create(&kind, 1, &profile)) ||
	    FAILS(incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, tree, NULL, NULL)) ||
	    FAILS(incstack_profile_name_frames(profile, name, NULL, &named)) ||
	    FAILS(incstack_profile_write(named, INCSTACK_FORMAT_FOLDED, 0, stdout)))
		return fprintf(stderr, "3_interpreter: %s\n", incstack_error_text(error)), 1;
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
	incstack_tree_release(tree);
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(runtime);
	return 0;
}
