/* SPDX-License-Identifier: MIT
 *
 * The template compiler. Its frames have no frame pointer, and only the blob knows their size. It
 * inlines, and polls at returns and back edges. Handlers are never compiled: a method that catches is deoptimized.
 */
#include <stdlib.h>

#include "emit.h"
#include "instrument.h"
#include "vm.h"

struct compiler {
	struct emitter e;
	struct thread *thread;
	const struct schedule *schedule;
	struct blob *b;
	uint8_t *sizes[64]; /* the places where the frame size will be written */
	int size_count, level;
	uint32_t bytes; /* that the scopes being compiled need if they are interpreted */
};

struct jump {
	uint8_t *at;
	int32_t target; /* -1: the end of the inlined method */
};

/* The scope being compiled. */
struct inlined {
	struct scope *scope;
	int16_t index;
	struct jump *jumps;
	int jump_count;
	uint32_t *offsets;
	uint32_t result; /* index of the word that takes the result, or 0 */
};

static uint32_t offset_now(const struct compiler *c)
{
	return (uint32_t)((uintptr_t)c->e.at - c->b->code);
}

static int64_t word(uint32_t index)
{
	return 8 * (int64_t)index;
}

/* The slot at a depth of the operand stack, and a local. */
static int64_t operand(const struct inlined *in, uint32_t depth)
{
	return word(in->scope->base - in->scope->method->locals - depth);
}

static int64_t local(const struct inlined *in, int64_t i)
{
	return word(in->scope->base) - 8 * i;
}

static void site(struct compiler *c, const struct inlined *in, int32_t bci, uint32_t depth)
{
	struct blob *b = c->b;
	if (!(b->site_count & (b->site_count + 1)))
		b->sites = realloc(b->sites, sizeof(*b->sites) * 2 * (size_t)(b->site_count + 1));
	b->sites[b->site_count++] = (struct site){offset_now(c), in->index, bci, depth};
}

/* From here on the code belongs to that position. */
static void mark_as(struct compiler *c, struct mark mark)
{
	struct blob *b = c->b;
	if (!c->schedule->signals)
		return;
	if (!(b->mark_count & (b->mark_count + 1)))
		b->marks = realloc(b->marks, sizeof(*b->marks) * 2 * (size_t)(b->mark_count + 1));
	mark.offset = offset_now(c);
	b->marks[b->mark_count++] = mark;
}

static void mark(struct compiler *c, int16_t scope, int32_t bci)
{
	mark_as(c, (struct mark){.scope = scope, .bci = bci});
}

static void frame_size(struct compiler *c)
{
	if (c->size_count == (int)(sizeof(c->sizes) / sizeof(c->sizes[0]))) {
		c->e.at = c->e.end;
		return;
	}
	c->sizes[c->size_count++] = c->e.at;
	emit_int(&c->e, 0);
}

/* Stores the position in the oracle's record of this frame. */
static void record_bci(struct compiler *c, int32_t bci)
{
	EMIT(&c->e, 0x41, 0xc7, 0x06); /* mov dword [r14], bci */
	emit_int(&c->e, bci);
}

static void leave(struct compiler *c, const struct inlined *in, uintptr_t stub, int32_t bci,
		  uint32_t depth)
{
	emit_to(&c->e, 0xe8, stub);
	site(c, in, bci, depth);
}

static void slow(struct compiler *c, const struct inlined *in, int32_t bci, uint32_t depth)
{
	record_bci(c, bci);
	leave(c, in, stubs.slow, bci, depth);
}

/* `ending`: after the poll the frame returns. */
static void emit_poll(struct compiler *c, const struct inlined *in, int32_t bci, uint32_t depth,
		      bool ending)
{
	struct emitter *e = &c->e;
	uint8_t *asked = NULL;
	record_bci(c, bci);
	if (c->schedule->page) {
		emit_load(e, RAX, R15, offsetof(struct fiber, page));
		site(c, in, bci, depth);
		EMIT(e, 0x85, 0x00); /* test [rax], eax */
	} else {
		emit_load(e, RAX, R15, offsetof(struct fiber, word));
		EMIT(e, 0x48, 0x83, 0x38, 0x00); /* cmp qword [rax], 0 */
		asked = emit_branch(e, 0x5);
	}
	emit_memory(e, 0xff, 1, R15, offsetof(struct fiber, ticks)); /* dec */
	if (ending)
		mark_as(c, (struct mark){.scope = in->index, .bci = bci, .ending = true});
	uint8_t *goes_on = emit_branch(e, 0x9);
	if (asked)
		emit_land(e, asked, e->at);
	leave(c, in, stubs.poll, bci, depth);
	emit_land(e, goes_on, e->at);
}

static void jump_to(struct compiler *c, struct inlined *in, uint8_t *at, int32_t target)
{
	if (target >= 0 && in->offsets[target])
		emit_land(&c->e, at, (uint8_t *)c->b->code + in->offsets[target]);
	else
		in->jumps[in->jump_count++] = (struct jump){at, target};
}

static uint8_t *jump(struct emitter *e)
{
	EMIT(e, 0xe9);
	emit_int(e, 0);
	return e->at - 4;
}

static void compare(struct emitter *e, uint8_t set)
{
	emit_registers(e, 0x39, RAX, RCX);
	EMIT(e, 0x0f, set, 0xc0, 0x0f, 0xb6, 0xc0); /* setcc al; movzx eax, al */
	EMIT(e, 0x48, 0x8d, 0x44, 0x00, 0x01);      /* lea rax, [rax + rax + 1] */
}

/* An operation with two operands. If they are not both integers, C code does it. */
static void binary(struct compiler *c, const struct inlined *in, struct instruction ins,
		   int32_t bci)
{
	struct emitter *e = &c->e;
	int64_t to = operand(in, ins.depth - 2u);
	emit_load(e, RAX, RSP, to);
	emit_load(e, RCX, RSP, operand(in, ins.depth - 1u));
	emit_registers(e, 0x89, RDX, RAX);
	emit_registers(e, 0x21, RDX, RCX);
	EMIT(e, 0xf6, 0xc2, 0x01); /* test dl, 1 */
	uint8_t *fast = emit_branch(e, 0x5);
	slow(c, in, bci, ins.depth);
	uint8_t *done = jump(e);
	emit_land(e, fast, e->at);
	if (ins.op == OP_ADD) {
		emit_registers(e, 0x01, RAX, RCX);
		EMIT(e, 0x48, 0xff, 0xc8); /* dec rax: the sum has two tags */
	} else if (ins.op == OP_SUB) {
		emit_registers(e, 0x29, RAX, RCX);
		EMIT(e, 0x48, 0xff, 0xc0); /* inc rax */
	} else {
		compare(e, ins.op == OP_LT ? 0x9c : 0x9e);
	}
	emit_store(e, RSP, to, RAX);
	emit_land(e, done, e->at);
}

static const enum reg arg_registers[PARAMS_MAX] = {RDI, RSI, RDX, RCX};

static struct method *method_of(const struct compiler *c, struct instruction ins)
{
	return c->thread->vm->program->methods[ins.a];
}

static void call(struct compiler *c, const struct inlined *in, struct instruction ins, int32_t bci)
{
	struct emitter *e = &c->e;
	uint32_t below = ins.depth - (uint32_t)ins.b;
	record_bci(c, bci);
	if (ins.op == OP_CALLV) {
		leave(c, in, stubs.resolve, bci, ins.depth);
	} else {
		for (uint32_t i = 0; i < ins.b; i++)
			emit_load(e, arg_registers[i], RSP, operand(in, below + i));
		emit_constant(e, R10, (uint64_t)(uintptr_t)method_of(c, ins));
	}
	emit_through(e, 2, R10, offsetof(struct method, entry_compiled));
	site(c, in, bci, below);
	emit_store(e, RSP, operand(in, below), RAX);
}

static void compile_scope(struct compiler *c, struct inlined *in);

static bool want_inline(const struct compiler *c, const struct method *m)
{
	return !m->native && m->count <= 60 && c->level < (int)c->schedule->inline_levels &&
	       c->b->scope_count < SCOPES_MAX && random_below(&c->thread->random, 4) != 0;
}

static void enter_record(struct compiler *c, struct method *m)
{
	struct emitter *e = &c->e;
	if (c->schedule->instrument && !c->schedule->direct) {
		emit_constant(e, RAX, (uint64_t)(uintptr_t)&m->frames);
		EMIT(e, 0xf0, 0x48, 0xff, 0x00); /* lock inc qword [rax] */
	}
	emit_constant(e, RAX, shadow_key(m, 0));
	emit_store(e, R14, 8, RAX);
	EMIT(e, 0x49, 0x83, 0xc6, 0x08); /* add r14, 8 */
}

static void clear_locals(struct compiler *c, const struct inlined *in)
{
	const struct method *m = in->scope->method;
	for (uint32_t i = m->params; i < m->locals; i++) {
		emit_memory(&c->e, 0xc7, 0, RSP, local(in, i));
		emit_int(&c->e, 0);
	}
}

/* The callee's words lie above the caller's, so none of them is lost. */
static void inline_call(struct compiler *c, const struct inlined *in, struct method *m,
			struct instruction ins, int32_t bci)
{
	struct emitter *e = &c->e;
	uint32_t below = ins.depth - (uint32_t)ins.b;
	struct inlined inner = {.index = (int16_t)c->b->scope_count++};
	inner.scope = &c->b->scopes[inner.index];
	*inner.scope = (struct scope){m, in->index, bci, below, in->scope->base + m->slots};
	c->bytes += 16 + (uint32_t)frame_bytes(m);
	if (c->b->bytes < c->bytes)
		c->b->bytes = c->bytes;
	inner.result = (uint32_t)(operand(in, below) / 8);
	record_bci(c, bci);
	for (uint32_t i = 0; i < ins.b; i++) {
		emit_load(e, RAX, RSP, operand(in, below + i));
		emit_store(e, RSP, local(&inner, i), RAX);
	}
	clear_locals(c, &inner);
	enter_record(c, m);
	mark(c, inner.index, 0);
	c->level++;
	compile_scope(c, &inner);
	c->level--;
	c->bytes -= 16 + (uint32_t)frame_bytes(m);
}

static void ret(struct compiler *c, struct inlined *in, struct instruction ins, int32_t bci)
{
	struct emitter *e = &c->e;
	if (!in->index || !c->schedule->quiet)
		emit_poll(c, in, bci, ins.depth, in->index == 0);
	emit_load(e, RAX, RSP, operand(in, ins.depth - 1u));
	EMIT(e, 0x49, 0x83, 0xee, 0x08); /* sub r14, 8 */
	if (in->index) {
		mark(c, in->scope->parent, in->scope->bci);
		emit_store(e, RSP, word(in->result), RAX);
		jump_to(c, in, jump(e), -1);
	} else {
		struct mark end = {.bci = bci, .ending = true, .unrecorded = true};
		mark_as(c, end);
		EMIT(e, 0x48, 0x81, 0xc4); /* add rsp, size */
		frame_size(c);
		end.bare = true;
		mark_as(c, end);
		EMIT(e, 0xc3);
	}
}

static void copy(struct compiler *c, int64_t from, int64_t to)
{
	emit_load(&c->e, RAX, RSP, from);
	emit_store(&c->e, RSP, to, RAX);
}

static void constant(struct compiler *c, int64_t to, value v)
{
	emit_constant(&c->e, RAX, v);
	emit_store(&c->e, RSP, to, RAX);
}

static void branch(struct compiler *c, struct inlined *in, struct instruction ins)
{
	struct emitter *e = &c->e;
	emit_load(e, RAX, RSP, operand(in, ins.depth - 1u));
	EMIT(e, 0x48, 0x83, 0xf8, 0x01); /* cmp rax, 1: null or zero */
	jump_to(c, in, emit_branch(e, 0x6), ins.a);
}

/* Calls a function of the meter on the stack of C. Compiled code keeps nothing in registers here. */
static void report(struct compiler *c, const struct inlined *in, uintptr_t function)
{
	struct emitter *e = &c->e;
	emit_registers(e, 0x89, RBX, RSP); /* C code saves rbx, and compiled code does not use it */
	emit_load(e, RDI, R15, offsetof(struct fiber, meter));
	emit_constant(e, RSI, (uint64_t)(uintptr_t)in->scope->method->meter);
	emit_registers(e, 0x89, RDX, R14);
	EMIT(e, 0x48, 0xf7, 0xd2); /* not rdx: see frame_id() */
	emit_load(e, RSP, R15, offsetof(struct fiber, c_sp));
	emit_constant(e, RAX, function);
	EMIT(e, 0xff, 0xd0); /* call rax */
	emit_registers(e, 0x89, RSP, RBX);
}

static void event(struct compiler *c, const struct inlined *in, struct instruction ins, int32_t bci)
{
	struct emitter *e = &c->e;
	if (!c->schedule->direct) {
		slow(c, in, bci, ins.depth);
	} else if (ins.op == OP_EXIT) {
		report(c, in, (uintptr_t)incstack_meter_exit);
	} else {
		report(c, in, (uintptr_t)incstack_meter_enter);
		EMIT(e, 0x85, 0xc0); /* test eax, eax */
		uint8_t *ran_before = emit_branch(e, 0x4);
		slow(c, in, bci, ins.depth);
		emit_land(e, ran_before, e->at);
	}
}

static void compile_one(struct compiler *c, struct inlined *in, struct instruction ins, int32_t bci)
{
	switch (ins.op) {
	case OP_CONST:
		constant(c, operand(in, ins.depth), value_of(ins.a));
		break;
	case OP_NULL:
		constant(c, operand(in, ins.depth), 0);
		break;
	case OP_LOAD:
		copy(c, local(in, ins.a), operand(in, ins.depth));
		break;
	case OP_STORE:
		copy(c, operand(in, ins.depth - 1u), local(in, ins.a));
		break;
	case OP_POP:
		break;
	case OP_ADD:
	case OP_SUB:
	case OP_LT:
	case OP_LE:
		binary(c, in, ins, bci);
		break;
	case OP_JMP:
		jump_to(c, in, jump(&c->e), ins.a);
		break;
	case OP_JZ:
		branch(c, in, ins);
		break;
	case OP_LOOP:
		emit_poll(c, in, bci, ins.depth, false);
		jump_to(c, in, jump(&c->e), ins.a);
		break;
	case OP_YIELD:
		record_bci(c, bci);
		leave(c, in, stubs.poll, bci, ins.depth);
		constant(c, operand(in, ins.depth), value_of(0));
		break;
	case OP_RET:
		ret(c, in, ins, bci);
		break;
	case OP_CALL:
		if (want_inline(c, method_of(c, ins))) {
			inline_call(c, in, method_of(c, ins), ins, bci);
			break;
		}
		call(c, in, ins, bci);
		break;
	case OP_CALLV:
		call(c, in, ins, bci);
		break;
	case OP_ENTER:
	case OP_EXIT:
		event(c, in, ins, bci);
		break;
	default:
		slow(c, in, bci, ins.depth);
	}
}

static void compile_scope(struct compiler *c, struct inlined *in)
{
	const struct method *m = in->scope->method;
	size_t count = (size_t)m->count;
	in->offsets = calloc(count, sizeof(*in->offsets));
	in->jumps = calloc(count, sizeof(*in->jumps));
	for (int32_t bci = 0; bci < m->count; bci++) {
		in->offsets[bci] = offset_now(c);
		if (c->schedule->signals)
			record_bci(c, bci);
		mark(c, in->index, bci);
		compile_one(c, in, m->body[bci], bci);
	}
	for (int i = 0; i < in->jump_count; i++) {
		const struct jump *j = &in->jumps[i];
		uint32_t target = j->target < 0 ? offset_now(c) : in->offsets[j->target];
		emit_land(&c->e, j->at, (uint8_t *)c->b->code + target);
	}
	free(in->jumps);
	if (in->index)
		free(in->offsets);
	else
		c->b->offsets = in->offsets;
}

/* rsp points at the return slot. If there is no room, C code grows the stack and calls the method
 * again. */
static void prologue(struct compiler *c, const struct inlined *root)
{
	struct emitter *e = &c->e;
	struct mark begin = {.bare = true, .unrecorded = true};
	mark_as(c, begin);
	EMIT(e, 0x48, 0x8d, 0x84, 0x24); /* lea rax, [rsp - size] */
	frame_size(c);
	emit_memory(e, 0x3b, RAX, R15, offsetof(struct fiber, limit));
	uint8_t *room = emit_branch(e, 0x3);
	emit_to(e, 0xe8, stubs.grow);
	emit_to(e, 0xe9, c->b->code);
	emit_land(e, room, e->at);
	EMIT(e, 0x48, 0x81, 0xec); /* sub rsp, size */
	frame_size(c);
	begin.bare = false;
	mark_as(c, begin);
	enter_record(c, root->scope->method);
	mark(c, 0, 0);
	for (uint32_t i = 0; i < root->scope->method->params; i++)
		emit_store(e, RSP, local(root, i), arg_registers[i]);
	clear_locals(c, root);
}

/* Returns false if there is no room for the code. */
static bool generate(struct compiler *c, struct method *m)
{
	enum { CODE_MAX = 64 << 10 };
	struct blob *b = c->b;
	uint8_t *code = code_take(CODE_MAX);
	if (!code)
		return false;
	c->e = (struct emitter){code, code + CODE_MAX};
	b->code = (uintptr_t)code;
	b->method = m;
	b->scope_count = 1;
	b->scopes[0] = (struct scope){m, -1, 0, 0, m->slots - 1};
	b->bytes = c->bytes = 8 + (uint32_t)frame_bytes(m);
	struct inlined root = {.scope = &b->scopes[0]};
	prologue(c, &root);
	compile_scope(c, &root);
	EMIT(&c->e, 0xcc);
	if (c->e.at == c->e.end)
		return false;
	for (int i = 0; i < c->size_count; i++) {
		int32_t size = i ? (int32_t)b->bytes : -(int32_t)b->bytes;
		memcpy(c->sizes[i], &size, sizeof(size));
	}
	b->end = (uintptr_t)c->e.at;
	code_give_back(c->e.at, code + CODE_MAX);
	return true;
}

void jit_compile(struct thread *t, struct method *m)
{
	pthread_mutex_lock(&t->vm->compile_lock);
	struct compiler c = {.thread = t, .schedule = &t->vm->schedule};
	if (!atomic_load(&m->blob) && (c.b = blob_new())) {
		if (generate(&c, m)) {
			blob_publish(c.b);
			atomic_store(&m->code, c.b->code);
			atomic_store(&m->blob, c.b);
			atomic_store(&m->entry_compiled, c.b->code);
			atomic_store(&m->entry_interpreted, stubs.compiled_i2c);
		} else {
			free(c.b->sites);
			free(c.b->offsets);
			free(c.b->marks);
			atomic_store(&m->calls, 0);
		}
	}
	pthread_mutex_unlock(&t->vm->compile_lock);
}
