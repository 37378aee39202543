/* SPDX-License-Identifier: MIT
 *
 * The generated stubs: the ways between C and the stacks of the VM, between
 * interpreted and compiled callers, and the return addresses that the VM plants.
 *
 * r15: the fiber, r14: the oracle's record of the youngest frame, rbp: the
 * youngest frame that has a frame pointer. Compiled callers pass arguments in rdi,
 * rsi, rdx, rcx and the method in r10; interpreted ones in fiber->args.
 */
#include <stddef.h>

#include "emit.h"
#include "vm.h"

struct stubs stubs;

#define FIBER(member) R15, (int64_t)offsetof(struct fiber, member)
static const enum reg arg_registers[PARAMS_MAX] = {RDI, RSI, RDX, RCX};
static const enum reg c_saved[] = {RBX, RBP, R12, R13, R14, R15};
enum { C_SAVED = sizeof(c_saved) / sizeof(c_saved[0]) };

static void push(struct emitter *e, unsigned reg)
{
	EMIT(e, (uint8_t)(0x40 | reg >> 3), (uint8_t)(0x50 | (reg & 7)));
}

static void pop(struct emitter *e, unsigned reg)
{
	EMIT(e, (uint8_t)(0x40 | reg >> 3), (uint8_t)(0x58 | (reg & 7)));
}

static void save_state(struct emitter *e)
{
	emit_store(e, FIBER(sp), RSP);
	emit_store(e, FIBER(fp), RBP);
	emit_store(e, FIBER(shadow), R14);
}

static void resume(struct emitter *e)
{
	emit_load(e, RSP, FIBER(sp));
	emit_load(e, RBP, FIBER(fp));
	emit_load(e, R14, FIBER(shadow));
	emit_through(e, 4, FIBER(resume));
}

static void load_flags(struct emitter *e)
{
	EMIT(e, 0x9d); /* popf */
}

/* Leaves the VM's stack, calls function(fiber), and continues with the fiber that it returns. For
 * signals.c the processor steps through the VM's code, if the fiber says so, but not through C. */
static void to_c(struct emitter *e, struct fiber *(*function)(struct fiber *))
{
	save_state(e);
	emit_load(e, RSP, FIBER(c_sp));
	emit_registers(e, 0x89, RDI, R15);
	if (stubs_step) {
		EMIT(e, 0x68, 0x02, 0x02, 0, 0); /* push: interrupts are enabled, nothing else */
		load_flags(e);
	}
	emit_constant(e, RAX, (uint64_t)(uintptr_t)function);
	EMIT(e, 0xff, 0xd0); /* call rax */
	emit_registers(e, 0x89, R15, RAX);
	if (stubs_step) {
		emit_memory(e, 0xff, 6, FIBER(flags)); /* push */
		load_flags(e);
	}
	resume(e);
}

static uintptr_t here(const struct emitter *e)
{
	return (uintptr_t)e->at;
}

static void save_args(struct emitter *e)
{
	for (int i = 0; i < PARAMS_MAX; i++)
		emit_store(e, FIBER(args[i]), arg_registers[i]);
}

static void load_args(struct emitter *e)
{
	for (int i = 0; i < PARAMS_MAX; i++)
		emit_load(e, arg_registers[i], FIBER(args[i]));
}

static void make_enter(struct emitter *e)
{
	stubs.enter = (void (*)(struct fiber *))here(e);
	for (int i = 0; i < C_SAVED; i++)
		push(e, c_saved[i]);
	emit_registers(e, 0x89, R15, RDI);
	emit_through(e, 6, FIBER(c_sp)); /* push the stack pointer of an outer enter */
	emit_store(e, FIBER(c_sp), RSP);
	resume(e);
}

/* The stub that returns from enter. */
static void make_leave(struct emitter *e)
{
	stubs.leave = here(e);
	save_state(e);
	emit_load(e, RSP, FIBER(c_sp));
	if (stubs_step) {
		EMIT(e, 0x68, 0x02, 0x02, 0, 0);
		load_flags(e);
	}
	pop(e, RAX);
	emit_store(e, FIBER(c_sp), RAX);
	for (int i = C_SAVED - 1; i >= 0; i--)
		pop(e, c_saved[i]);
	EMIT(e, 0xc3);
}

/* A stub that calls fiber->callee. Returns the address that the callee returns to. */
static uintptr_t make_call(struct emitter *e)
{
	emit_load(e, R10, FIBER(callee));
	emit_through(e, 2, R10, offsetof(struct method, entry_interpreted));
	uintptr_t returned = here(e);
	emit_store(e, FIBER(result), RAX);
	return returned;
}

static uintptr_t make_entry(struct emitter *e, struct fiber *(*function)(struct fiber *),
			    uintptr_t *from_compiled)
{
	*from_compiled = here(e);
	save_args(e);
	uintptr_t entry = here(e);
	emit_store(e, FIBER(callee), R10);
	to_c(e, function);
	return entry;
}

/* A stub that compiled code calls. Its return address is the position in that code. */
static uintptr_t make_exit(struct emitter *e, struct fiber *(*function)(struct fiber *))
{
	uintptr_t start = here(e);
	emit_memory(e, 0x8f, 0, FIBER(pc)); /* pop */
	to_c(e, function);
	return start;
}

static uintptr_t make_resume(struct emitter *e, struct fiber *(*function)(struct fiber *))
{
	uintptr_t start = here(e);
	to_c(e, function);
	return start;
}

static void make_adapters(struct emitter *e)
{
	stubs.interpreter = make_entry(e, toy_enter, &stubs.interpreter_c2i);
	stubs.native = make_entry(e, toy_native, &stubs.native_c2i);
	stubs.compiled_i2c = here(e);
	load_args(e);
	emit_through(e, 4, R10, offsetof(struct method, code));
	stubs.grow = here(e);
	save_args(e);
	make_exit(e, toy_grow);
	stubs.resume_compiled = here(e);
	load_args(e);
	emit_load(e, R10, FIBER(callee));
	emit_through(e, 4, FIBER(pc));
}

void stubs_make(void)
{
	uint8_t *code = code_take(4096);
	struct emitter emitter = {code, code + 4096}, *e = &emitter;
	EMIT(e, 0xcc);
	make_enter(e);
	stubs.call = here(e);
	stubs.returned = make_call(e);
	to_c(e, toy_returned);
	stubs.callback = here(e);
	stubs.called_back = make_call(e);
	make_leave(e);
	stubs.ret = here(e);
	emit_load(e, RAX, FIBER(result));
	EMIT(e, 0xc3, 0xcc);
	stubs.start = here(e);
	emit_load(e, R10, FIBER(callee));
	emit_through(e, 4, R10, offsetof(struct method, entry_interpreted));
	stubs.base = here(e);
	emit_store(e, FIBER(result), RAX);
	to_c(e, toy_fiber_end);
	EMIT(e, 0xcc);
	stubs.deopt = here(e);
	emit_store(e, FIBER(result), RAX);
	to_c(e, toy_deopt_return);
	stubs.resume_poll = make_resume(e, toy_after_poll);
	stubs.resume_interpreter = make_resume(e, toy_interpret);
	stubs.linked_call = make_resume(e, toy_linked_call);
	stubs.linked_returned = make_resume(e, toy_returned);
	make_adapters(e);
	stubs.poll = make_exit(e, toy_poll);
	stubs.page = make_resume(e, toy_page);
	stubs.page_again = here(e);
	emit_load(e, RAX, FIBER(page));
	emit_through(e, 4, FIBER(pc));
	stubs.slow = make_exit(e, toy_slow);
	stubs.resolve = make_exit(e, toy_resolve);
}
