/* SPDX-License-Identifier: MIT
 *
 * Tests the rules of the native embedder: applied one after the other, they must meet the same
 * frames as libunwind's own walk, on every kind of stack.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <incstack/native.h>

#include "native/native.h"
#include "../unit/run_suite.h"

/* No thunks here: the core is not part of this test. */
bool incstack__frame_pass_trampoline(struct incstack_frame *frame)
{
	(void)frame;
	return false;
}

bool incstack__page_readable(uintptr_t page)
{
	(void)page;
	return true;
}

uintptr_t incstack_slot_read(const uintptr_t *slot)
{
	return *slot;
}

#define OPAQUE __attribute__((noinline))
#define FRAMES 128

/* ---- the reference walker --------------------------------------------------- */

static unsigned seen[INCSTACK_RULE_END + 1]; /* rules found, by kind */
static int observations;

static uintptr_t load(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

static void step_signal(struct incstack_frame *at)
{
	const ucontext_t *context = (const ucontext_t *)at->sp;

	at->pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	at->sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
	at->fp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
	at->flags = INCSTACK_FRAME_EXACT;
}

static void step_rule(struct incstack_frame *at, const struct incstack_rule *rule)
{
	uintptr_t offset = (uintptr_t)(intptr_t)rule->cfa_offset;
	uintptr_t cfa = (rule->kind == INCSTACK_RULE_SP ? at->sp : at->fp) + offset;

	if (rule->kind == INCSTACK_RULE_FP_DEREF) {
		cfa = load(cfa);
		at->fp = load(at->fp - rule->fp_offset);
	} else if (rule->fp_offset) {
		at->fp = load(cfa - rule->fp_offset);
	}
	at->pc = load(cfa - rule->ra_offset);
	at->sp = cfa;
	at->flags = 0;
}

/* Moves to the caller; false at the outermost frame. */
static bool step(struct incstack_frame *at)
{
	bool exact = at->flags & INCSTACK_FRAME_EXACT;
	struct incstack_rule rule = {0};

	ck_assert_int_eq(incstack__native_find_rule(NULL, at->pc - !exact, &rule), 0);
	ck_assert_uint_le(rule.kind, INCSTACK_RULE_END);
	seen[rule.kind]++;
	if (rule.kind == INCSTACK_RULE_END)
		return false;
	if (rule.kind == INCSTACK_RULE_SIGNAL)
		step_signal(at);
	else
		step_rule(at, &rule);
	return true;
}

/* Compares the two walks from here to the base. */
static OPAQUE int observe(void)
{
	struct incstack_frame expected[FRAMES];
	struct incstack_frame at;
	int count = incstack_native_walk(expected, FRAMES);

	ck_assert_int_gt(count, 2);
	ck_assert_int_lt(count, FRAMES);
	at = expected[0];
	for (int i = 1; i < count; i++) {
		ck_assert_msg(step(&at), "rules end at frame %d of %d", i, count);
		ck_assert_msg(at.pc == expected[i].pc, "pc of frame %d", i);
		ck_assert_msg(at.sp == expected[i].sp, "sp of frame %d", i);
		ck_assert_msg(at.fp == expected[i].fp, "fp of frame %d", i);
		ck_assert_uint_eq(at.flags, expected[i].flags & INCSTACK_FRAME_EXACT);
	}
	ck_assert(!step(&at));
	observations++;
	return count;
}

/* ---- kinds of frames ---------------------------------------------------------- */

static void reset(void)
{
	memset(seen, 0, sizeof(seen));
	observations = 0;
}

static OPAQUE int without_fp(int depth)
{
	return (depth ? without_fp(depth - 1) : observe()) + 1;
}

START_TEST(main_thread)
{
	reset();
	ck_assert_int_ge(without_fp(5), 8);
	ck_assert_uint_ge(seen[INCSTACK_RULE_SP], 1);
	ck_assert_uint_eq(seen[INCSTACK_RULE_END], 1);
}
END_TEST

static void *thread_main(void *argument)
{
	(void)argument;
	without_fp(3);
	return NULL;
}

START_TEST(other_thread)
{
	pthread_t thread;

	reset();
	ck_assert_int_eq(pthread_create(&thread, NULL, thread_main, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(observations, 1);
	ck_assert_uint_eq(seen[INCSTACK_RULE_END], 1);
}
END_TEST

static OPAQUE int with_alloca(size_t bytes)
{
	volatile char *room = alloca(bytes);
	int count;

	room[0] = 1;
	room[bytes - 1] = 2;
	count = observe();
	return count + room[0];
}

START_TEST(frame_of_unknown_size)
{
	volatile size_t bytes = 1000;

	reset();
	with_alloca(bytes);
	with_alloca(bytes * 7);
	ck_assert_int_eq(observations, 2);
	ck_assert_uint_ge(seen[INCSTACK_RULE_FP], 2);
}
END_TEST

static OPAQUE int with_alignment(int value)
{
	volatile int aligned[32] __attribute__((aligned(64)));

	aligned[0] = value;
	ck_assert_uint_eq((uintptr_t)aligned % 64, 0);
	return observe() + aligned[0];
}

/* gcc's realignment where arguments on the stack are still needed: the CFA can only be found in a
 * word of the frame. Written in assembly, because compilers choose it as they like. */
int realigned(int (*callee)(void));
__asm__(".text\n"
	".type realigned, @function\n"
	"realigned:\n"
	"	.cfi_startproc\n"
	"	leaq 8(%rsp), %r10\n"
	"	.cfi_def_cfa %r10, 0\n"
	"	andq $-64, %rsp\n"
	"	pushq -8(%r10)\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_escape 0x10, 6, 2, 0x76, 0\n" /* rbp at breg6 + 0 */
	"	pushq %r10\n"
	"	.cfi_escape 0x0f, 3, 0x76, 0x78, 6\n" /* CFA: *(breg6 - 8) */
	"	subq $56, %rsp\n"
	"	call *%rdi\n"
	"	addq $56, %rsp\n"
	"	popq %r10\n"
	"	.cfi_def_cfa %r10, 0\n"
	"	popq %rbp\n"
	"	leaq -8(%r10), %rsp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size realigned, . - realigned\n");

/* A caller that needs the frame pointer which the realigned frame saved. */
static OPAQUE int realigned_below(size_t bytes)
{
	volatile char *room = alloca(bytes);

	room[0] = 1;
	return realigned(observe) + room[0];
}

START_TEST(realigned_frames)
{
	volatile size_t bytes = 100;

	reset();
	with_alignment(1);
	realigned_below(bytes);
	ck_assert_int_eq(observations, 2);
	ck_assert_uint_ge(seen[INCSTACK_RULE_FP_DEREF], 1);
	ck_assert_uint_ge(seen[INCSTACK_RULE_FP], 1);
}
END_TEST

/* While the CFA is in r10 there is no rule, not a wrong one. */
START_TEST(inexpressible_frame)
{
	struct incstack_rule rule = {.kind = 77};

	ck_assert_int_eq(incstack__native_find_rule(NULL, (uintptr_t)realigned, &rule), 0);
	ck_assert_uint_eq(rule.kind, INCSTACK_RULE_SP);
	ck_assert_int_eq(rule.cfa_offset, 8);
	ck_assert_int_eq(incstack__native_find_rule(NULL, (uintptr_t)realigned + 6, &rule),
			 INCSTACK_EUNWIND);
	ck_assert_int_eq(rule.cfa_offset, 8);
}
END_TEST

/* ---- frames of others ---------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	observe();
	return *(const int *)a - *(const int *)b;
}

START_TEST(inside_qsort)
{
	int numbers[] = {5, 2, 9, 1, 7};

	reset();
	qsort(numbers, 5, sizeof(numbers[0]), compare);
	ck_assert_int_gt(observations, 3);
}
END_TEST

/* Traps at its very first byte: pc - 1 belongs to the function before it. */
void trap(void);
__asm__(".text\n"
	"	nop\n"
	".type trap, @function\n"
	"trap:\n"
	"	.cfi_startproc\n"
	"	ud2\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size trap, . - trap\n");

static void handler(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)info;
	observe();
	if (number == SIGILL)
		interrupted->uc_mcontext.gregs[REG_RIP] += 2;
}

static void handle(int number, int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};

	ck_assert_int_eq(sigaction(number, &action, NULL), 0);
}

static void check_signals(int flags)
{
	reset();
	handle(SIGUSR1, flags);
	handle(SIGILL, flags);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	trap();
	ck_assert_int_eq(observations, 2);
	ck_assert_uint_eq(seen[INCSTACK_RULE_SIGNAL], 2);
}

START_TEST(inside_signal_handler)
{
	check_signals(0);
}
END_TEST

START_TEST(inside_handler_on_signal_stack)
{
	static char memory[1 << 16];
	stack_t other = {.ss_sp = memory, .ss_size = sizeof(memory)};

	ck_assert_int_eq(sigaltstack(&other, NULL), 0);
	check_signals(SA_ONSTACK);
}
END_TEST

/* ---- what has no rule ------------------------------------------------------------ */

START_TEST(code_without_tables)
{
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	struct incstack_rule rule = {.kind = 77};
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(page, MAP_FAILED);
	memcpy(page, code, sizeof(code));
	for (size_t i = 0; i < sizeof(code); i++)
		ck_assert_int_eq(incstack__native_find_rule(NULL, (uintptr_t)page + i, &rule),
				 INCSTACK_EUNWIND);
	ck_assert_int_eq(munmap(page, 4096), 0);
	/* Nothing is read at an address that is not known, so it need not exist. */
	ck_assert_int_eq(incstack__native_find_rule(NULL, (uintptr_t)page, &rule),
			 INCSTACK_EUNWIND);
	ck_assert_int_eq(incstack__native_find_rule(NULL, 0, &rule), INCSTACK_EUNWIND);
	ck_assert_int_eq(incstack__native_find_rule(NULL, UINTPTR_MAX, &rule), INCSTACK_EUNWIND);
	ck_assert_int_eq(incstack__native_find_rule(NULL, (uintptr_t)realigned, NULL),
			 INCSTACK_EINVAL);
	ck_assert_uint_eq(rule.kind, 77);
}
END_TEST

/* ---- every kind of code there is -------------------------------------------------- */

struct sweep {
	uint64_t random;
	unsigned asked;
	unsigned known;
	unsigned quick; /* without libunwind */
};

static uint64_t next_random(struct sweep *sweep)
{
	sweep->random = sweep->random * 6364136223846793005u + 1442695040888963407u;
	return sweep->random >> 20;
}

/* The reader of .eh_frame may refuse an address, but never contradicts libunwind. */
static bool compare_readers(uintptr_t address)
{
	struct incstack_rule quick = {.kind = 77};
	struct incstack_rule rule = {0};
	int error = incstack__native_libunwind_rule(incstack__native_space(), address, &rule);

	if (!incstack__native_cfi_rule(address, &quick)) {
		ck_assert_uint_eq(quick.kind, 77);
		ck_assert_msg(error != 0, "libunwind alone knows %#lx", (unsigned long)address);
		return false;
	}
	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(quick.kind, rule.kind);
	ck_assert_int_eq(quick.cfa_offset, rule.cfa_offset);
	ck_assert_uint_eq(quick.ra_offset, rule.ra_offset);
	ck_assert_uint_eq(quick.fp_offset, rule.fp_offset);
	/* libunwind does not report that a function changes its return address. */
	ck_assert_uint_eq(quick.flags & ~(uint32_t)INCSTACK_RULE_RETURN_CHANGES, rule.flags);
	return true;
}

static void sweep_segment(struct sweep *sweep, uintptr_t low, size_t bytes)
{
	for (int i = 0; i < 4000; i++) {
		struct incstack_rule rule = {0};
		uintptr_t address = low + next_random(sweep) % bytes;
		int result = incstack__native_find_rule(NULL, address, &rule);

		ck_assert(result == 0 || result == INCSTACK_EUNWIND);
		ck_assert_int_eq(rule.cfa_offset % 8 | rule.ra_offset % 8 | rule.fp_offset % 8, 0);
		sweep->asked++;
		sweep->known += result == 0;
		sweep->quick += compare_readers(address);
		if (result == 0 && rule.kind <= INCSTACK_RULE_FP_DEREF)
			ck_assert_uint_gt(rule.ra_offset, 0);
	}
}

static int sweep_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && header->p_flags & PF_X)
			sweep_segment(argument, info->dlpi_addr + header->p_vaddr, header->p_memsz);
	}
	return 0;
}

START_TEST(random_addresses)
{
	struct sweep sweep = {.random = 1};

	/* The largest library at hand, where it is installed. */
	(void)dlopen("libpython3.11.so.1.0", RTLD_NOW);
	(void)dlopen("libffi.so.8", RTLD_NOW); /* saves vector registers */
	dl_iterate_phdr(sweep_object, &sweep);
	ck_assert_uint_gt(sweep.asked, 20000);
	/* Only alignment gaps and a few hand-written frames are unknown. */
	ck_assert_msg(sweep.known > sweep.asked / 100 * 90, "%u of %u", sweep.known, sweep.asked);
	ck_assert_msg(sweep.quick > sweep.known / 100 * 95, "%u of %u", sweep.quick, sweep.known);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("native rule");
	TCase *frames = tcase_create("frames");
	TCase *none = tcase_create("none");

	tcase_add_test(frames, main_thread);
	tcase_add_test(frames, other_thread);
	tcase_add_test(frames, frame_of_unknown_size);
	tcase_add_test(frames, realigned_frames);
	tcase_add_test(frames, inexpressible_frame);
	tcase_add_test(frames, inside_qsort);
	tcase_add_test(frames, inside_signal_handler);
	tcase_add_test(frames, inside_handler_on_signal_stack);
	tcase_add_test(none, code_without_tables);
	tcase_add_test(none, random_addresses);
	tcase_set_timeout(none, 60);
	suite_add_tcase(suite, frames);
	suite_add_tcase(suite, none);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
