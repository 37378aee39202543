/* SPDX-License-Identifier: MIT
 *
 * The full walk and its address spaces with a libunwind that does what a test says: frames that are
 * made up, refusals at each place, and what libunwind may ask of the walk.
 */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <libunwind.h>

static unw_addr_space_t make_addr_space(unw_accessors_t *accessors, int order);
static void destroy_addr_space(unw_addr_space_t space);
static void set_policy(unw_addr_space_t space, unw_caching_policy_t policy);
static void flush_cache(unw_addr_space_t space, unw_word_t low, unw_word_t high);
static int begin_walk(unw_cursor_t *cursor, unw_addr_space_t space, void *argument);
static int step(unw_cursor_t *cursor);
static int get_register(unw_cursor_t *cursor, int number, unw_word_t *value);
static int is_signal_frame(unw_cursor_t *cursor);
static int get_context(ucontext_t *context);

#undef unw_create_addr_space
#undef unw_destroy_addr_space
#undef unw_set_caching_policy
#undef unw_flush_cache
#undef unw_init_remote
#undef unw_step
#undef unw_get_reg
#undef unw_is_signal_frame
#define unw_create_addr_space make_addr_space
#define unw_destroy_addr_space destroy_addr_space
#define unw_set_caching_policy set_policy
#define unw_flush_cache flush_cache
#define unw_init_remote begin_walk
#define unw_step step
#define unw_get_reg get_register
#define unw_is_signal_frame is_signal_frame
#define getcontext get_context

#include "native/space.c"
#include "native/native_walk.c"

#include "run_suite.h"

/* ---- in place of libunwind and the core ------------------------------------------------------- */

enum { FRAMES = 8, SPACES = 4, THUNK = 0x7000, REAL = 0x5050 };

static struct made_up {
	uintptr_t pc;
	bool is_signal;
} stack[FRAMES];
static int stack_count, at; /* at: the cursor; the frame of the walk itself is -1 */
static char spaces[SPACES];
static unw_accessors_t accessors_of[SPACES];
static unw_caching_policy_t policies[SPACES];
static unsigned made, destroyed, flushes, begun, registers;
static unsigned refuse_begin, refuse_register; /* from this call on; 0: no call */
static bool no_space, no_context, another_is_faster;
static unw_addr_space_t *raced; /* where another thread stores its space */
static struct walk *walking;
static uintptr_t indexed, readable_page;

static unw_addr_space_t make_addr_space(unw_accessors_t *accessors, int order)
{
	ck_assert_int_eq(order, 0);
	if (no_space)
		return NULL;
	ck_assert_uint_lt(made, SPACES);
	accessors_of[made] = *accessors;
	if (another_is_faster)
		*raced = (unw_addr_space_t)&spaces[SPACES - 1];
	return (unw_addr_space_t)&spaces[made++];
}

static void destroy_addr_space(unw_addr_space_t space)
{
	ck_assert_ptr_eq(space, (unw_addr_space_t)&spaces[made - 1]);
	destroyed++;
}

static void set_policy(unw_addr_space_t space, unw_caching_policy_t policy)
{
	policies[(char *)space - spaces] = policy;
}

static void flush_cache(unw_addr_space_t space, unw_word_t low, unw_word_t high)
{
	ck_assert_uint_eq(low + high, 0);
	ck_assert_int_eq(policies[(char *)space - spaces], UNW_CACHE_GLOBAL);
	flushes++;
}

static int begin_walk(unw_cursor_t *cursor, unw_addr_space_t space, void *argument)
{
	(void)cursor;
	(void)space;
	walking = argument;
	if (++begun == refuse_begin)
		return -UNW_EUNSPEC;
	if (at < 0 || begun == 1)
		at = -1;
	return 0;
}

static int step(unw_cursor_t *cursor)
{
	(void)cursor;
	return ++at < stack_count;
}

/* The register of the cursor's frame. */
static uintptr_t value_of(int number)
{
	if (number == UNW_REG_IP)
		return stack[at].pc;
	return (uintptr_t)(at + 1) * 1000 + (uintptr_t)(number == UNW_REG_SP ? 900 : number);
}

static int get_register(unw_cursor_t *cursor, int number, unw_word_t *value)
{
	(void)cursor;
	if (++registers == refuse_register)
		return -UNW_EBADREG;
	*value = value_of(number);
	return 0;
}

static int is_signal_frame(unw_cursor_t *cursor)
{
	(void)cursor;
	return stack[at].is_signal;
}

static int get_context(ucontext_t *context)
{
	memset(context, 0, sizeof(*context));
	return no_context ? -1 : 0;
}

bool incstack__frame_pass_trampoline(struct incstack_frame *frame)
{
	if (frame->pc != THUNK)
		return false;
	frame->pc = REAL;
	return true;
}

bool incstack__page_readable(uintptr_t page)
{
	return page == readable_page;
}

bool incstack__native_find_index(uintptr_t address, struct incstack__native_index *index)
{
	if (address != indexed)
		return false;
	*index = (struct incstack__native_index){.low = 0x1000, .high = 0x2000};
	return true;
}

static void begin(int count)
{
	stack_count = count;
	for (int i = 0; i < FRAMES; i++)
		stack[i] = (struct made_up){(uintptr_t)(0x100 + i), false};
	at = -1;
	begun = registers = flushes = refuse_begin = refuse_register = 0;
}

static int walk_all(struct incstack_frame *frames)
{
	at = -1;
	begun = registers = 0;
	return incstack_native_walk(frames, FRAMES);
}

/* ---- the walk --------------------------------------------------------------------------------- */

START_TEST(frames_and_their_registers)
{
	struct incstack_frame frames[FRAMES];

	begin(4);
	stack[2].is_signal = true;
	ck_assert_int_eq(walk_all(frames), 4);
	for (int i = 0; i < 4; i++) {
		ck_assert_uint_eq(frames[i].pc, stack[i].pc);
		ck_assert_uint_eq(frames[i].sp, (uintptr_t)(i + 1) * 1000 + 900);
		ck_assert_uint_eq(frames[i].fp, (uintptr_t)(i + 1) * 1000 + UNW_X86_64_RBP);
		ck_assert_uint_eq(frames[i].reserved, 0);
		ck_assert_uint_eq(frames[i].flags, i == 2   ? INCSTACK_FRAME_EXACT
						   : i == 1 ? INCSTACK_FRAME_SIGNAL
							    : 0);
	}
	stack[2].is_signal = false;
	stack[0].is_signal = true; /* it has no caller */
	ck_assert_int_eq(walk_all(frames), 4);
	ck_assert_uint_eq(frames[0].flags, INCSTACK_FRAME_EXACT);
	stack[2].pc = 0; /* a coroutine's outermost frame */
	ck_assert_int_eq(walk_all(frames), 2);
	at = -1;
	begun = 0;
	ck_assert_int_eq(incstack_native_walk(frames, 1), 1);
	ck_assert_int_eq(incstack_native_walk(frames, 0), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_native_walk(NULL, 3), INCSTACK_EINVAL);
	ck_assert_uint_eq(made, 1);
	ck_assert_int_eq(policies[0], UNW_CACHE_NONE);
}
END_TEST

/* A walk that cannot go on keeps the frames that it has. */
START_TEST(refused_at_each_place)
{
	struct incstack_frame frames[FRAMES];

	begin(3);
	refuse_begin = 1;
	ck_assert_int_eq(walk_all(frames), INCSTACK_EUNWIND);
	refuse_begin = 0;
	for (unsigned i = 1; i <= 9; i++) {
		const int left = (int)(i - 1) / 3;

		refuse_register = i;
		ck_assert_int_eq(walk_all(frames), left ? left : INCSTACK_EUNWIND);
	}
	refuse_register = 0;
	no_context = true;
	ck_assert_int_eq(walk_all(frames), INCSTACK_EUNWIND);
	ck_assert_int_eq(incstack__native_walk_remembering(frames, 3, false), INCSTACK_EUNWIND);
	no_context = false;
	incstack__native_walk_forked();
	no_space = true;
	ck_assert_int_eq(walk_all(frames), INCSTACK_ENOMEM);
	ck_assert_int_eq(incstack__native_walk_remembering(frames, 3, true), INCSTACK_ENOMEM);
}
END_TEST

/* Behind a thunk a new walk begins with the registers of the frame to which it leads. */
START_TEST(past_a_thunk)
{
	static const int saved[][2] = {{UNW_X86_64_RBX, REG_RBX},
				       {UNW_X86_64_R12, REG_R12},
				       {UNW_X86_64_R13, REG_R13},
				       {UNW_X86_64_R14, REG_R14},
				       {UNW_X86_64_R15, REG_R15}};
	struct incstack_frame frames[FRAMES];
	ucontext_t context;
	struct walk walk = {.context = &context};
	unw_cursor_t cursor;

	begin(4);
	stack[1].pc = THUNK;
	ck_assert_int_eq(walk_all(frames), 4);
	ck_assert_uint_eq(begun, 2);
	ck_assert_uint_eq(frames[1].pc, REAL);
	for (unsigned i = 7; i <= 11; i++) { /* 3 of each frame come before */
		refuse_register = i;
		ck_assert_int_eq(walk_all(frames), 1);
	}
	refuse_register = 0;
	refuse_begin = 2;
	ck_assert_int_eq(walk_all(frames), 1);
	refuse_begin = 0;

	struct incstack_frame frame = {.pc = REAL, .sp = 77, .fp = 88};
	at = 1;
	begun = 1;
	memset(&context, 0, sizeof(context));
	ck_assert_int_eq(pass_thunk(&cursor, &walk, &frame), 0);
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++)
		ck_assert_uint_eq((uintptr_t)context.uc_mcontext.gregs[saved[i][1]],
				  value_of(saved[i][0]));
	ck_assert_uint_eq((uintptr_t)context.uc_mcontext.gregs[REG_RIP], REAL - 1);
	ck_assert_uint_eq((uintptr_t)context.uc_mcontext.gregs[REG_RSP], 77);
	ck_assert_uint_eq((uintptr_t)context.uc_mcontext.gregs[REG_RBP], 88);
	frame.pc = 0; /* the frame that runs next is unknown */
	ck_assert_int_eq(pass_thunk(&cursor, &walk, &frame), INCSTACK_EUNWIND);
}
END_TEST

/* Rules are remembered except those of an interrupted instruction. */
START_TEST(remembered_rules)
{
	struct incstack_frame frames[FRAMES];

	begin(3);
	ck_assert_int_eq(incstack__native_walk_remembering(frames, FRAMES, false), 3);
	ck_assert_uint_eq(flushes, 0);
	begin(3);
	ck_assert_int_eq(incstack__native_walk_remembering(frames, FRAMES, true), 3);
	ck_assert_uint_eq(flushes, 1);
	ck_assert_uint_eq(made, 1);
	for (int i = 0; i < 3; i++) {
		begin(3);
		stack[i].is_signal = true;
		const int count = incstack__native_walk_remembering(frames, FRAMES, false);
		ck_assert_uint_eq(flushes, 1);
		ck_assert_uint_eq(begun, 2);
		ck_assert_int_ge(count, 0);
	}
	ck_assert_uint_eq(made, 2);
	incstack__native_walk_forked();
	begin(3);
	ck_assert_int_eq(incstack__native_walk_remembering(frames, FRAMES, false), 3);
	ck_assert_uint_eq(made, 3);
	begin(3);
	ck_assert_int_eq(walk_all(frames), 3);
	ck_assert_uint_eq(made, 4);
}
END_TEST

/* ---- what libunwind asks ---------------------------------------------------------------------- */

START_TEST(registers_that_are_asked_for)
{
	static const int places[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
	ucontext_t context;
	struct walk walk = {.context = &context};
	unw_word_t value = 5;

	for (int i = 0; i < 17; i++)
		context.uc_mcontext.gregs[places[i]] = 100 + i;
	for (int i = 0; i < 17; i++) {
		ck_assert_int_eq(access_reg(NULL, i, &value, 0, &walk), 0);
		ck_assert_uint_eq(value, 100u + (unsigned)i);
	}
	value = 5;
	ck_assert_int_eq(access_reg(NULL, 3, &value, 1, &walk), -UNW_EBADREG);
	ck_assert_int_eq(access_reg(NULL, 17, &value, 0, &walk), -UNW_EBADREG);
	ck_assert_int_eq(access_reg(NULL, -1, &value, 0, &walk), -UNW_EBADREG);
	ck_assert_uint_eq(value, 5);
}
END_TEST

START_TEST(memory_that_is_asked_for)
{
	uintptr_t words[3] = {7, 8, 9};
	struct walk walk = {.code = {.low = (uintptr_t)words, .high = (uintptr_t)&words[2]}};
	unw_word_t value = 5;

	ck_assert_int_eq(access_mem(NULL, (uintptr_t)&words[1], &value, 0, &walk), 0);
	ck_assert_uint_eq(value, 8);
	ck_assert_int_lt(access_mem(NULL, (uintptr_t)&words[2], &value, 0, &walk), 0);
	ck_assert_int_lt(access_mem(NULL, (uintptr_t)words - 8, &value, 0, &walk), 0);
	ck_assert_int_lt(access_mem(NULL, (uintptr_t)words, &value, 1, &walk), 0);
	walk.lost = true;
	ck_assert_int_lt(access_mem(NULL, (uintptr_t)words, &value, 0, &walk), 0);
	ck_assert_uint_eq(value, 8);
	ck_assert_uint_eq(words[0], 7);
}
END_TEST

/* Without a table libunwind must not guess. */
START_TEST(addresses_without_a_table)
{
	struct walk walk = {.lost = false};
	unw_proc_info_t info;

	ck_assert_int_eq(find_proc_info(NULL, 0x1234, &info, 0, &walk), -UNW_ENOINFO);
	ck_assert(walk.lost);
}
END_TEST

START_TEST(pages_that_can_be_read)
{
	struct incstack__native_pages pages = {0, 0};

	readable_page = 0x5000;
	ck_assert(!incstack__native_pages_readable(&pages, 0x4ff8));
	ck_assert(!incstack__native_pages_readable(&pages, 0x5004));
	ck_assert(incstack__native_pages_readable(&pages, 0x5ff8));
	ck_assert_uint_eq(pages.low, 0x5000);
	ck_assert_uint_eq(pages.high, 0x6000);
	ck_assert(incstack__native_pages_readable(&pages, 0x5001)); /* it lies within */
	ck_assert(!incstack__native_pages_readable(&pages, 0x6000));
	readable_page = 0x6000; /* the next: both are known from now on */
	ck_assert(incstack__native_pages_readable(&pages, 0x6000));
	ck_assert_uint_eq(pages.low, 0x5000);
	ck_assert_uint_eq(pages.high, 0x7000);
	readable_page = 0x9000;
	ck_assert(incstack__native_pages_readable(&pages, 0x9010));
	ck_assert_uint_eq(pages.low, 0x9000);
	ck_assert(!incstack__native_pages_readable(&pages, 0x5000));
}
END_TEST

/* Two threads make it at once: one of the two is used. What libunwind must not do is refused. */
START_TEST(space_of_two_makers)
{
	unw_addr_space_t space = NULL;
	const unw_accessors_t none = {.find_proc_info = NULL};
	unw_word_t word;
	unw_fpreg_t number;
	char name[4];

	another_is_faster = true;
	raced = &space;
	ck_assert_ptr_eq(incstack__native_space_make(&space, none, UNW_CACHE_NONE),
			 (unw_addr_space_t)&spaces[SPACES - 1]);
	ck_assert_uint_eq(destroyed, 1);
	ck_assert_ptr_eq(incstack__native_space_make(&space, none, UNW_CACHE_NONE), space);
	ck_assert_uint_eq(made, 1);
	const unw_accessors_t *a = &accessors_of[0];
	ck_assert_int_lt(a->get_dyn_info_list_addr(space, &word, NULL), 0);
	ck_assert_int_lt(a->access_fpreg(space, 0, &number, 0, NULL), 0);
	ck_assert_int_lt(a->resume(space, NULL, NULL), 0);
	ck_assert_int_lt(a->get_proc_name(space, 1, name, sizeof(name), &word, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("walks with libunwind");
	TCase *tests = tcase_create("refusals");

	tcase_add_test(tests, frames_and_their_registers);
	tcase_add_test(tests, refused_at_each_place);
	tcase_add_test(tests, past_a_thunk);
	tcase_add_test(tests, remembered_rules);
	tcase_add_test(tests, registers_that_are_asked_for);
	tcase_add_test(tests, memory_that_is_asked_for);
	tcase_add_test(tests, addresses_without_a_table);
	tcase_add_test(tests, pages_that_can_be_read);
	tcase_add_test(tests, space_of_two_makers);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
