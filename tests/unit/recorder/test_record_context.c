/* SPDX-License-Identifier: MIT
 *
 * Tests the recorder's contexts without the rest of it: to which context an address belongs,
 * which records are released and when, that nothing is lost with them, and what is noted when
 * there is no room.
 */
#include "recorder/threads/context.c"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "run_suite.h"

/* ---- in place of the core and of the rest of the recorder ------------------------------ */

struct incstack__recording incstack__recording;

enum { BYTES = 4096, RECORDS = CONTEXTS_MAX + 8 };
static struct incstack__record *records; /* as many as may be made */
static unsigned made, discarded, flushed, abandoned, forgotten, published, notes, reserved;
static unsigned settled;
static const struct incstack__record *last_flushed;
static bool no_record, no_block, no_stack, other_owner, mode_refused;
static uintptr_t unreadable, patched; /* a page; a stack */

static struct incstack_stack *stack_of(const struct incstack__record *record)
{
	return (struct incstack_stack *)(uintptr_t)record; /* any name would do */
}

struct incstack__record *incstack__spool_record(void)
{
	ck_assert_uint_lt(made, RECORDS);
	return no_record ? NULL : &records[made++];
}

int incstack__record_prepare(struct incstack__record *record, uint32_t number)
{
	record->number = number;
	return no_block ? INCSTACK_ENOMEM : 0;
}

uint32_t incstack__record_number(void)
{
	return made;
}

void incstack__record_publish(struct incstack__record *record)
{
	ck_assert_ptr_nonnull(record->stack);
	published++;
}

void incstack__record_discard(struct incstack__record *record)
{
	(void)record;
	discarded++;
}

void incstack__record_flush(struct incstack__record *record)
{
	last_flushed = record;
	flushed++;
}

void incstack__record_note(enum incstack__tracefile_note note)
{
	notes += note == INCSTACK__NOTE_MANY_CONTEXTS;
}

int incstack_stack_create(struct incstack_runtime *rt, uintptr_t low, uintptr_t high,
			  struct incstack_stack **stack)
{
	(void)rt;
	ck_assert_uint_eq(low % sizeof(uintptr_t), 0);
	ck_assert_uint_eq(high % sizeof(uintptr_t), 0);
	*stack = no_stack ? NULL : stack_of(&records[made - 1]);
	return no_stack ? INCSTACK_ENOMEM : 0;
}

int incstack_stack_set_owner(struct incstack_stack *stack)
{
	ck_assert_ptr_nonnull(stack);
	return other_owner ? INCSTACK_EINVAL : 0;
}

int incstack__stack_remember(struct incstack_stack *stack)
{
	ck_assert_ptr_nonnull(stack);
	return INCSTACK_ENOMEM; /* it does without */
}

int incstack_stack_reserve(struct incstack_stack *stack, size_t bytes)
{
	ck_assert_ptr_nonnull(stack);
	ck_assert_uint_eq(bytes, INCSTACK__RESERVE_BYTES);
	reserved++;
	return 0;
}

int incstack_stack_set_mode(struct incstack_stack *stack, enum incstack_mode mode)
{
	ck_assert_ptr_nonnull(stack);
	ck_assert_int_eq(mode, INCSTACK_MODE_VALIDATE);
	return mode_refused ? INCSTACK_EBUSY : 0;
}

int incstack_stack_forget(struct incstack_stack *stack)
{
	ck_assert_ptr_nonnull(stack);
	forgotten++;
	return 0;
}

void incstack_stack_abandon(struct incstack_stack *stack)
{
	ck_assert_ptr_nonnull(stack);
	abandoned++;
}

void incstack__interrupted_settle(struct incstack__record *record, const struct incstack_top *top)
{
	ck_assert_uint_eq(top->sp, record->low);
	settled++;
}

bool incstack__page_readable(uintptr_t address)
{
	return address != unreadable;
}

bool incstack__stack_is_patched(const struct incstack_stack *stack)
{
	return (uintptr_t)stack == patched;
}

/* ---- contexts ----------------------------------------------------------------------------- */

static uintptr_t
	memory; /* of all contexts; only the words to which a saved context points are read */

static void begin_test(void)
{
	const size_t bytes = (size_t)BYTES * RECORDS;
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	memory = (uintptr_t)pages;
	records = calloc(RECORDS, sizeof(*records));
	incstack__recording.mode = INCSTACK_MODE_VALIDATE;
}

static uintptr_t base_of(unsigned n)
{
	return memory + (uintptr_t)n * BYTES;
}

static void enter_at(uintptr_t base, size_t bytes, uintptr_t sp, uintptr_t rip)
{
	ucontext_t to = {.uc_stack = {.ss_sp = (void *)base, .ss_size = bytes}};

	to.uc_mcontext.gregs[REG_RSP] = (long long)sp;
	to.uc_mcontext.gregs[REG_RIP] = (long long)rip;
	incstack__record_context_enter(&to);
}

/* One that runs for the first time. */
static struct incstack__record *enter(unsigned n)
{
	enter_at(base_of(n), BYTES, base_of(n) + BYTES - 64, 1);
	return find(base_of(n));
}

static unsigned listed(void)
{
	unsigned count = 0;

	for (const struct incstack__record *c = incstack__recording.contexts; c; c = c->next)
		count++;
	ck_assert_uint_eq(count, incstack__recording.contexts_made);
	for (uint32_t i = 1; i < incstack__recording.contexts_made; i++)
		ck_assert_uint_le(by_low[i - 1]->high, by_low[i]->low);
	return count;
}

START_TEST(found_by_address)
{
	static const unsigned order[] = {5, 1, 9, 3, 7};

	for (unsigned i = 0; i < 5; i++) {
		const struct incstack__record *context = enter(order[i]);

		ck_assert_ptr_eq(context, &records[i]);
		ck_assert_uint_eq(context->low, base_of(order[i]));
		ck_assert_uint_eq(context->high, base_of(order[i] + 1));
		ck_assert_int_eq(context->tid, gettid());
	}
	ck_assert_uint_eq(listed(), 5);
	for (unsigned i = 0; i < 5; i++) {
		struct incstack__record *context = &records[i];
		const uintptr_t low = base_of(order[i]);

		context->tid = 1;
		context->no_barriers = 1;
		ck_assert_ptr_eq(incstack__record_context(low), context);
		ck_assert_int_eq(context->tid, gettid());
		ck_assert_int_eq(context->no_barriers, 0);
		ck_assert_ptr_eq(incstack__record_context(low + BYTES - 1), context);
		ck_assert_ptr_null(incstack__record_context(low + BYTES));
		ck_assert_ptr_null(incstack__record_context(low - 1));
	}
	ck_assert_uint_eq(published, 5);
}
END_TEST

/* The same context again, a thread's own one, and a context of which only whole words are used. */
START_TEST(what_gets_no_record)
{
	const uintptr_t base = base_of(1);

	enter(1);
	enter(1);
	enter_at(base, BYTES, base - 8, 1);
	enter_at(base, BYTES, base + BYTES, 1);
	enter_at(base_of(9), 0, base_of(9), 1);
	ck_assert_uint_eq(made, 1);
	enter_at(base_of(3) + 1, BYTES - 2, base_of(3) + 64, 1);
	ck_assert_uint_eq(records[1].low, base_of(3) + 8);
	ck_assert_uint_eq(records[1].high, base_of(4) - 8);
	no_record = true;
	ck_assert_ptr_null(enter(5));
	no_record = false;
	no_block = true;
	ck_assert_ptr_null(enter(5));
	no_block = false;
	no_stack = true;
	ck_assert_ptr_null(enter(5));
	ck_assert_uint_eq(discarded, 2);
	no_stack = false;
	ck_assert_uint_eq(listed(), 2);
	ck_assert_ptr_nonnull(enter(5));
}
END_TEST

/* Another one in its memory: what it has recorded is written, once. */
START_TEST(memory_is_used_again)
{
	for (unsigned n = 0; n < 6; n++)
		enter(n);
	records[2].no_barriers = 1;
	enter_at(base_of(1) + 64, 2 * BYTES, base_of(1) + 128, 1); /* in that of 1, 2 and 3 */
	ck_assert_uint_eq(listed(), 4);
	ck_assert_uint_eq(flushed, 3);
	ck_assert_uint_eq(abandoned, 3);
	ck_assert_uint_eq(discarded, 3);
	ck_assert_uint_eq(forgotten, 2); /* without barriers, a trace is complete */
	enter_at(base_of(5), BYTES / 2, base_of(5) + 64, 1); /* the same lowest address */
	ck_assert_uint_eq(listed(), 4);
	ck_assert_uint_eq(flushed, 4);
	enter_at(base_of(4) + 64, BYTES - 64, base_of(4) + 128, 1); /* the same highest */
	ck_assert_uint_eq(listed(), 4);
	ck_assert_uint_eq(flushed, 5);
	ck_assert_uint_eq(incstack__record_context(base_of(4) + 64)->high, base_of(5));
}
END_TEST

/* ---- records that are not needed any more -------------------------------------------------- */

/* At this number of contexts, those are released that were left and have not been used for some
 * time. */
START_TEST(unused_records_go)
{
	unsigned n;

	for (n = 0; n < LOOK_FIRST; n++)
		enter(n);
	enter(n++); /* at this one all were used */
	ck_assert_uint_eq(flushed, 0);
	ck_assert_uint_eq(looks, 1);
	ck_assert_uint_eq(look_at, 2 * LOOK_FIRST);
	for (; n < 2 * LOOK_FIRST; n++)
		enter(n);
	for (unsigned i = 0; i < n; i++) {
		records[i].no_barriers = i % 2 == 0;
		records[i].comes_back = 0;
	}
	patched = (uintptr_t)stack_of(&records[1]);
	records[3].tid = 1; /* it may run there */
	records[4].comes_back = 1;
	ck_assert_ptr_nonnull(incstack__record_context(base_of(6))); /* used */
	records[6].no_barriers = 1;
	unreadable = base_of(9) - sizeof(uintptr_t); /* the memory of 8 is gone */
	records[8].used = looks;
	enter(n); /* those from LOOK_FIRST on were used since the first look */
	ck_assert_uint_eq(flushed, LOOK_FIRST - 4);
	ck_assert_uint_eq(listed(), n + 1 - flushed);
	for (unsigned i = 0; i < LOOK_FIRST; i++)
		ck_assert_int_eq(find(base_of(i)) != NULL, i == 1 || i == 3 || i == 4 || i == 6);
	ck_assert_uint_eq(look_at, 2 * (n - flushed));
	ck_assert_uint_eq(forgotten, LOOK_FIRST / 2 - 2);
}
END_TEST

/* The one that is running is not released. */
START_TEST(running_record_stays)
{
	struct incstack__record *context = enter(0);

	context->used = looks - 1;
	ck_assert_int_eq(may_go(context, base_of(0)), 0);
	ck_assert_int_eq(may_go(context, base_of(1) - 1), 0);
	ck_assert_int_eq(may_go(context, base_of(1)), 1);
	ck_assert_int_eq(may_go(context, base_of(0) - 1), 1);
	context->used = looks;
	ck_assert_int_eq(may_go(context, base_of(1)), 0);
	look_at = 1; /* and the next look is not too early */
	discard_unused(base_of(1));
	ck_assert_uint_eq(look_at, LOOK_FIRST);
}
END_TEST

/* If the word below the stack pointer is the return address of the switch that left it, a context
 * comes back. From then on one more is kept. */
START_TEST(comebacks_keep_one_more)
{
	const uintptr_t sp = base_of(0) + 64, word = 77;

	((uintptr_t *)sp)[-1] = word;
	enter_at(base_of(0), BYTES, sp, 78);
	ck_assert_uint_eq(look_least, LOOK_FIRST);
	discard(0);
	enter_at(base_of(0), BYTES, sp, 77);
	ck_assert_uint_eq(look_least, LOOK_FIRST + 1);
	ck_assert_uint_eq(look_at, LOOK_FIRST + 1);
	discard(0);
	enter_at(base_of(0), BYTES, base_of(0), 0); /* the word is another one's */
	discard(0);
	memcpy((void *)(sp + 1 - sizeof(word)), &word, sizeof(word));
	enter_at(base_of(0), BYTES, sp + 1, 77);
	((uintptr_t *)sp)[-1] = 77;
	ck_assert_uint_eq(look_least, LOOK_FIRST + 1);
	look_at = 2 * LOOK_FIRST;
	discard(0);
	enter_at(base_of(0), BYTES, sp, 77);
	ck_assert_uint_eq(look_least, LOOK_FIRST + 2);
	ck_assert_uint_eq(look_at, 2 * LOOK_FIRST);
	look_least = CONTEXTS_MAX;
	discard(0);
	enter_at(base_of(0), BYTES, sp, 77);
	ck_assert_uint_eq(look_least, CONTEXTS_MAX);
}
END_TEST

/* Contexts beyond that number have no record, which is noted. */
START_TEST(more_than_there_may_be)
{
	for (unsigned n = 0; n < CONTEXTS_MAX; n++)
		enter(n)->comes_back = 1;
	ck_assert_uint_eq(look_at, CONTEXTS_MAX);
	ck_assert_uint_eq(notes, 0);
	ck_assert_ptr_null(enter(CONTEXTS_MAX));
	ck_assert_uint_eq(notes, 1);
	ck_assert_uint_eq(look_at, CONTEXTS_MAX);
	ck_assert_uint_eq(flushed, 0);
	records[5].comes_back = 0;
	records[5].no_barriers = 1;
	ck_assert_ptr_nonnull(enter(CONTEXTS_MAX));
	ck_assert_uint_eq(flushed, 1);
	ck_assert_uint_eq(listed(), CONTEXTS_MAX);
}
END_TEST

/* ---- switches, and the end ------------------------------------------------------------------ */

START_TEST(left)
{
	struct incstack__record *context = enter(1);

	reserved = 0;
	incstack__record_context_leave(base_of(0), 1);
	ck_assert_uint_eq(reserved, 0);
	incstack__record_context_leave(base_of(1), 1);
	ck_assert_int_eq(context->no_barriers, 1);
	ck_assert_int_eq(context->comes_back, 1);
	mode_refused = true;
	incstack__record_context_leave(base_of(1), 0);
	ck_assert_int_eq(context->no_barriers, 0);
	ck_assert_int_eq(context->comes_back, 0);
	ck_assert_uint_eq(reserved, 2);
}
END_TEST

START_TEST(written_at_the_end)
{
	const pid_t other = gettid() + 1;
	struct incstack__record alive = {.tid = other};

	for (unsigned n = 0; n < 4; n++)
		enter(n);
	records[0].no_barriers = 1;
	records[3].tid = other;
	/* The contexts of this thread that were left, and the one that it runs on. */
	incstack__record_contexts_flush(gettid(), base_of(1), NULL, 0);
	ck_assert_uint_eq(flushed, 2);
	ck_assert_uint_eq(forgotten, 0);
	/* At the end, all contexts. */
	incstack__record_contexts_flush(gettid(), base_of(1), NULL, 1);
	ck_assert_uint_eq(flushed, 5);
	ck_assert_uint_eq(forgotten, 1);
	incstack__record_contexts_flush(other, base_of(1), NULL, 0);
	ck_assert_uint_eq(flushed, 5);
	/* The contexts of threads that have ended. */
	records[3].no_barriers = 1;
	alive.next = &records[7];
	records[7].tid = gettid();
	incstack__recording.threads = &alive;
	incstack__record_contexts_flush_rest(0);
	ck_assert_uint_eq(flushed, 5);
	alive.tid = 1;
	incstack__record_contexts_flush_rest(0);
	ck_assert_uint_eq(flushed, 6);
	ck_assert_ptr_eq(last_flushed, &records[3]);
	other_owner = true;
	incstack__record_contexts_flush_rest(1);
	ck_assert_uint_eq(flushed, 6);
}
END_TEST

/* If the thread is held, only the context on which it runs must be settled. */
START_TEST(settled_when_held)
{
	const struct incstack_top held = {.sp = base_of(1)};

	for (unsigned n = 0; n < 3; n++)
		enter(n);
	incstack__record_contexts_flush(gettid(), base_of(1), &held, 1);
	ck_assert_uint_eq(settled, 1);
	ck_assert_uint_eq(forgotten, 2);
	ck_assert_uint_eq(flushed, 3);
	records[1].no_barriers = 1;
	incstack__record_contexts_flush(gettid(), base_of(1), &held, 1);
	ck_assert_uint_eq(settled, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("contexts of the recorder");
	TCase *contexts = tcase_create("contexts");

	tcase_add_checked_fixture(contexts, begin_test, NULL);
	tcase_add_test(contexts, found_by_address);
	tcase_add_test(contexts, what_gets_no_record);
	tcase_add_test(contexts, memory_is_used_again);
	tcase_add_test(contexts, unused_records_go);
	tcase_add_test(contexts, running_record_stays);
	tcase_add_test(contexts, comebacks_keep_one_more);
	tcase_add_test(contexts, more_than_there_may_be);
	tcase_add_test(contexts, left);
	tcase_add_test(contexts, written_at_the_end);
	tcase_add_test(contexts, settled_when_held);
	suite_add_tcase(suite, contexts);
	return run_suite(suite);
}
