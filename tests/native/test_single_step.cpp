/* SPDX-License-Identifier: MIT
 *
 * Stops the program, by the processor's trap flag, at every instruction of thunks, of their
 * common entry, of the core behind it, and of the landing pad. At each instruction a sample is
 * taken, or an unwinder walks, and must see the frame that runs next.
 */
#define UNW_LOCAL_ONLY
#include <csignal>
#include <execinfo.h>
#include <ucontext.h>
#include <unwind.h>

#include <libunwind.h>

#include <incstack/signal.h>

#include "../unit/run_suite.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))

extern "C" {
extern const char incstack__thunk_entry[], incstack__thunk_called[], incstack__thunk_landing[];
int incstack__thunk_contains(uintptr_t pc);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LEVELS = 1 }; /* every instruction of the sanitizers, too */
#else
enum { LEVELS = 2 };
#endif
enum { LANDING_BYTES = 15, STOPS = 1 << 18, LINES = 128, TRAP_FLAG = 0x100 };

/* A stop: where, and the frame that ran next if it was in the trampoline. */
struct stop {
	uintptr_t pc, next;
	bool sampled;
};

enum action { RUN, COUNT, SAMPLE, UNWIND };
static action acting;
static int only;                    /* the one stop in the trampoline to sample at; -1: all */
static volatile uintptr_t next_cfa; /* of the frame that the current return leads to */
static struct stop stops[STOPS];
static int stop_count, trampoline_stops, landing_stops;
static int refused[8], refused_while_free, incomplete;

/* ---- what is true ---------------------------------------------------------------- */

/* The reference is the first sample's walk. */
static int reference_index(uintptr_t cfa)
{
	for (int i = traced_first[0]; i < traced_first[1]; i++)
		if (traced_frames[i].sp == cfa)
			return i;
	return -1;
}

static bool from_reference(const struct incstack_frame_object *o, int at)
{
	for (; o; o = o->parent, at++) {
		if (at == traced_first[1] || o->address != traced_frames[at].sp ||
		    o->function != traced_frames[at].pc)
			return false;
		if (o->flags & INCSTACK_OBJECT_TRUNCATED)
			return false;
	}
	return at == traced_first[1];
}

/* ---- at a stop --------------------------------------------------------------------- */

struct lines {
	int count;
	uintptr_t pc[LINES];
};

static void add(struct lines *l, uintptr_t pc)
{
	if (pc && !incstack__thunk_contains(pc) && l->count < LINES)
		l->pc[l->count++] = pc;
}

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *argument)
{
	add(static_cast<struct lines *>(argument), _Unwind_GetIP(context));
	return _URC_NO_REASON;
}

static void unwind_with(int unwinder, struct lines *l)
{
	if (unwinder == 0) {
		unw_context_t context;
		unw_cursor_t cursor;
		unw_getcontext(&context);
		unw_init_local(&cursor, &context);
		while (unw_step(&cursor) > 0) {
			unw_word_t pc = 0;
			unw_get_reg(&cursor, UNW_REG_IP, &pc);
			add(l, pc);
		}
	} else if (unwinder == 1) {
		_Unwind_Backtrace(note, l);
	} else {
		void *pc[LINES];
		int count = backtrace(pc, LINES);
		for (int i = 0; i < count; i++)
			add(l, reinterpret_cast<uintptr_t>(pc[i]));
	}
}

static void unwind_here()
{
	int from = reference_index(next_cfa);
	for (int unwinder = 0; unwinder < 3; unwinder++) {
		struct lines l = {};
		unwind_with(unwinder, &l);
		int more = l.count - (traced_first[1] - from);
		incomplete += more < 1;
		for (int i = 0; more >= 1 && from + i < traced_first[1]; i++)
			if (l.pc[more + i] != traced_frames[from + i].pc) {
				incomplete++;
				break;
			}
	}
}

/* The entry itself marks the core as busy, shortly before and after it calls it. */
static bool may_be_busy(uintptr_t pc)
{
	uintptr_t entry = reinterpret_cast<uintptr_t>(incstack__thunk_entry);
	uintptr_t called = reinterpret_cast<uintptr_t>(incstack__thunk_called);
	return !incstack__thunk_contains(pc) || (pc > entry + 48 && pc <= called + 4);
}

static void sample_here(uintptr_t pc, void *context, bool trampoline)
{
	ck_assert_int_lt(stop_count, STOPS);
	stops[stop_count] = {pc, next_cfa, trampoline};
	int result =
		incstack_stack_sample_signal(traced_stack, (uint64_t)stop_count++ + 1, 1, context);
	if (result == 0)
		return;
	refused[-result & 7]++;
	if (!may_be_busy(pc))
		refused_while_free++;
}

static void on_trap(int, siginfo_t *, void *context)
{
	greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
	uintptr_t pc = (uintptr_t)registers[REG_RIP];
	bool landing = pc - (uintptr_t)incstack__thunk_landing < LANDING_BYTES;
	bool trampoline = incstack__thunk_contains(pc) || landing;
	landing_stops += landing;
	if (landing) /* the frame that it lands in */
		next_cfa = (uintptr_t)registers[REG_RSP] +
			   (pc > (uintptr_t)incstack__thunk_landing + 4 ? 8 : 0);
	if (trampoline)
		trampoline_stops++;
	bool chosen = only < 0 || (trampoline && trampoline_stops - 1 == only);
	if (acting == SAMPLE && chosen)
		sample_here(pc, context, trampoline);
	else if (acting == UNWIND && trampoline && !landing)
		unwind_here();
	if (only >= 0 && trampoline_stops > only) /* it has been */
		registers[REG_EFL] &= ~TRAP_FLAG;
}

/* Functions, so that their unwind information is right at each instruction. */
#define STEP(name, instruction) \
	__asm__(".text\n.globl " #name "\n" #name ":\n\t.cfi_startproc\n\tpushfq\n\t" \
		".cfi_adjust_cfa_offset 8\n\t" instruction ", (%rsp)\n\tpopfq\n\t" \
		".cfi_adjust_cfa_offset -8\n\tret\n\t.cfi_endproc\n")
extern "C" void step_on(), step_off();
STEP(step_on, "orq $0x100");
STEP(step_off, "andq $~0x100");

/* ---- the journey -------------------------------------------------------------------- */

static bool throwing;

/* Returns, or throws, through frames that are all patched. */
static NOINLINE long descend(int level)
{
	long result = level;
	uintptr_t cfa = (uintptr_t)__builtin_dwarf_cfa();
	if (level == 0) {
		traced_sample();
		if (acting != RUN)
			step_on();
		if (throwing)
			throw level;
	} else {
		try {
			result += descend(level - 1);
		} catch (int &thrown) {
			if (++thrown < LEVELS)
				throw;
			result = 100;
		}
	}
	__asm__ volatile("" : "+r"(result) : : "memory");
	next_cfa = cfa;
	return result;
}

static NOINLINE long journey()
{
	long result = descend(LEVELS);
	step_off();
	return result;
}

/* ---- tests ----------------------------------------------------------------------------- */

/* One trace of the program, and those of the stops, which are all complete where
 * the trampoline was interrupted. */
static void check_tree()
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(traced_stack, &tree), 0);
	uint64_t lost = 0;
	for (int i = 0; i < 8; i++)
		lost += (uint64_t)refused[i];
	ck_assert_uint_eq(tree->count, 1 + (uint64_t)stop_count - lost);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		if (t->id == 0) {
			ck_assert(from_reference(t->top, traced_first[0] + 1));
			continue;
		}
		const struct stop *stop = &stops[t->id - 1];
		if (!stop->sampled)
			continue;
		ck_assert_uint_eq(t->top->address, stop->next);
		ck_assert(from_reference(t->top, reference_index(stop->next)));
	}
	incstack_tree_release(tree);
	ck_assert_int_eq(incstack__stack_verify(traced_stack), 0);
}

static void begin(action what, int which)
{
	acting = what;
	only = which;
	traced_samples = 0;
	stop_count = trampoline_stops = landing_stops = incomplete = refused_while_free = 0;
	memset(refused, 0, sizeof(refused));
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 20), 0);
}

/* First without stepping, to learn the rules of these frames: libunwind blocks
 * signals, which a trap does not survive. */
static void travel(action what, int which)
{
	for (int pass = 0; pass < 2; pass++) {
		begin(pass ? what : RUN, which);
		ck_assert_int_eq(journey(), throwing ? 100 : LEVELS * (LEVELS + 1) / 2);
		check_tree();
		ck_assert_int_eq(refused_while_free, 0);
	}
}

static void open_all(unsigned distance, bool thrown)
{
	struct sigaction action = {};
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	ck_assert_int_eq(sigaction(SIGTRAP, &action, nullptr), 0);
	struct lines warm = {};
	for (int i = 0; i < 3; i++)
		unwind_with(i, &warm);
	traced_open(distance, INCSTACK_MODE_PATCH);
	throwing = thrown;
}

START_TEST(sample_at_every_instruction)
{
	open_all(_i + 1, false);
	for (int i = 0; i < 3; i++)
		travel(SAMPLE, -1);
	ck_assert(_i > LEVELS || (trampoline_stops > 40 && refused[-INCSTACK_EBUSY] > 0));
	struct incstack_stats stats = traced_stats();
	ck_assert_uint_eq(stats.stale, 0);
	traced_close();
}
END_TEST

/* At one instruction of the whole path, after an undisturbed run: each in turn. */
START_TEST(sample_at_one_instruction)
{
	open_all(_i + 1, false);
	travel(COUNT, -1);
	int count = trampoline_stops, sampled = 0;
	ck_assert_int_gt(count, 40);
	for (int i = 0; i < count; i++) {
		travel(SAMPLE, i);
		sampled += stop_count - refused[-INCSTACK_EBUSY];
	}
	ck_assert_int_gt(sampled, count / 3);
	ck_assert_uint_eq(traced_stats().stale, 0);
	traced_close();
}
END_TEST

START_TEST(unwind_at_every_instruction)
{
	open_all(1, false);
	travel(UNWIND, -1);
	ck_assert_int_gt(trampoline_stops, LEVELS * 40);
	ck_assert_int_eq(incomplete, 0);
	traced_close();
}
END_TEST

/* Handlers in the direct callers of patched frames: the landing pad is stepped over. */
START_TEST(sample_on_the_landing_pad)
{
	open_all(1, true);
	travel(COUNT, -1);
	int count = trampoline_stops, lost = 0;
	ck_assert_int_eq(landing_stops, 4);
	for (int i = 0; i < count; i++) {
		travel(SAMPLE, i);
		lost += refused[-INCSTACK_EUNWIND];
	}
	ck_assert_int_eq(lost, 2); /* until the pad has put the return address back */
	ck_assert_uint_eq(traced_stats().stale, 0);
	traced_close();
}
END_TEST

int main()
{
	Suite *suite = suite_create("single step");
	TCase *tc = tcase_create("through the trampoline");
	tcase_add_loop_test(tc, sample_at_every_instruction, 0, 3);
	tcase_add_loop_test(tc, sample_at_one_instruction, 0, 1);
	tcase_add_test(tc, unwind_at_every_instruction);
	tcase_add_test(tc, sample_on_the_landing_pad);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
