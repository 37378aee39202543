/* SPDX-License-Identifier: MIT
 *
 * Native methods: C functions on the thread's own stack, each with a frame of the
 * VM that represents it. They call back, catch, and block.
 */
#include <sched.h>

#include "instrument.h"
#include "vm.h"

struct fiber *toy_native(struct fiber *f)
{
	if (!push_frame(f))
		return throw_from_call(f);
	f->pc = stubs.called_back;
	f->pinned++;
	value result = f->callee->native(f);
	f->pinned--;
	if (f->throwing)
		return throw_value(f);
	if (returns_to_barrier(f, (uintptr_t *)f->fp + 1))
		COUNT(natives);
	return give_result(f, result);
}

/* Calls a method from a native method. f->throwing says whether it threw. The position of a native
 * frame is the number of its calls. */
static value call_back(struct fiber *f, value method, value argument)
{
	const struct program *p = f->vm->program;
	if (!is_int(method) || (uint64_t)int_of(method) >= (uint64_t)p->method_count ||
	    p->methods[int_of(method)]->params != 1 || p->methods[int_of(method)]->native) {
		fiber_throw(f, EXCEPTION_TYPE);
		return 0;
	}
	set_bci(f, (int32_t)*frame_word(f->fp, FRAME_BCI) + 1);
	instrument_called(f, (uint32_t)int_of(method));
	f->callee = p->methods[int_of(method)];
	f->args[0] = argument;
	f->resume = f->linked ? stubs.linked_call : stubs.callback;
	stubs.enter(f);
	f->pc = stubs.called_back;
	end_with_frame(f);
	return f->result;
}

/* A native method that blocks. Other threads may read the stack meanwhile. */
static void blocks(struct fiber *f)
{
	incstack_thread_wait_begin(f->thread->safepoint);
	sched_yield();
	incstack_thread_wait_end(f->thread->safepoint);
	incstack_stack_set_owner(f->stack);
	(void)deopt_outdated(f, false);
}

static value argument_of(struct fiber *f, int i)
{
	return *frame_word(f->fp, FRAME_SLOTS - i);
}

/* apply(f, x) = f(x) */
static value native_apply(struct fiber *f)
{
	blocks(f);
	return call_back(f, argument_of(f, 0), argument_of(f, 1));
}

/* each(f, n) = f(0) + .. + f(n - 1) */
static value native_each(struct fiber *f)
{
	uint64_t sum = 0;
	value n = argument_of(f, 1);
	for (int64_t i = 0; is_int(n) && i < int_of(n) && !f->throwing; i++) {
		value r = call_back(f, argument_of(f, 0), value_of(i));
		sum += is_int(r) ? (uint64_t)int_of(r) : 0;
	}
	return value_of((int64_t)sum);
}

/* guard(f, x) = f(x), or -1 if that throws */
static value native_guard(struct fiber *f)
{
	value r = call_back(f, argument_of(f, 0), argument_of(f, 1));
	if (f->throwing) {
		f->throwing = false;
		blocks(f);
		return value_of(-1);
	}
	return r;
}

const struct native natives[] = {{"apply", 2, native_apply},
				 {"each", 2, native_each},
				 {"guard", 2, native_guard},
				 {NULL, 0, NULL}};
