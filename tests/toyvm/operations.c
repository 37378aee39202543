/* SPDX-License-Identifier: MIT
 *
 * The instructions that are not control flow: arithmetic, objects, globals. The interpreter and what compiled
 * code leaves to C execute them on the operand stack of a frame.
 */
#include <inttypes.h>
#include <stdio.h>

#include "instrument.h"
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
		instrument_class(f, (uint32_t)ins.a);
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
	case OP_ENTER:
		instrument_enter(f, v->method);
		return true;
	case OP_EXIT:
		instrument_exit(f, v->method);
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
