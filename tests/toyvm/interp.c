/* SPDX-License-Identifier: MIT
 *
 * The interpreter: frames with a frame pointer on the fiber's stack, one C
 * activation at a time. Also what compiled code leaves to C.
 */
#include "instrument.h"
#include "vm.h"

/* How far an instruction without control flow changes the operand stack. */
static const int8_t effect[] = {
	[OP_CONST] = 1,   [OP_NULL] = 1,  [OP_LOAD] = 1,   [OP_STORE] = -1,  [OP_POP] = -1,
	[OP_GLOAD] = 1,   [OP_ADD] = -1,  [OP_SUB] = -1,   [OP_MUL] = -1,    [OP_DIV] = -1,
	[OP_MOD] = -1,    [OP_AND] = -1,  [OP_OR] = -1,    [OP_XOR] = -1,    [OP_LT] = -1,
	[OP_LE] = -1,     [OP_EQ] = -1,   [OP_NE] = -1,    [OP_NEW] = 1,     [OP_ALOAD] = -1,
	[OP_ASTORE] = -3, [OP_FUEL] = 1,  [OP_SPAWN] = -1, [OP_FSTORE] = -2, [OP_GSTORE] = -1,
	[OP_THROW] = 0,   [OP_ENTER] = 0, [OP_EXIT] = 0,
};

/* ---- frames ------------------------------------------------------------------------ */

/* Makes room below the return slot that sp points at, or throws in the caller. */
static bool reserve_frame(struct fiber *f, uintptr_t bytes)
{
	if (fiber_grow(f, bytes))
		return true;
	f->pc = *(uintptr_t *)f->sp;
	set_sp(f, f->sp + 8);
	fiber_throw(f, EXCEPTION_DEPTH);
	return false;
}

/* Builds the frame of f->callee below its return slot, which sp points at. */
bool push_frame(struct fiber *f)
{
	struct method *m = f->callee;
	bool room = f->linked || reserve_frame(f, frame_bytes(m) + 8);
	uintptr_t fp = f->linked ? linked_new(f, m) : f->sp - 8;
	if (!room || !fp)
		return false;
	if (!f->linked)
		set_sp(f, fp - frame_bytes(m));
	*frame_word(fp, 0) = f->fp;
	*frame_word(fp, FRAME_METHOD) = (uintptr_t)m;
	*frame_word(fp, FRAME_BCI) = 0;
	*frame_word(fp, FRAME_DEPTH) = 0;
	for (uint32_t i = 0; i < (BUG(SLIP_UNCLEARED) ? m->params : m->slots); i++)
		*frame_word(fp, FRAME_SLOTS - (int64_t)i) = i < m->params ? f->args[i] : 0;
	f->fp = fp;
	*++f->shadow = shadow_key(m, 0);
	if (f->vm->instrumentation && !f->vm->schedule.direct)
		atomic_fetch_add_explicit(&m->frames, 1, memory_order_relaxed);
	return true;
}

static void pop_frame(struct fiber *f)
{
	f->shadow--;
	if (f->linked) {
		linked_pop(f);
		return;
	}
	uintptr_t fp = f->fp;
	f->fp = *frame_word(fp, 0);
	set_sp(f, fp + 8);
}

void set_bci(struct fiber *f, int32_t bci)
{
	*frame_word(f->fp, FRAME_BCI) = (value)bci;
	*f->shadow = shadow_key(frame_method(f->fp), bci) | (*f->shadow & SHADOW_CALLED);
}

struct fiber *toy_enter(struct fiber *f)
{
	struct method *m = f->callee = f->vm->program->methods[f->callee->id];
	uint32_t calls = atomic_fetch_add_explicit(&m->calls, 1, memory_order_relaxed);
	if (!f->vm->schedule.interpreted && calls >= f->vm->schedule.compile_after)
		jit_compile(f->thread, m);
	return push_frame(f) ? toy_interpret(f) : throw_from_call(f);
}

static bool tick(struct fiber *f)
{
	return --f->ticks < 0 || atomic_load_explicit(f->word, memory_order_relaxed);
}

static struct virtual youngest(struct fiber *f)
{
	return (struct virtual){frame_method(f->fp), (int32_t)*frame_word(f->fp, FRAME_BCI),
				(uint32_t)*frame_word(f->fp, FRAME_DEPTH),
				frame_word(f->fp, FRAME_SLOTS)};
}

/* Returns the method that a virtual call selects, or null if it throws. The receiver is the first
 * argument; v->depth counts the arguments. */
struct method *resolve(struct fiber *f, const struct virtual *v)
{
	struct instruction ins = v->method->body[v->bci];
	value *first = v->slots - v->method->locals - v->depth + ins.b;
	struct program *p = f->vm->program;
	if (ins.op == OP_CALL)
		return p->methods[ins.a];
	struct object *o = object_of(*first);
	int16_t id =
		o && object_class(o) != CLASS_ARRAY ? p->classes[object_class(o)].table[ins.a] : -1;
	if (id < 0 || p->methods[id]->params != ins.b) {
		fiber_throw(f, EXCEPTION_TYPE);
		return NULL;
	}
	return p->methods[id];
}

static void copy_arguments(struct fiber *f, const struct virtual *v)
{
	uint32_t count = v->method->body[v->bci].b;
	for (uint32_t i = 0; i < count; i++)
		f->args[i] = v->slots[-(int64_t)(v->method->locals + v->depth - count + i)];
}

/* Leaves up to two spare double words between caller and callee, as adapters do. */
static struct fiber *call(struct fiber *f, const struct virtual *v)
{
	uint32_t count = v->method->body[v->bci].b;
	struct method *m = resolve(f, v);
	if (!m)
		return throw_value(f);
	copy_arguments(f, v);
	*frame_word(f->fp, FRAME_DEPTH) -= count;
	f->callee = m;
	if (!f->linked)
		set_sp(f, f->sp - 16 * random_below(&f->thread->random, 3));
	f->resume = f->linked ? stubs.linked_call : stubs.call;
	return f;
}

struct fiber *give_result(struct fiber *f, value result)
{
	uintptr_t pc = f->linked ? *frame_word(f->fp, 1) : 0;
	pop_frame(f);
	f->result = result;
	if (f->linked)
		return linked_return(f, pc);
	f->resume = stubs.ret;
	return f;
}

/* Executes an instruction that polls, after its poll. Returns null if the frame continues. */
static struct fiber *polled(struct fiber *f)
{
	struct virtual v = youngest(f);
	struct instruction ins = v.method->body[v.bci];
	value *top = v.slots - v.method->locals - v.depth;
	if (ins.op == OP_RET)
		return give_result(f, top[1]);
	if (ins.op == OP_YIELD) {
		top[0] = value_of(0);
		*frame_word(f->fp, FRAME_DEPTH) += 1;
		set_bci(f, v.bci + 1);
		return NULL;
	}
	struct blob *b = atomic_load_explicit(&v.method->blob, memory_order_acquire);
	struct fiber *next = b && !f->linked ? osr(f, b) : NULL;
	if (!next)
		set_bci(f, ins.a);
	return next;
}

struct fiber *toy_after_poll(struct fiber *f)
{
	struct fiber *next = polled(f);
	return next ? next : toy_interpret(f);
}

/* Runs the youngest frame until control leaves it. */
struct fiber *toy_interpret(struct fiber *f)
{
	for (;;) {
		f->pc = stubs.returned;
		end_with_frame(f);
		struct virtual v = youngest(f);
		struct instruction ins = v.method->body[v.bci];
		value *top = v.slots - v.method->locals - v.depth;
		set_bci(f, v.bci);
		if (f->thread->instants)
			signals_bytecode(f);
		struct fiber *next = NULL;
		switch (ins.op) {
		case OP_JMP:
			set_bci(f, ins.a);
			break;
		case OP_JZ:
			*frame_word(f->fp, FRAME_DEPTH) -= 1;
			set_bci(f, top[1] == value_of(0) || top[1] == 0 ? ins.a : v.bci + 1);
			break;
		case OP_CALL:
		case OP_CALLV:
			return call(f, &v);
		case OP_YIELD:
		case OP_LOOP:
		case OP_RET:
			f->resume = stubs.resume_poll;
			next = ins.op == OP_YIELD || tick(f) ? poll(f, ins.op == OP_YIELD)
							     : polled(f);
			if (next)
				return next;
			break;
		default:
			if (!do_op(f, &v))
				return throw_value(f);
			(void)deopt_outdated(f, false);
			*frame_word(f->fp, FRAME_DEPTH) += (value)effect[ins.op];
			set_bci(f, v.bci + 1);
		}
	}
}

/* Called when a callee has returned to an interpreted frame. */
struct fiber *toy_returned(struct fiber *f)
{
	struct virtual v = youngest(f);
	v.slots[-(int64_t)(v.method->locals + v.depth)] = f->result;
	*frame_word(f->fp, FRAME_DEPTH) += 1;
	set_bci(f, v.bci + 1);
	return toy_interpret(f);
}

/* ---- what compiled code leaves to C ------------------------------------------------- */

/* Another version of a method took the place of one that the frame has inlined while C code executed its
 * instruction. */
static struct fiber *go_on_interpreted(struct fiber *f, const struct virtual *v)
{
	const struct instruction ins = v->method->body[v->bci];
	const int32_t bci = v->bci;
	deopt_after_operation(f);
	*frame_word(f->fp, FRAME_DEPTH) += (value)effect[ins.op];
	set_bci(f, bci + 1);
	f->resume = stubs.resume_interpreter;
	return f;
}

static uint8_t op_of(const struct virtual *v)
{
	return v->method->body[v->bci].op;
}

struct fiber *toy_slow(struct fiber *f)
{
	struct frame frame;
	frame_first(f, &frame);
	f->resume = f->pc;
	if (f->vm->schedule.direct && op_of(&frame.frames[0]) == OP_ENTER)
		instrument_first_run(f, frame.frames[0].method);
	else if (!do_op(f, &frame.frames[0]))
		return throw_value(f);
	return deopt_outdated(f, false) ? go_on_interpreted(f, &frame.frames[0]) : f;
}

static struct fiber *poll_compiled(struct fiber *f, uintptr_t resume)
{
	struct frame frame;
	frame_first(f, &frame);
	f->resume = resume;
	return poll(f, frame.frames[0].method->body[frame.frames[0].bci].op == OP_YIELD);
}

struct fiber *toy_poll(struct fiber *f)
{
	return poll_compiled(f, f->pc);
}

struct fiber *toy_page(struct fiber *f)
{
	page_disarm(f->thread);
	return poll_compiled(f, stubs.page_again);
}

/* Finds the method of a virtual call. Compiled code then calls f->callee. */
struct fiber *toy_resolve(struct fiber *f)
{
	struct frame frame;
	frame_first(f, &frame);
	f->callee = resolve(f, &frame.frames[0]);
	if (!f->callee)
		return throw_value(f);
	copy_arguments(f, &frame.frames[0]);
	f->resume = stubs.resume_compiled;
	return f;
}

/* Called by a compiled method that has no room for its frame. sp points at its return slot. */
struct fiber *toy_grow(struct fiber *f)
{
	const struct blob *b = code_find(f->pc);
	f->callee = b->method;
	f->resume = stubs.resume_compiled;
	return reserve_frame(f, b->bytes) ? f : throw_from_call(f);
}
