/* SPDX-License-Identifier: MIT
 *
 * toyvm_bias: how far the profile of a sampler is from the truth. Each instruction of compiled code is
 * counted with its position: that is the truth. At every 13th of them a sample is due. The first
 * sampler takes it at the next poll. The second one asks for it in a signal handler, and the
 * poll drains the queue. The distance of two profiles is half the sum of the differences of the shares of
 * all positions: 0 if they are equal, 1 if they have nothing in common.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "vm.h"
#include "../../unit/taken.h"

enum { FLAGS = 0x202, TRAP = 0x100, STRIDE = 13, QUEUE = 64, POSITIONS = 1 << 12, METHODS = 16 };
enum sampler { AT_POLLS, BY_SIGNALS };

/* The largest distance of the sampler by signals, and the least of the one at polls. */
static const double near = 0.02, far = 0.3;

#define CALLS \
	"def tiny(x) { return x; }\n" \
	"def main(n) { var i = 0; var s = 0;\n" \
	"  while (i < n) { s = tiny(i) + tiny(s); i = i + 1; }\n" \
	"  return s; }\n"

static const struct scene {
	const char *name, *text;
	uint32_t inline_levels;
	bool describes; /* what the handler can sample at once, it does */
} scenes[] = {
	{"a loop whose body does not poll",
	 "def main(n) { var i = 0; var s = 0;\n"
	 "  while (i < n) { s = s + i + i - 3 + i - i + 7 - s + i; s = s - i + 2 + i; i = i + 1; "
	 "}\n"
	 "  return s; }\n",
	 0, false},
	{"a hot leaf that is inlined",
	 "def leaf(x) { return x + x - 1 + x + x - 2 + x + x - 3 + x; }\n"
	 "def main(n) { var i = 0; var s = 0;\n"
	 "  while (i < n) { s = leaf(i) - leaf(s); i = i + 1; }\n"
	 "  return s; }\n",
	 3, false},
	{"functions that mostly begin and end", CALLS, 0, true},
	{"the same, all of it through the queue", CALLS, 0, false},
};

static struct {
	const struct scene *scene;
	enum sampler sampler;
	uint64_t step, due;
	double truth[METHODS][POSITIONS], seen[METHODS][POSITIONS];
	uint64_t taken[4];
	uint64_t failed;
} run;

bool stubs_step;
static _Thread_local struct thread *mine;

/* ---- what the library asks in the handler ------------------------------------------------ */

/* A frame that has polled for the last time returns; if to compiled code, that polls again. */
static uint32_t promise(const struct mark *mark, uintptr_t slot)
{
	if (!mark->ending)
		return INCSTACK_TOP_STAYS;
	return code_find(incstack_slot_read((const uintptr_t *)slot) - 1)
		       ? INCSTACK_TOP_CALLER_STAYS
		       : 0;
}

int signals_interrupted(void *context, const struct incstack_interruption *at,
			struct incstack_top *top)
{
	const greg_t *registers = ((const ucontext_t *)at->ucontext)->uc_mcontext.gregs;
	const uintptr_t pc = (uintptr_t)registers[REG_RIP], sp = (uintptr_t)registers[REG_RSP];
	const struct blob *b = code_find(pc);
	const struct mark *mark = b ? blob_mark(b, pc) : NULL;
	(void)context;
	if (!mark)
		return INCSTACK_EUNWIND;
	*top = (struct incstack_top){.pc = pc, .sp = sp, .fp = (uintptr_t)registers[REG_RBP]};
	top->slot = sp + (mark->bare ? 0 : b->bytes);
	top->flags = INCSTACK_TOP_EXACT | promise(mark, top->slot);
	return run.scene->describes && callers_are_compiled(top->slot);
}

/* ---- sampling ------------------------------------------------------------------------------ */

static void take(struct fiber *f, const void *ucontext)
{
	if (run.sampler == AT_POLLS)
		run.due++;
	else if (incstack_stack_sample_signal(f->stack, 0, 1, ucontext) < 0)
		run.failed++;
	f->ticks = 0; /* the next poll is taken */
}

static void on_trap(int number, siginfo_t *info, void *ucontext)
{
	const uintptr_t pc = (uintptr_t)((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP];
	const struct blob *b = code_find(pc);
	const struct mark *mark = b ? blob_mark(b, pc) : NULL;
	(void)number;
	(void)info;
	if (!mark)
		return;
	run.truth[b->scopes[mark->scope].method->id][mark->bci]++;
	if (++run.step % STRIDE == 0)
		take(mine->fiber, ucontext);
}

static void retrieve(struct fiber *f)
{
	struct incstack_tree *tree;
	if (incstack_stack_retrieve(f->stack, &tree))
		abort();
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		run.seen[t->top->function][t->top->position] += (double)t->weight;
		run.taken[trace_taken(t)]++;
	}
	incstack_tree_release(tree);
}

/* Called at polls, and at the end of the program. */
void signals_drain(struct fiber *f)
{
	const struct incstack_top top = {.pc = f->pc, .sp = f->sp, .fp = f->fp};
	if (run.due && incstack_stack_sample_at_poll(f->stack, 0, run.due, &top))
		abort();
	run.due = 0;
	if (incstack_stack_queue_drain(f->stack, &top) || incstack_stack_reserve(f->stack, 1 << 14))
		abort();
	f->flags = FLAGS | TRAP;
	if (f->pc == stubs.base || incstack_stack_room(f->stack) < 1 << 13 || run.step % 64 == 0)
		retrieve(f);
}

void signals_open(void)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	stubs_step = true;
	if (sigaction(SIGTRAP, &trap, NULL))
		abort();
}

void signals_begin(struct thread *t)
{
	mine = t;
}

void signals_end(struct thread *t)
{
	(void)t;
}

void signals_go_on(struct fiber *f)
{
	(void)f;
}

void signals_bytecode(struct fiber *f)
{
	(void)f;
}

/* ---- what must hold ------------------------------------------------------------------------ */

static double sum(double of[METHODS][POSITIONS])
{
	double all = 0;
	for (int i = 0; i < METHODS * POSITIONS; i++)
		all += of[i / POSITIONS][i % POSITIONS];
	return all;
}

static double distance(void)
{
	const double truth = sum(run.truth), seen = sum(run.seen);
	double all = 0;
	for (int m = 0; m < METHODS; m++)
		for (int bci = 0; bci < POSITIONS; bci++)
			all += fabs(run.truth[m][bci] / truth - run.seen[m][bci] / seen);
	return all / 2;
}

static void nothing(struct vm *vm)
{
	(void)vm;
}

static double measure(const struct scene *scene, enum sampler sampler)
{
	static const struct sampling sampling = {nothing, nothing, NULL};
	const struct schedule schedule = {.threads = 1,
					  .signals = 1,
					  .quiet = true,
					  .inline_levels = scene->inline_levels,
					  .sampling = &sampling};
	struct parse_error error;
	struct program *p = program_parse(scene->text, strlen(scene->text), &error);
	if (!p)
		abort();
	memset(&run, 0, sizeof(run));
	run.scene = scene;
	run.sampler = sampler;
	vm_run(p, &schedule, 4, 200, false);
	program_free(p);
	printf("  %s: distance %.4f from %.0f instructions; samples %.0f, directly %d, in the "
	       "handler "
	       "%d, from the queue %d, biased %d, failed %d\n",
	       sampler == AT_POLLS ? "at polls  " : "by signals", distance(), sum(run.truth),
	       sum(run.seen), (int)run.taken[0], (int)run.taken[1], (int)run.taken[2],
	       (int)run.taken[3], (int)run.failed);
	return distance();
}

static double biased_share(void)
{
	return (double)run.taken[TAKEN_BIASED] / sum(run.seen);
}

int main(void)
{
	bool good = true;
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		puts(scenes[i].name);
		good &= measure(&scenes[i], AT_POLLS) >= far;
		good &= measure(&scenes[i], BY_SIGNALS) <= near;
		good &= biased_share() <= 0.002;
	}
	puts(good ? "as expected" : "FAILED");
	return !good || counters.mismatches;
}
