/* SPDX-License-Identifier: MIT
 *
 * The interpreter: frames with a frame pointer on the fiber's stack, one C
 * activation at a time. Also the operations that compiled code leaves to C.
 */
#include <inttypes.h>
#include <stdio.h>

#include "vm.h"

/* Heap words are read and written by several threads, as in Java. */
static value get(const value *from)
{
	return __atomic_load_n(from, __ATOMIC_RELAXED);
}

static void set(value *to, value v)
{
	__atomic_store_n(to, v, __ATOMIC_RELAXED);
}

static bool fail(struct fiber *f, int exception)
{
	fiber_throw(f, exception);
	return false;
}

void fiber_throw(struct fiber *f, int exception)
{
	f->throwing = true;
	f->exception = value_of(exception);
}

static struct object *object_of(value v)
{
	return is_int(v) ? NULL : (struct object *)(uintptr_t)v;
}

/* Returns the field or the element that an instruction accesses, or null. */
static value *element(struct fiber *f, value of, int64_t i)
{
	struct object *o = object_of(of);
	if (!o || i < 0 || i >= object_length(o)) {
		fiber_throw(f, o ? EXCEPTION_BOUNDS : EXCEPTION_TYPE);
		return NULL;
	}
	return &o->fields[i];
}

static bool arithmetic(struct fiber *f, enum op op, value a, value b, value *out)
{
	if (op == OP_EQ || op == OP_NE) {
		*out = value_of((a == b) == (op == OP_EQ));
		return true;
	}
	if (!is_int(a) || !is_int(b))
		return fail(f, EXCEPTION_TYPE);
	uint64_t x = (uint64_t)int_of(a), y = (uint64_t)int_of(b), r = 0;
	if ((op == OP_DIV || op == OP_MOD) && (y == 0 || y == UINT64_MAX)) {
		if (y == 0)
			return fail(f, EXCEPTION_DIVISION);
		r = op == OP_DIV ? -x : 0;
	} else {
		switch (op) {
		case OP_ADD:
			r = x + y;
			break;
		case OP_SUB:
			r = x - y;
			break;
		case OP_MUL:
			r = x * y;
			break;
		case OP_DIV:
			r = (uint64_t)((int64_t)x / (int64_t)y);
			break;
		case OP_MOD:
			r = (uint64_t)((int64_t)x % (int64_t)y);
			break;
		case OP_AND:
			r = x & y;
			break;
		case OP_OR:
			r = x | y;
			break;
		case OP_XOR:
			r = x ^ y;
			break;
		case OP_LT:
			r = (int64_t)x < (int64_t)y;
			break;
		default:
			r = (int64_t)x <= (int64_t)y;
			break;
		}
	}
	*out = value_of((int64_t)r);
	return true;
}

static bool new_object(struct fiber *f, uint32_t class, value *top, value length)
{
	if (class == CLASS_ARRAY &&
	    (!is_int(length) || int_of(length) < 0 || int_of(length) > 1 << 20))
		return fail(f, EXCEPTION_BOUNDS);
	struct object *o = heap_new(f, class, (uint32_t)int_of(length));
	if (o)
		*top = (value)(uintptr_t)o;
	return o != NULL;
}

static bool spawn(struct fiber *f, value method, value argument)
{
	const struct program *p = f->vm->program;
	if (!is_int(method) || (uint64_t)int_of(method) >= (uint64_t)p->method_count)
		return fail(f, EXCEPTION_TYPE);
	struct method *m = p->methods[int_of(method)];
	if (m->params != 1 || m->native)
		return fail(f, EXCEPTION_TYPE);
	fiber_spawn(f->vm, m, argument);
	return true;
}

static void print(struct fiber *f, value v)
{
	pthread_mutex_lock(&f->vm->lock);
	f->vm->checksum += is_int(v) ? (uint64_t)int_of(v) : 1;
	if (f->vm->print)
		printf("%" PRId64 "\n", is_int(v) ? int_of(v) : -1);
	pthread_mutex_unlock(&f->vm->lock);
}

static bool memory_op(struct fiber *f, struct instruction ins, value *top, const struct program *p)
{
	value *at;
	switch (ins.op) {
	case OP_NEW:
		return new_object(f, (uint32_t)ins.a, top, value_of(p->classes[ins.a].fields));
	case OP_ARRAY:
		return new_object(f, CLASS_ARRAY, top + 1, top[1]);
	case OP_LEN:
		if (!object_of(top[1]))
			return fail(f, EXCEPTION_TYPE);
		top[1] = value_of(object_length(object_of(top[1])));
		return true;
	case OP_ALOAD:
		if (!is_int(top[1]))
			return fail(f, EXCEPTION_TYPE);
		at = element(f, top[2], int_of(top[1]));
		return at ? top[2] = get(at), true : false;
	case OP_ASTORE:
		if (!is_int(top[2]))
			return fail(f, EXCEPTION_TYPE);
		at = element(f, top[3], int_of(top[2]));
		return at ? set(at, top[1]), true : false;
	case OP_FLOAD:
		at = element(f, top[1], ins.a);
		return at ? top[1] = get(at), true : false;
	case OP_FSTORE:
		at = element(f, top[2], ins.a);
		return at ? set(at, top[1]), true : false;
	default:
		return fail(f, EXCEPTION_TYPE);
	}
}

/* Executes an instruction that is not control flow, on the operand stack of a frame of either kind.
 * top[1] is the youngest value, top[0] the next free slot. Returns false if it throws. */
bool do_op(struct fiber *f, const struct virtual *v)
{
	struct instruction ins = v->method->body[v->bci];
	value *top = v->slots - v->method->locals - v->depth;
	switch (ins.op) {
	case OP_CONST:
		top[0] = value_of(ins.a);
		return true;
	case OP_NULL:
		top[0] = 0;
		return true;
	case OP_LOAD:
		top[0] = v->slots[-ins.a];
		return true;
	case OP_STORE:
		v->slots[-ins.a] = top[1];
		return true;
	case OP_POP:
		return true;
	case OP_GLOAD:
		top[0] = get(&f->vm->globals[ins.a]);
		return true;
	case OP_GSTORE:
		set(&f->vm->globals[ins.a], top[1]);
		return true;
	case OP_NOT:
		top[1] = value_of(top[1] == value_of(0) || top[1] == 0);
		return true;
	case OP_FUEL:
		top[0] = value_of(f->fuel > 0 ? f->fuel-- : 0);
		return true;
	case OP_SPAWN:
		top[2] = spawn(f, top[2], top[1]) ? value_of(0) : top[2];
		return !f->throwing;
	case OP_PRINT:
		print(f, top[1]);
		return true;
	case OP_THROW:
		f->throwing = true;
		f->exception = top[1];
		return false;
	default:
		if (ins.op >= OP_ADD && ins.op <= OP_NE)
			return arithmetic(f, (enum op)ins.op, top[2], top[1], &top[2]);
		return memory_op(f, ins, top, f->vm->program);
	}
}

/* How far an instruction without control flow changes the operand stack. */
static const int8_t effect[] = {
	[OP_CONST] = 1,   [OP_NULL] = 1, [OP_LOAD] = 1,   [OP_STORE] = -1,  [OP_POP] = -1,
	[OP_GLOAD] = 1,   [OP_ADD] = -1, [OP_SUB] = -1,   [OP_MUL] = -1,    [OP_DIV] = -1,
	[OP_MOD] = -1,    [OP_AND] = -1, [OP_OR] = -1,    [OP_XOR] = -1,    [OP_LT] = -1,
	[OP_LE] = -1,     [OP_EQ] = -1,  [OP_NE] = -1,    [OP_NEW] = 1,     [OP_ALOAD] = -1,
	[OP_ASTORE] = -3, [OP_FUEL] = 1, [OP_SPAWN] = -1, [OP_FSTORE] = -2, [OP_GSTORE] = -1,
	[OP_THROW] = 0,
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
	*f->shadow = shadow_key(frame_method(f->fp), bci);
}

struct fiber *toy_enter(struct fiber *f)
{
	struct method *m = f->callee;
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

struct fiber *toy_slow(struct fiber *f)
{
	struct frame frame;
	frame_first(f, &frame);
	f->resume = f->pc;
	return do_op(f, &frame.frames[0]) ? f : throw_value(f);
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
