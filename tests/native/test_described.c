/* SPDX-License-Identifier: MIT
 *
 * Tests how a handler's sample decides that the unwind rules describe the interrupted code
 * (interrupted.c): with rules, code and stacks made by hand. A word that cannot be read is never
 * read, and a word that does not follow a call is no return address.
 */
#include <check.h>
#include <string.h>
#include <sys/mman.h>

#include <incstack/incstack.h>

#include "native/native.h"
#include "../unit/run_suite.h"

/* ---- calls ----------------------------------------------------------------------------------- */

extern const uintptr_t calls[], calls_end[], others[], others_end[];

/* Between filler in which no byte begins a call. The assembler knows how long each is. */
#define BEHIND(section, instruction) \
	".rept 12\nnop\n.endr\n" instruction "\n9:\n" \
	".pushsection " section ", \"aw\"\n.quad 9b\n.popsection\n"
#define CALL(operand) BEHIND("some_calls", "call " operand)
#define OTHER(instruction) BEHIND("other_code", instruction)
__asm__(".pushsection some_calls, \"aw\"\n.globl calls\ncalls:\n.popsection\n"
	".pushsection other_code, \"aw\"\n.globl others\nothers:\n.popsection\n"
	".text\n" CALL("9f + 0x11111111") CALL("*%rax") CALL("*%rsp") CALL("*%rbp") CALL(
		"*%r12") CALL("*%r13") CALL("*(%rax)") CALL("*(%rsp)") CALL("*(%rbp)") CALL("*(%"
											    "r12)")
		CALL("*(%r13)") CALL("*8(%rdi)") CALL("*8(%rsp)") CALL("*8(%rbp)") CALL(
			"*8(%r12)") CALL("*-8(%r13)") CALL("*0x11111(%rdi)") CALL("*0x11111(%rsp)")
			CALL("*0x11111(%rbp)") CALL("*0x11111(%r12)") CALL("*0x11111(%rip)") CALL(
				"*0x11111") CALL("*(%rax,%rcx,8)") CALL("*(%rbp,%rcx,8)")
				CALL("*(%rsp,%rbp,2)") CALL("*0x11(%rax,%rbp,4)") CALL(
					"*0x11111(%"
					"rbp,%rax,"
					"4)") CALL("*0x11111(,%rax,8)") OTHER("jmp *%rax")
					OTHER("jmp *(%rsp)") OTHER("jmp *0x11111(%rip)") OTHER(
						"push (%rax)") OTHER("jmp 9f + 0x11111111")
						OTHER("incl 0x11111(%rip)") OTHER(
							"lcall *(%rax)") OTHER("nop")
							OTHER("mov $0x11111111, %eax") OTHER(
								"ret") ".rept 12\nnop\n.endr\n"
								       ".pushsection some_calls, "
								       "\"aw\"\n.globl "
								       "calls_end\ncalls_end:\n."
								       "popsection\n"
								       ".pushsection other_code, "
								       "\"aw\"\n.globl "
								       "others_end\nothers_end:\n."
								       "popsection\n");

START_TEST(behind_each_call)
{
	ck_assert_int_gt(calls_end - calls, 25);
	for (const uintptr_t *end = calls; end < calls_end; end++) {
		const int number = (int)(end - calls);
		ck_assert_msg(incstack__native_follows_call(*end), "call %d", number);
		for (uintptr_t i = 1; i < 6; i++)
			ck_assert_msg(!incstack__native_follows_call(*end + i), "call %d", number);
		ck_assert_msg(!incstack__native_follows_call(*end - 1), "call %d", number);
	}
}
END_TEST

START_TEST(behind_nothing_else)
{
	ck_assert_int_ge(others_end - others, 10);
	for (const uintptr_t *end = others; end < others_end; end++)
		ck_assert_msg(!incstack__native_follows_call(*end), "%d", (int)(end - others));
}
END_TEST

/* ---- frames ---------------------------------------------------------------------------------- */

enum { WORDS = 64, PLACE = 64, PLACES = 4, CALLER = 1, OUTER = 2, STRANGE = 3 };
enum { SIZE = sizeof(uintptr_t), PAGE = 4096 };

/* Code with a rule for each place. The place STRANGE does not follow a call. */
static unsigned char code[PLACES * PLACE] __attribute__((aligned(PLACE)));
static struct incstack_rule rules[PLACES];
static bool no_rule[PLACES];
static uintptr_t asked[8];
static unsigned questions;

static uintptr_t words[WORDS];
static struct incstack__native_bounds stack;
static struct incstack_top top;

static uintptr_t pc_of(unsigned place)
{
	return (uintptr_t)code + place * PLACE;
}

/* The byte before a place belongs to it, because a return to the place is looked up there. */
static int find(void *context, uintptr_t address, struct incstack_rule *rule)
{
	const uintptr_t offset = address + 1 - (uintptr_t)code;
	const unsigned place = (unsigned)(offset / PLACE) % PLACES;

	(void)context;
	ck_assert_uint_lt(questions, 8);
	asked[questions++] = address;
	if (offset >= sizeof(code) || no_rule[place])
		return INCSTACK_EUNWIND;
	*rule = rules[place];
	return 0;
}

static enum incstack__native_described ask(void)
{
	questions = 0;
	return incstack__native_is_described(find, stack, &top);
}

static struct incstack_rule rule_of(uint32_t kind, int32_t cfa, uint16_t ra, uint16_t fp)
{
	return (struct incstack_rule){
		.kind = kind, .cfa_offset = cfa, .ra_offset = ra, .fp_offset = fp};
}

/* The top has two words, its caller four; words[1] and words[5] are their return addresses. */
static void lay_out(void)
{
	memset(code, 0x90, sizeof(code));
	for (unsigned place = CALLER; place <= OUTER; place++)
		code[place * PLACE - 5] = 0xe8;
	memset(no_rule, 0, sizeof(no_rule));
	for (int i = 0; i < WORDS; i++)
		words[i] = 1; /* no return address, and not the end */
	rules[0] = rule_of(INCSTACK_RULE_SP, 2 * SIZE, SIZE, 0);
	rules[CALLER] = rule_of(INCSTACK_RULE_SP, 4 * SIZE, SIZE, 0);
	rules[OUTER] = rules[STRANGE] = rule_of(INCSTACK_RULE_SP, 2 * SIZE, SIZE, 0);
	words[1] = pc_of(CALLER);
	words[5] = pc_of(OUTER);
	stack = (struct incstack__native_bounds){(uintptr_t)words, (uintptr_t)(words + WORDS)};
	top = (struct incstack_top){.pc = pc_of(0), .sp = (uintptr_t)words};
}

#define IS(result) ck_assert_int_eq(ask(), INCSTACK__NATIVE_##result)

/* The interrupted frame by its pc, its callers by the call. */
START_TEST(two_frames)
{
	lay_out();
	top.pc = pc_of(0) - 1;
	IS(DESCRIBED);
	ck_assert_uint_eq(asked[0], top.pc);
	for (unsigned i = 1; i < questions; i++)
		ck_assert(asked[i] == pc_of(CALLER) - 1 || asked[i] == pc_of(OUTER) - 1);
	words[5] = pc_of(STRANGE);
	IS(INEXACT);
	words[1] = pc_of(STRANGE);
	IS(INEXACT);
	words[5] = pc_of(OUTER);
	IS(INEXACT);
}
END_TEST

START_TEST(without_rules)
{
	static const unsigned bad[] = {0, CALLER};
	lay_out();
	no_rule[bad[_i]] = true;
	if (_i == 0)
		IS(NO_RULE);
	else
		IS(DESCRIBED); /* it follows a call */
	words[1] = pc_of(STRANGE);
	no_rule[STRANGE] = true;
	if (_i == 0)
		IS(NO_RULE);
	else
		IS(INEXACT);
}
END_TEST

/* Code that only the kernel knows: nothing, or the first bytes of a page. */
START_TEST(code_that_may_not_exist)
{
	unsigned char *made = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(made != MAP_FAILED);
	lay_out();
	for (unsigned offset = 0; offset <= PAGE + 8; offset++) {
		words[1] = (uintptr_t)(made + PAGE + offset);
		if (offset < 16 || offset > PAGE - 8)
			IS(INEXACT);
	}
	ck_assert_int_eq(mprotect(made + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	for (unsigned offset = 0; offset <= PAGE + 8; offset += offset < 16 ? 1 : PAGE - 16) {
		const unsigned at = offset;
		if (at >= 5 && at < PAGE + 5 && at - 5 < PAGE)
			made[PAGE + at - 5] = 0xe8;
		words[1] = (uintptr_t)(made + PAGE + at);
		ck_assert_int_eq(ask() == INCSTACK__NATIVE_DESCRIBED, at >= 7 && at <= PAGE);
	}
	munmap(made, 3 * PAGE);
}
END_TEST

/* The kernel's signal frame, and the outermost one: nothing is read beyond them, and no call leads
 * there. */
START_TEST(frames_without_a_call)
{
	static const uint32_t kinds[] = {INCSTACK_RULE_SIGNAL, INCSTACK_RULE_END};
	lay_out();
	words[1] = pc_of(STRANGE);
	rules[STRANGE].kind = kinds[_i];
	IS(DESCRIBED);
	rules[STRANGE].kind = INCSTACK_RULE_FP;
	IS(INEXACT);
	lay_out();
	rules[0].kind = kinds[_i];
	stack = (struct incstack__native_bounds){0, 0};
	top.sp = 0;
	IS(DESCRIBED);
	ck_assert_uint_eq(questions, 1);
	lay_out();
	words[1] = 0;
	IS(DESCRIBED);
	ck_assert_uint_eq(questions, 1);
}
END_TEST

/* ---- registers ------------------------------------------------------------------------------- */

START_TEST(by_the_frame_pointer)
{
	lay_out();
	rules[0] = rule_of(INCSTACK_RULE_FP, 2 * SIZE, SIZE, 2 * SIZE);
	rules[CALLER] = rule_of(INCSTACK_RULE_FP, 2 * SIZE, SIZE, 2 * SIZE);
	top.fp = (uintptr_t)words;
	words[0] = (uintptr_t)(words + 4);
	IS(DESCRIBED);
	words[0] = (uintptr_t)(words + 5); /* its return address is then 1's word */
	IS(INEXACT);
	rules[0].fp_offset = 0; /* the top's is the caller's: the same frame again */
	IS(INEXACT);
	top.fp = (uintptr_t)(words + 4);
	rules[0] = rule_of(INCSTACK_RULE_SP, 2 * SIZE, SIZE, 0);
	IS(DESCRIBED);
}
END_TEST

/* The CFA is in a word; the frame pointer is saved below the frame pointer. */
START_TEST(realigned)
{
	lay_out();
	rules[0] = rule_of(INCSTACK_RULE_FP_DEREF, -2 * SIZE, SIZE, 3 * SIZE);
	rules[CALLER] = rule_of(INCSTACK_RULE_FP, 2 * SIZE, SIZE, 0);
	top.fp = (uintptr_t)(words + 20);
	words[18] = (uintptr_t)(words + 2);
	words[17] = (uintptr_t)(words + 4);
	IS(DESCRIBED);
	words[17] = (uintptr_t)(words + 6);
	IS(INEXACT);
	words[17] = (uintptr_t)(words + 4);
	words[18] = (uintptr_t)(words + 3);
	IS(INEXACT);
	words[18] = (uintptr_t)(words + 2);
	rules[0].fp_offset = 0; /* as with the frame pointer pushed first */
	words[20] = (uintptr_t)(words + 4);
	IS(DESCRIBED);
	words[20] = (uintptr_t)(words + 6);
	IS(INEXACT);
}
END_TEST

/* ---- bounds ---------------------------------------------------------------------------------- */

/* The return address may be the last word of the stack and no later one, nor one below sp. */
START_TEST(slots_at_the_bounds)
{
	lay_out();
	rules[0].cfa_offset = SIZE; /* and the return address is where sp is */
	words[0] = pc_of(CALLER);
	words[4] = pc_of(OUTER);
	IS(DESCRIBED);
	stack.high = (uintptr_t)(words + 5);
	IS(DESCRIBED);
	stack.high--;
	IS(INEXACT);
	stack.high = (uintptr_t)(words + WORDS);
	rules[0].cfa_offset = 0;
	rules[0].ra_offset = (uint16_t)-SIZE;
	IS(INEXACT);
	lay_out();
	top.sp = (uintptr_t)(words + 2);
	rules[0] = rule_of(INCSTACK_RULE_SP, 2 * SIZE, 3 * SIZE, 0); /* words[1], below sp */
	IS(INEXACT);
	lay_out();
	top.sp += 4; /* no word */
	memmove((char *)words + 4, words, 16 * SIZE);
	IS(INEXACT);
}
END_TEST

static uintptr_t *pages;

/* On a stack with unknown bounds: its words are the last or the first ones of a page. */
static void lay_out_elsewhere(unsigned at)
{
	char *memory = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(memory != MAP_FAILED);
	pages = (uintptr_t *)(void *)(memory + PAGE);
	ck_assert_int_eq(mprotect(pages, PAGE, PROT_READ | PROT_WRITE), 0);
	lay_out();
	memcpy(pages + at, words, 6 * SIZE);
	top.sp = (uintptr_t)(pages + at);
}

START_TEST(words_of_unknown_stacks)
{
	enum { LAST = PAGE / SIZE - 6 };
	lay_out_elsewhere(_i ? LAST : 0);
	IS(DESCRIBED);
	if (_i) {
		memmove(pages + LAST + 1, pages + LAST, 5 * SIZE);
		top.sp += SIZE;
		IS(INEXACT); /* the second return address is on the next page */
	}
	/* A saved frame pointer of which one half cannot be read. */
	lay_out_elsewhere(8);
	rules[0] = rule_of(INCSTACK_RULE_FP_DEREF, 0, SIZE, 0);
	top.fp = (uintptr_t)pages + (_i ? PAGE - 4 : (uintptr_t)-4);
	IS(INEXACT);
	top.fp = (uintptr_t)pages + (_i ? PAGE : (uintptr_t)-SIZE);
	IS(INEXACT);
	pages[_i ? PAGE / SIZE - 1 : 0] = (uintptr_t)(pages + 10);
	rules[CALLER] = rule_of(INCSTACK_RULE_SP, 4 * SIZE, SIZE, 0);
	pages[9] = pc_of(CALLER);
	top.fp = (uintptr_t)(pages + (_i ? PAGE / SIZE - 1 : 0));
	IS(DESCRIBED);
}
END_TEST

/* A frame pointer with any value: nothing outside the stack is read, and no end of memory. */
START_TEST(any_frame_pointer)
{
	const uintptr_t values[] = {0,
				    1,
				    (uintptr_t)words - SIZE,
				    (uintptr_t)words - 1,
				    (uintptr_t)(words + WORDS) - SIZE + 1,
				    (uintptr_t)(words + WORDS),
				    UINTPTR_MAX,
				    UINTPTR_MAX - 7,
				    UINTPTR_MAX - 8,
				    UINT64_C(1) << 63};
	lay_out();
	rules[0] = rule_of(INCSTACK_RULE_FP_DEREF, 0, SIZE, 0);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		top.fp = values[i];
		IS(INEXACT);
	}
	top.fp = (uintptr_t)words;
	words[0] = (uintptr_t)(words + 2);
	IS(DESCRIBED);
	top.fp = (uintptr_t)(words + WORDS - 1);
	words[WORDS - 1] = (uintptr_t)(words + 2);
	IS(DESCRIBED);
	/* The saved one. The interrupted function may have restored it already, its caller has not. */
	rules[0] = rule_of(INCSTACK_RULE_SP, 2 * SIZE, SIZE, 3 * SIZE);
	IS(DESCRIBED);
	rules[0].fp_offset = 2 * SIZE;
	IS(DESCRIBED);
	rules[CALLER].fp_offset = (uint16_t)(rules[CALLER].cfa_offset + SIZE);
	IS(INEXACT);
	rules[CALLER].fp_offset = (uint16_t)rules[CALLER].cfa_offset;
	IS(DESCRIBED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("described");
	TCase *tests = tcase_create("interrupted code");
	tcase_add_test(tests, behind_each_call);
	tcase_add_test(tests, behind_nothing_else);
	tcase_add_test(tests, two_frames);
	tcase_add_loop_test(tests, without_rules, 0, 2);
	tcase_add_test(tests, code_that_may_not_exist);
	tcase_add_loop_test(tests, frames_without_a_call, 0, 2);
	tcase_add_test(tests, by_the_frame_pointer);
	tcase_add_test(tests, realigned);
	tcase_add_test(tests, slots_at_the_bounds);
	tcase_add_loop_test(tests, words_of_unknown_stacks, 0, 2);
	tcase_add_test(tests, any_frame_pointer);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
