/* SPDX-License-Identifier: MIT
 *
 * One trace over two stacks: the frames of an interpreter lie on the heap, and its C functions on the machine's
 * stack. The loop of the interpreter calls C functions, which call the loop again. Each machine frame of the
 * loop runs several frames of the interpreter.
 *
 * Build: cc -rdynamic 8_mixed.c $(pkg-config --static --cflags --libs incstack-native)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <incstack/mixed.h>
#include <incstack/native.h>

struct frame {
	struct frame *caller;
	const char *function;
	int marked;
	const void *
		machine; /* not null: the outermost frame that the machine frame of this address runs */
};

static struct frame *top;
static struct incstack_heap_stack *heap_stack;
static struct incstack_mixed mixed;

/* ---- what the library asks ---- */

/* The name of an anchor is that of its frame, plus 1. */
static uintptr_t walk(void *context, void *identity, uintptr_t name, struct incstack_heap_frame *f)
{
	const struct frame *here = (const struct frame *)(name & ~(uintptr_t)1);
	(void)context, (void)identity;
	if (name & 1) {
		f->function = (uintptr_t)here->machine;
		f->flags = INCSTACK_MIXED_ANCHOR;
		return (uintptr_t)here->caller;
	}
	f->function = (uintptr_t)here->function;
	f->flags = here->marked ? INCSTACK_HEAP_MARKED : 0;
	return here->machine ? name + 1 : (uintptr_t)here->caller;
}

static int mark(void *context, void *identity, uintptr_t name, int on)
{
	(void)context, (void)identity;
	if (name & 1)
		return -1;
	((struct frame *)name)->marked = on;
	return 0;
}

static void *memory(void *context, void *old, size_t bytes)
{
	if (!old)
		return malloc(bytes);
	free(old);
	return (void)context, NULL;
}

/* ---- the interpreter and its C functions ---- */

static void enter(const char *function, const void *machine)
{
	struct frame *f = malloc(sizeof(*f));
	*f = (struct frame){top, function, 0, machine};
	top = f;
}

static void leave(void)
{
	struct frame *gone = top;
	top = gone->caller;
	free(gone);
	if (top && top->marked) {
		top->marked = 0;
		incstack_heap_stack_returned(heap_stack, (uintptr_t)top);
	}
}

int leaf(void);
int sort(int depth);
void loop(int depth);

/* Samples. The caller of this function is the top on the machine's stack. Returns an INCSTACK_E*. */
__attribute__((noinline)) int leaf(void)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	const struct incstack_top here = {
		.pc = frame[1], .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
	return incstack_mixed_sample(&mixed, &here, (uintptr_t)top, 0, 1);
}

__attribute__((noinline)) int sort(int depth)
{
	loop(depth - 1);
	return leaf() != 0; /* no tail call, so that this function is shown */
}

/* The interpreter: a function calls another one, which calls a C function. */
__attribute__((noinline)) void loop(int depth)
{
	volatile char here = 0;
	enter("outer", (const void *)&here);
	enter("inner", NULL);
	if (depth)
		sort(depth);
	else
		leaf();
	leave();
	leave();
}

/* ---- the traces ---- */

/* Prints the youngest frame first, without machine frames of the loop, down to main. */
static void print(const struct incstack_mixed_trace *trace)
{
	struct incstack_mixed_frames at;
	Dl_info info;
	incstack_mixed_frames_begin(&at, trace, NULL, NULL);
	while (incstack_mixed_frames_next(&at)) {
		if (at.flags & INCSTACK_MIXED_RUNS)
			continue;
		if (at.heap)
			printf("%s ", (const char *)(uintptr_t)at.heap->frame.function);
		else if (dladdr((void *)(uintptr_t)(at.machine->function - 1), &info) &&
			 info.dli_saddr == (void *)sort)
			printf("sort() ");
	}
	puts(at.loose || at.truncated ? "(not complete)" : "");
}

int main(void)
{
	struct incstack_runtime *runtime;
	struct incstack_stack *stack;
	struct incstack_heap *heap;
	struct incstack_mixed_tree tree;
	struct incstack_mixed_trace trace = {0};
	const struct incstack_heap_options options = {
		.size = sizeof(options), .walk = walk, .mark = mark, .memory = memory};
	if (incstack_runtime_create_native(NULL, &runtime) != 0 ||
	    incstack_stack_create_native(runtime, &stack) != 0 ||
	    incstack_heap_create(&options, &heap) != 0 ||
	    incstack_heap_stack_create(heap, NULL, &heap_stack) != 0)
		return 1;
	mixed = (struct incstack_mixed){.machine = stack, .heap = heap_stack};
	loop(2);
	if (incstack_mixed_retrieve(&mixed, 0, &tree) != 0)
		return 1;
	while (incstack_mixed_tree_next(&tree, &trace))
		print(&trace);
	incstack_mixed_tree_release(&tree);
	incstack_heap_destroy(heap);
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(runtime);
	return 0;
}
