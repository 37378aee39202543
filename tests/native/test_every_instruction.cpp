/* SPDX-License-Identifier: MIT
 *
 * Samples at every instruction of functions that copy return addresses, leave frames without
 * returning, or run before a program's addresses are known. A tracer stops a process at each
 * instruction and sends it a signal there, or, where no signal is blocked, the processor's trap flag
 * stops it, which is faster. The handler samples where the rules describe the interrupted code. Each
 * sample must be refused or equal a full walk by libunwind, and the functions must do what they do
 * without samples.
 */
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <spawn.h>
#include <string>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "trace/hooks.h"
#include "../unit/run_suite.h"

#include <incstack/native.h>

extern "C" {
enum incstack__native_described {
	INCSTACK__NATIVE_DESCRIBED,
	INCSTACK__NATIVE_NO_RULE,
	INCSTACK__NATIVE_INEXACT,
};
struct incstack__native_bounds {
	uintptr_t low, high;
};
typedef int incstack__native_find(void *context, uintptr_t address, struct incstack_rule *rule);
enum incstack__native_described incstack__native_is_described(incstack__native_find *find,
							      struct incstack__native_bounds stack,
							      const struct incstack_top *top);
int incstack__trampoline_contains(uintptr_t pc);
}

#define NOINLINE __attribute__((noinline))
#define STOP() __asm__ volatile("int3" ::: "memory") /* stepping begins, or ends */

enum { SAMPLES = 1 << 17, FRAMES = 1 << 22, DEPTH = 64, SIGNAL = SIGUSR2, TRAP_FLAG = 0x100 };

/* ---- the process that is stepped ------------------------------------------------------- */

static struct incstack_runtime *runtime;
static struct incstack_stack *stack;
static struct incstack__native_bounds bounds;
static struct incstack_frame *frames; /* of the reference walks */
static int first[SAMPLES + 1];
static int samples, refused[3], busy, no_reference;

static struct incstack_top top_of(const ucontext_t *context)
{
	struct incstack_top top = {};
	top.pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	top.sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
	top.fp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
	top.flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED;
	return top;
}

/* Walks with libunwind, and keeps the frames from the top on. In the trampoline the top is the frame
 * that is returned to, so there is nothing to compare. */
static void take_reference(const struct incstack_top *top)
{
	struct incstack_frame *to = frames + first[samples];
	int count = incstack_native_walk(to, DEPTH), at = 0;

	while (at < count && (to[at].pc != top->pc || to[at].sp != top->sp))
		at++;
	if (incstack__trampoline_contains(top->pc))
		at = count;
	else if (at == count)
		no_reference++;
	count = count > at ? count - at : 0;
	memmove(to, to + at, (size_t)count * sizeof(*to));
	first[samples + 1] = first[samples] + count;
}

static void sample(const ucontext_t *context)
{
	const struct incstack_top top = top_of(context);
	const int described =
		incstack__trampoline_contains(top.pc)
			? INCSTACK__NATIVE_DESCRIBED
			: incstack__native_is_described(
				  incstack_native_embedder()->code.find_rule_quickly, bounds, &top);

	if (described != INCSTACK__NATIVE_DESCRIBED || samples == SAMPLES ||
	    first[samples] + DEPTH > FRAMES) {
		refused[described]++;
	} else {
		take_reference(&top);
		if (incstack_stack_sample(stack, (uint64_t)samples, 1, &top) == 0)
			samples++;
		else
			busy++;
	}
}

static void on_signal(int, siginfo_t *, void *context)
{
	sample(static_cast<const ucontext_t *>(context));
	STOP();
}

static void on_trap(int, siginfo_t *info, void *context)
{
	ucontext_t *here = static_cast<ucontext_t *>(context);

	if (info->si_code == SI_KERNEL) /* behind an int3 */
		here->uc_mcontext.gregs[REG_EFL] ^= TRAP_FLAG;
	else
		sample(here);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {};

	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO;
	sigaction(number, &action, NULL);
}

/* As in the recorder, no rule is looked up with signals blocked. */
static void open_all(void)
{
	static struct incstack_embedder embedder;
	struct incstack_options options = {};
	embedder = *incstack_native_embedder();
	embedder.code.find_rule = embedder.signals.find_rule = embedder.code.find_rule_quickly;
	options.size = sizeof(options);
	options.distance = 1;
	options.embedder = &embedder;
	frames = (struct incstack_frame *)mmap(NULL, FRAMES * sizeof(*frames),
					       PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (incstack_runtime_create(&options, &runtime) != 0 ||
	    incstack_native_stack_range(&bounds.low, &bounds.high) != 0 ||
	    incstack_stack_create_native(runtime, &stack) != 0 ||
	    incstack_stack_reserve(stack, 32 << 20) != 0)
		_exit(90);
	incstack_native_walk(frames, DEPTH);
}

static bool agrees(const struct incstack_trace *t)
{
	int at = first[t->id];
	const int end = first[t->id + 1];

	if (at == end) /* in the trampoline */
		return true;
	for (const struct incstack_frame_object *o = t->top; o; o = o->parent, at++) {
		if (at == end || frames[at].pc != o->function || frames[at].sp != o->address)
			return end - first[t->id] == DEPTH;
		if (o->flags & INCSTACK_OBJECT_TRUNCATED)
			return true;
	}
	return at == end;
}

static int compare(void)
{
	struct incstack_tree *tree;
	int wrong = 0;

	if (incstack_stack_retrieve(stack, &tree) != 0)
		_exit(91);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		wrong += !agrees(t);
	return wrong;
}

/* ---- what it does: each function returns whether it did it ----------------------------- */

static jmp_buf plain;
static sigjmp_buf with_mask;

NOINLINE static bool jumps()
{
	volatile int times = 0;

	STOP();
	if (setjmp(plain) == 0) {
		times = times + 1;
		longjmp(plain, 7);
	}
	STOP();
	return times == 1;
}

NOINLINE static bool jumps_with_mask()
{
	volatile int times = 0;

	STOP();
	if (sigsetjmp(with_mask, 1) == 0) {
		times = times + 1;
		siglongjmp(with_mask, 7);
	}
	STOP();
	return times == 1;
}

NOINLINE static bool vforks()
{
	int status = 0;

	STOP();
	const pid_t child = vfork();
	if (child == 0)
		_exit(3);
	STOP();
	return child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3;
}

NOINLINE static bool spawns()
{
	char name[] = "true";
	char *arguments[] = {name, NULL};
	int status = -1;
	pid_t child;

	STOP();
	const int error = posix_spawnp(&child, name, NULL, NULL, arguments, environ);
	STOP();
	return error == 0 && waitpid(child, &status, 0) == child && status == 0;
}

NOINLINE static bool copies()
{
	static char from[5000], to[5000];
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;

	memset(from, 'x', sizeof(from));
	STOP();
	for (size_t bytes = 1; bytes <= sizeof(from); bytes = bytes * 3 + 1)
		copy(to, from, bytes);
	copy(to, from, sizeof(from));
	STOP();
	return memcmp(from, to, sizeof(from)) == 0;
}

/* The first call binds the function (the test is linked for that). */
NOINLINE static bool binds()
{
	STOP();
	const int order = strverscmp("item9", "item10");
	STOP();
	return order < 0;
}

NOINLINE static int throws(int depth)
{
	const std::string text(40, 'x');

	if (depth == 0)
		throw depth + 5;
	return throws(depth - 1) + (int)text.size();
}

NOINLINE static int catches(int depth)
{
	try {
		return throws(depth);
	} catch (int value) {
		return value;
	}
}

NOINLINE static bool throws_and_catches()
{
	catches(1); /* libgcc learns where its tables are */
	STOP();
	const int caught = catches(3);
	STOP();
	return caught == 5;
}

static const struct subject {
	const char *name;
	bool (*does)();
	int least;   /* samples */
	bool traced; /* by a tracer, because it blocks signals or makes a process */
} subjects[] = {
	{"setjmp and longjmp", jumps, 40, true},
	{"sigsetjmp and siglongjmp", jumps_with_mask, 60, true},
	{"vfork", vforks, 10, true},
	{"posix_spawn", spawns, 300, true},
	{"memcpy", copies, 100, false},
	{"resolution of a symbol", binds, 100, false},
	{"throw", throws_and_catches, 5000, false},
};

static void be_stepped(const struct subject *subject)
{
	open_all();
	if (subject->traced) {
		handle(SIGNAL, on_signal);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
	} else {
		handle(SIGTRAP, on_trap);
	}
	const bool did = subject->does();
	const int wrong = compare();
	if (!did || wrong > 0 || no_reference > 0 || samples < subject->least ||
	    incstack__stack_verify(stack) != 0) {
		printf("%s: %s; %d samples, %d wrong, %d without reference; refused: %d no rule, "
		       "%d inexact, %d others\n",
		       subject->name, did ? "done" : "not done", samples, wrong, no_reference,
		       refused[INCSTACK__NATIVE_NO_RULE], refused[INCSTACK__NATIVE_INEXACT], busy);
		fflush(stdout);
		_exit(1);
	}
	_exit(0);
}

/* ---- the tracer ------------------------------------------------------------------------- */

static int wait_for_stop(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		return -1;
	return status;
}

static uintptr_t pc_of(pid_t child)
{
	struct user_regs_struct registers;

	ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &registers), 0);
	return registers.rip;
}

static int go(pid_t child, enum __ptrace_request how, int signal)
{
	ck_assert_int_eq(ptrace(how, child, NULL, (void *)(intptr_t)signal), 0);
	return wait_for_stop(child);
}

/* Whether the stop is behind an int3, and not that of a step. */
static bool at_marker(pid_t child)
{
	siginfo_t info;

	return ptrace(PTRACE_GETSIGINFO, child, NULL, &info) == 0 && info.si_code == SI_KERNEL;
}

/* Lets the handler run to its end, and leaves the process where the signal came. */
static int run_handler(pid_t child, uintptr_t back)
{
	int status = go(child, PTRACE_CONT, 0);

	for (int steps = 0; WIFSTOPPED(status) && steps < 64 && pc_of(child) != back; steps++)
		status = go(child, PTRACE_SINGLESTEP, 0);
	return status;
}

/* Sends the signal before each step until the second marker. A signal that is blocked comes later. */
static int step_through(pid_t child)
{
	const uintptr_t handler = (uintptr_t)on_signal;
	bool sent = false;
	int status = 0;

	for (uintptr_t before = 0;;) {
		const uintptr_t here = pc_of(child);

		if (here == handler) {
			sent = false;
			status = run_handler(child, before);
			if (!WIFSTOPPED(status))
				return status;
			status = go(child, PTRACE_SINGLESTEP, 0);
		} else {
			before = here;
			status = go(child, PTRACE_SINGLESTEP, sent ? 0 : SIGNAL);
			sent = true;
		}
		if (!WIFSTOPPED(status))
			return status;
		sent = sent && WSTOPSIG(status) != SIGNAL; /* it was blocked, and comes now */
		if (WSTOPSIG(status) == SIGCHLD || WSTOPSIG(status) == SIGNAL)
			continue;
		if (WSTOPSIG(status) != SIGTRAP)
			return status;
		if (at_marker(child))
			return status;
	}
}

/* Steps from one marker to the other. Returns the status with which the process has ended. */
static int trace(pid_t child)
{
	int status = wait_for_stop(child); /* SIGSTOP */

	ck_assert(WIFSTOPPED(status));
	status = go(child, PTRACE_CONT, 0); /* the first marker */
	ck_assert(WIFSTOPPED(status));
	status = step_through(child);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		return status;
	status = go(child, PTRACE_CONT, 0);
	while (WIFSTOPPED(status)) /* SIGCHLD, and a signal that was blocked */
		status = go(child, PTRACE_CONT, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
	return status;
}

START_TEST(sampled_at_every_instruction)
{
	const pid_t child = fork();

	if (child == 0)
		be_stepped(&subjects[_i]);
	const int status = subjects[_i].traced ? trace(child) : wait_for_stop(child);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %x",
		      subjects[_i].name, (unsigned)status);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("every instruction");
	TCase *tc = tcase_create("subjects");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, sampled_at_every_instruction, 0,
			    sizeof(subjects) / sizeof(subjects[0]));
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
