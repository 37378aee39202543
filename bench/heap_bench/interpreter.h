/* SPDX-License-Identifier: MIT
 *
 * An interpreter that only calls and returns, and its frames as the library and a loop see them. The benchmark
 * includes it instead of linking it, so that its functions are inlined as in one file.
 */
#ifndef HEAP_BENCH_INTERPRETER_H
#define HEAP_BENCH_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <incstack/heap.h>

enum { DEPTH_MAX = 3000 };

/* As in Lua: a frame has a closure and the address of an instruction. */
struct function {
	const uint32_t *code;
	char rest[56];
};

struct closure {
	const struct function *function;
	char rest[56];
};

struct frame {
	struct frame *caller;
	const struct closure *closure;
	const uint32_t *pc;
	bool marked;
	char rest[32]; /* what else an interpreter has there */
};

enum { FUNCTIONS = 64, CODE = 1000 };
static uint32_t code[CODE];
static struct function functions[FUNCTIONS];
static struct closure closures[FUNCTIONS];
static struct frame frames[DEPTH_MAX];
static struct frame *top;
static struct {
	uintptr_t function;
	uint32_t position;
} stored[DEPTH_MAX];
static struct incstack_heap *heap;
static struct incstack_heap_stack *stack;

static inline uint32_t position_of(const struct frame *f)
{
	return (uint32_t)(f->pc - f->closure->function->code);
}

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "heap_bench: %s\n", what);
	exit(1);
}

/* ---- the embedder ------------------------------------------------------------------------- */

static uintptr_t walk(void *context, void *identity, uintptr_t name, struct incstack_heap_frame *f)
{
	const struct frame *here = (const struct frame *)name;
	(void)context;
	(void)identity;
	f->function = (uintptr_t)here->closure->function;
	f->position = position_of(here);
	f->flags = here->marked ? INCSTACK_HEAP_MARKED : 0;
	return (uintptr_t)here->caller;
}

static int mark(void *context, void *identity, uintptr_t name, int on)
{
	(void)context;
	(void)identity;
	((struct frame *)name)->marked = on;
	return 0;
}

static size_t allocated;

static void *memory(void *context, void *old, size_t bytes)
{
	(void)context;
	allocated += old ? -bytes : bytes;
	if (!old)
		return malloc(bytes);
	free(old);
	return NULL;
}

/* ---- the interpreter ------------------------------------------------------------------------ */

static void run_on(void)
{
	top->pc = top->pc == code + CODE - 1 ? code : top->pc + 1;
}

static void call(void)
{
	struct frame *f = top ? top + 1 : frames;
	f->caller = top;
	f->closure = &closures[(f - frames) * 7 % FUNCTIONS];
	f->pc = code;
	f->marked = false;
	top = f;
}

static void give_back(void)
{
	top = top->caller;
	if (__builtin_expect(top->marked, 0)) {
		top->marked = false;
		check(!incstack_heap_stack_returned(stack, (uintptr_t)top), "returned");
	}
	run_on();
}

__attribute__((noinline)) static void change(uint32_t changed)
{
	for (uint32_t i = 1; i < changed; i++)
		give_back();
	run_on();
	for (uint32_t i = 1; i < changed; i++)
		call();
}

#endif
