/* SPDX-License-Identifier: MIT
 *
 * An interpreter whose frames lie on the heap, with errors and coroutines. Its program is a tree of calls.
 * Each leaf is sampled. An error pops the frames up to `try`; a coroutine has a stack of its own.
 *
 * Build: cc 7_heap.c $(pkg-config --cflags --libs incstack-heap)
 */
#include <stdio.h>
#include <stdlib.h>

#include <incstack/heap.h>

struct frame {
	struct frame *caller;
	const char *function;
	int line, marked;
};

static struct incstack_heap *heap;

/* One for the program, and one for each coroutine. */
struct coroutine {
	struct incstack_heap_stack *stack;
	struct frame *top;
} main_program, *running = &main_program;

/* ---- what the library asks ---- */

static uintptr_t walk(void *context, void *identity, uintptr_t name, struct incstack_heap_frame *f)
{
	const struct frame *here = (const struct frame *)name;
	f->function = (uintptr_t)here->function;
	f->position = (uint32_t)here->line;
	f->flags = here->marked ? INCSTACK_HEAP_MARKED : 0;
	return (void)context, (void)identity, (uintptr_t)here->caller;
}

static int mark(void *context, void *identity, uintptr_t name, int on)
{
	((struct frame *)name)->marked = on;
	return (void)context, (void)identity, 0;
}

static void *memory(void *context, void *old, size_t bytes)
{
	if (!old)
		return malloc(bytes);
	free(old);
	return (void)context, NULL;
}

/* ---- the interpreter ---- */

static void enter(const char *function)
{
	struct frame *f = malloc(sizeof(*f));
	*f = (struct frame){running->top, function, 1, 0};
	running->top = f;
}

static void pop(void)
{
	struct frame *f = running->top;
	running->top = f->caller;
	free(f);
}

static void leave(void)
{
	pop();
	struct frame *to = running->top;
	if (to && to->marked) {
		to->marked = 0;
		incstack_heap_stack_returned(running->stack, (uintptr_t)to);
	}
	if (to)
		to->line++;
}

static void fail(struct frame *handler)
{
	incstack_heap_stack_unwinding_to(running->stack, (uintptr_t)running->top,
					 (uintptr_t)handler);
	while (running->top != handler)
		pop();
	handler->line = 100;
}

static void leaf(void)
{
	const struct coroutine *c = running;
	enter("leaf");
	incstack_heap_stack_sample(c->stack, (uintptr_t)c->top, 0, 1);
	leave();
}

/* Calls itself, then fails at the depth 0. */
static void inner(int depth, struct frame *handler)
{
	enter("inner");
	leaf();
	if (depth)
		inner(depth - 1, handler);
	else
		fail(handler);
}

/* ---- the traces ---- */

static void print(const struct incstack_heap_object *o)
{
	if (o->parent) {
		print(o->parent);
		putchar(';');
	}
	printf("%s:%u", (const char *)(uintptr_t)o->frame.function, (unsigned)o->frame.position);
}

static void print_all(const char *title)
{
	const struct incstack_heap_tree *tree;
	incstack_heap_stack_retrieve(running->stack, (uintptr_t)running->top, &tree);
	printf("%s, %u traces\n", title, (unsigned)tree->count);
	for (const struct incstack_heap_trace *t = tree->traces; t; t = t->next) {
		print(t->top);
		putchar('\n');
	}
	incstack_heap_tree_release(tree, running->stack);
}

static void run_coroutine(void)
{
	struct coroutine coroutine = {NULL, NULL}, *resumed_by = running;
	incstack_heap_stack_create(heap, &coroutine, &coroutine.stack);
	running = &coroutine;
	enter("generator");
	leaf();
	leaf();
	print_all("coroutine");
	/* It is not resumed any more, and is collected. */
	incstack_heap_stack_destroy(coroutine.stack);
	while (coroutine.top)
		pop();
	running = resumed_by;
}

int main(void)
{
	const struct incstack_heap_options options = {
		.size = sizeof(options), .walk = walk, .mark = mark, .memory = memory};
	incstack_heap_create(&options, &heap);
	incstack_heap_stack_create(heap, &main_program, &main_program.stack);
	enter("main");
	enter("try");
	inner(2, running->top);
	leaf();
	leave();
	run_coroutine();
	leaf();
	print_all("main");
	pop();
	incstack_heap_destroy(heap);
	return 0;
}
