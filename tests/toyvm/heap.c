/* SPDX-License-Identifier: MIT
 *
 * The heap: two spaces, and a collector that stops all threads, walks all stacks through the
 * library's barriers, and moves every object.
 */
#include <stdlib.h>
#include <string.h>

#include "vm.h"

enum { SPACE_WORDS = 1 << 19, LOCAL_WORDS = 512 };

void heap_open(struct vm *vm)
{
	for (int i = 0; i < 2; i++)
		vm->space[i] = malloc(SPACE_WORDS * sizeof(value));
	vm->space_free = vm->space[0];
	vm->space_end = vm->space[0] + SPACE_WORDS;
}

void heap_close(struct vm *vm)
{
	free(vm->space[0]);
	free(vm->space[1]);
}

static value *take(struct vm *vm, size_t words)
{
	value *start = NULL;
	pthread_mutex_lock(&vm->heap_lock);
	if ((size_t)(vm->space_end - vm->space_free) >= words) {
		start = vm->space_free;
		vm->space_free += words;
	}
	pthread_mutex_unlock(&vm->heap_lock);
	return start;
}

static value *take_local(struct thread *t, size_t words)
{
	if ((size_t)(t->free_end - t->free) < words) {
		if (words > LOCAL_WORDS / 4)
			return take(t->vm, words);
		value *start = take(t->vm, LOCAL_WORDS);
		if (!start)
			return NULL;
		t->free = start;
		t->free_end = start + LOCAL_WORDS;
	}
	value *start = t->free;
	t->free += words;
	return start;
}

struct object *heap_new(struct fiber *f, uint32_t class, uint32_t length)
{
	struct thread *t = f->thread;
	size_t words = 1 + (size_t)length +
		       !length; /* at least one word, for the new address when the object moves */
	if (random_below(&t->random, 4096) == 0)
		heap_collect(f);
	struct object *o = (struct object *)take_local(t, words);
	if (!o) {
		heap_collect(f);
		o = (struct object *)take_local(t, words);
	}
	if (!o) {
		fiber_throw(f, EXCEPTION_MEMORY);
		return NULL;
	}
	o->header = (uint64_t) class << 32 | (uint64_t)length << 1 | 1;
	memset(o->fields, 0, length * sizeof(value));
	return o;
}

static void move(struct vm *vm, value *root)
{
	struct object *o = (struct object *)(uintptr_t)*root;
	if (is_int(*root) || !o)
		return;
	if (o->header & 1) {
		size_t words = 1 + (size_t)object_length(o) + !object_length(o);
		struct object *to = (struct object *)vm->space_free;
		memcpy(to, o, words * sizeof(value));
		vm->space_free += words;
		o->header = (uint64_t)(uintptr_t)to;
	}
	*root = o->header;
}

static void move_frames(struct vm *vm, struct fiber *f)
{
	struct frame frame;
	if (f->pc == stubs.base) {
		for (int i = 0; i < PARAMS_MAX; i++)
			move(vm, &f->args[i]);
		return;
	}
	frame_first(f, &frame);
	do {
		for (int i = 0; i < frame.count; i++) {
			const struct virtual *v = &frame.frames[i];
			for (uint32_t k = 0; k < v->method->locals + v->depth; k++)
				move(vm, &v->slots[-(int64_t)k]);
		}
	} while (frame_next(f, &frame));
	if (fiber_has_barrier(f))
		COUNT(gc);
}

static void copy_all(struct vm *vm)
{
	value *old = vm->space[vm->space_now], *used = vm->space_free;
	vm->space_now ^= 1;
	vm->space_free = vm->space[vm->space_now];
	vm->space_end = vm->space_free + SPACE_WORDS;
	for (int i = 0; i < vm->program->globals; i++)
		move(vm, &vm->globals[i]);
	for (struct fiber *f = vm->fibers; f; f = f->all)
		move_frames(vm, f);
	for (value *at = vm->space[vm->space_now]; at < vm->space_free;) {
		struct object *o = (struct object *)at;
		for (uint32_t i = 0; i < object_length(o); i++)
			move(vm, &o->fields[i]);
		at += 1 + object_length(o) + !object_length(o);
	}
	memset(old, 0xda,
	       (size_t)(used - old) * sizeof(value)); /* an even word that is not an address */
	for (int i = 0; i < vm->schedule.threads; i++)
		vm->threads[i].free = vm->threads[i].free_end = NULL;
}

void heap_collect(struct fiber *f)
{
	struct thread *t = f->thread;
	pages_stop(t->vm);
	int error = incstack_safepoint_stop(t->vm->safepoint, t->safepoint, 0, NULL);
	pages_stopped(t->vm);
	if (error)
		return;
	copy_all(t->vm);
	incstack_safepoint_resume(t->vm->safepoint, t->safepoint);
	incstack_stack_set_owner(f->stack);
}
