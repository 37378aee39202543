/* SPDX-License-Identifier: MIT
 *
 * Signals at random instants, and what their handler tells the library. Code of the VM is interrupted
 * at each instruction that is chosen: compiled code and the library's trampoline by the processor's
 * trap flag, the interpreter before a bytecode. So the instants depend on the seed only, and
 * the oracle's record is that of the very instruction. C code that the VM's code calls is not
 * interrupted.
 */
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#include "vm.h"

enum {
	FLAGS = 0x202, /* of a processor that does not trap: interrupts are enabled */
	TRAP = 0x100,
	STEPS_MOST = 600,
	SIGNAL_STACK = 64 << 10,
};

struct instants {
	uint64_t random;
	int64_t steps;     /* traps until the code runs freely again */
	int64_t chosen;    /* instructions or bytecodes until the next signal */
	bool in_bytecode;  /* the interpreter is interrupted */
	size_t count;      /* entries of the oracle's record in compiled code */
	uintptr_t sp;      /* the last stack pointer there */
	bool all_compiled; /* described states are sampled at once */
	char stack[SIGNAL_STACK];
};

bool stubs_step;
static _Thread_local struct thread *mine;

static void choose(struct instants *in, uint32_t mean)
{
	in->chosen = 1 + random_below(&in->random, 2 * mean);
}

/* ---- what the library asks in the handler ------------------------------------------------ */

/* In the interpreter the frame is known. It polls before it returns. */
static int in_interpreter(const struct fiber *f, struct incstack_top *top)
{
	const uint64_t key =
		shadow_key(frame_method(f->fp), (int32_t)*frame_word(f->fp, FRAME_BCI));
	*top = (struct incstack_top){.pc = position_number(key),
				     .sp = f->linked ? f->fp : f->sp,
				     .fp = f->fp,
				     .slot = f->linked ? 0 : f->fp + 8,
				     .flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_STAYS};
	return 0;
}

/* In the library's trampoline: the frame whose return slot was at in->sp is gone. */
static int in_trampoline(const struct instants *in, struct incstack_top *top)
{
	top->slot = in->sp;
	return callers_are_compiled(in->sp);
}

int signals_interrupted(void *context, const struct incstack_interruption *at,
			struct incstack_top *top)
{
	const greg_t *registers = ((const ucontext_t *)at->ucontext)->uc_mcontext.gregs;
	const struct instants *in = mine->instants;
	const uintptr_t pc = (uintptr_t)registers[REG_RIP], sp = (uintptr_t)registers[REG_RSP];
	const struct blob *b = code_find(pc);
	(void)context;
	if (in->in_bytecode)
		return in_interpreter(mine->fiber, top);
	*top = (struct incstack_top){.pc = pc, .sp = sp, .fp = (uintptr_t)registers[REG_RBP]};
	top->flags = INCSTACK_TOP_EXACT;
	if (!b)
		return code_contains(pc) ? INCSTACK_EUNWIND : in_trampoline(in, top);
	const struct mark *mark = blob_mark(b, pc);
	top->slot = sp + (mark->bare ? 0 : b->bytes);
	if (!mark->ending || BUG(BUG_END_PROMISED))
		top->flags |= INCSTACK_TOP_STAYS;
	else if (code_find(incstack_slot_read((const uintptr_t *)top->slot) - 1))
		top->flags |= INCSTACK_TOP_CALLER_STAYS;
	return in->all_compiled && callers_are_compiled(top->slot);
}

/* ---- handlers -------------------------------------------------------------------------- */

/* The entry that the record lacks at the begin and the end of a compiled function. */
static uint64_t unrecorded(uintptr_t pc)
{
	const struct blob *b = code_find(pc);
	const struct mark *mark = b ? blob_mark(b, pc) : NULL;
	return mark && mark->unrecorded ? shadow_key(b->method, mark->bci) : 0;
}

static void ask(struct fiber *f, size_t count, uint64_t youngest, const void *ucontext)
{
	struct instants *in = f->thread->instants;
	in->all_compiled = random_below(&in->random, 2);
	oracle_signal(f, count, youngest, random_next(&in->random) >> 8, ucontext);
	struct incstack_signal_stats stats = {.size = sizeof(stats)};
	incstack_stack_signal_stats(f->stack, &stats);
	if (stats.pending)
		f->ticks = 0; /* the next poll is taken */
	choose(in, f->vm->schedule.signals);
}

/* Whether the next instruction stores the position in the oracle's record (jit.c). A jump may have led
 * there, so the record may still be that of another position. */
static bool stores_position(uintptr_t pc)
{
	const uint8_t *at = (const uint8_t *)pc;
	return code_find(pc) && at[0] == 0x41 && at[1] == 0xc7 && at[2] == 0x06;
}

static void on_trap(int number, siginfo_t *info, void *ucontext)
{
	greg_t *registers = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
	const uintptr_t pc = (uintptr_t)registers[REG_RIP];
	struct fiber *f = mine->fiber;
	struct instants *in = mine->instants;
	(void)number;
	(void)info;
	if (in->steps-- <= 0) {
		registers[REG_EFL] &= ~(greg_t)TRAP;
		f->flags = FLAGS;
		return;
	}
	if (code_contains(pc)) {
		in->count = (size_t)((uint64_t *)registers[REG_R14] - f->shadow_base) + 1;
		in->sp = (uintptr_t)registers[REG_RSP];
	}
	if (--in->chosen <= 0 && !stores_position(pc))
		ask(f, in->count, unrecorded(pc), ucontext);
}

static void on_bytecode(int number, siginfo_t *info, void *ucontext)
{
	struct fiber *f = mine->fiber;
	(void)number;
	(void)info;
	ask(f, (size_t)(f->shadow - f->shadow_base) + 1, 0, ucontext);
}

/* ---- when ---------------------------------------------------------------------------------- */

void signals_open(void)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction user = {.sa_sigaction = on_bytecode, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stubs_step = true;
	if (sigaction(SIGTRAP, &trap, NULL) || sigaction(SIGUSR1, &user, NULL))
		abort();
}

/* Every second thread has a signal stack. On the others the handlers run on the stacks of fibers. */
void signals_begin(struct thread *t)
{
	if (!t->vm->schedule.signals)
		return;
	t->instants = calloc(1, sizeof(*t->instants));
	t->instants->random = t->random + 77;
	const stack_t stack = {.ss_sp = t->instants->stack, .ss_size = SIGNAL_STACK};
	if ((t - t->vm->threads) % 2 == 0 && sigaltstack(&stack, NULL))
		abort();
	choose(t->instants, t->vm->schedule.signals);
	mine = t;
}

void signals_end(struct thread *t)
{
	const stack_t none = {.ss_flags = SS_DISABLE};
	if (!t->instants)
		return;
	sigaltstack(&none, NULL);
	free(t->instants);
	mine = NULL;
}

/* Called at the end of a poll: after one of eight the code is stepped through for a while. */
void signals_go_on(struct fiber *f)
{
	struct instants *in = f->thread->instants;
	if (!in)
		return;
	const bool steps = random_below(&in->random, 8) == 0;
	in->steps = steps ? random_below(&in->random, STEPS_MOST) : 0;
	f->flags = steps ? FLAGS | TRAP : FLAGS;
}

/* Called before each bytecode of the interpreter. */
void signals_bytecode(struct fiber *f)
{
	struct instants *in = f->thread->instants;
	if (--in->chosen > 0)
		return;
	in->in_bytecode = true;
	raise(SIGUSR1);
	in->in_bytecode = false;
}

/* Called at polls, and where frames are about to be popped. */
void signals_drain(struct fiber *f)
{
	const struct incstack_top top = {
		.pc = f->pc,
		.sp = f->linked ? f->fp : f->sp,
		.fp = f->fp,
		.flags = f->linked ? INCSTACK_TOP_EXACT | INCSTACK_TOP_DECODE_NOW : 0};
	if (incstack_stack_queue_drain(f->stack, &top))
		COUNT(mismatches);
}
