/* SPDX-License-Identifier: MIT
 *
 * Tests what the techniques of profiling from outside make of the kernel's reports. The reports are made up,
 * and the trace file is a text. A walk finds one frame, with the pc of the stack.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/attach/kernel/outputs.h"
#include "tool/attach/kernel/sandbox.h"
#include "tool/attach/process/ask.h"
#include "tool/attach/process/cause.h"
#include "tool/attach/technique.h"
#include "run_suite.h"
#include "tool/proc.h"

enum { INTERVAL = 1000 };
enum { ONE = 1000, OTHER = 2000 }; /* threads, whose first tick comes after a whole interval */

static char *no_program[] = {NULL};
static struct tool_record_options options = {.interval = INTERVAL, .program = no_program};
static struct tool_attach_run run;
static const struct tool_attach_technique *technique;
static char written[1024];

/* ---- what the techniques use ----------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	const size_t used = strlen(written);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(written + used, sizeof(written) - used, format, arguments);
	va_end(arguments);
}

static void note_thread(const char *what, const struct tool_attach_thread *thread)
{
	note("%s %d", what, (int)thread->tid);
	if (thread->trace.what == INCSTACK__TICK_TAKEN)
		note(" at %d", (int)thread->trace.frames[0].pc);
}

struct tool_attach_file *tool_attach_file_new(const struct tool_record_options *wanted, pid_t pid,
					      const struct tool_attach_space *space)
{
	static char file;

	(void)wanted;
	(void)pid;
	(void)space;
	return (struct tool_attach_file *)(void *)&file;
}

void tool_attach_file_note(struct tool_attach_file *file, unsigned number)
{
	(void)file;
	(void)number;
}

void tool_attach_file_ticks(struct tool_attach_file *file, struct tool_attach_thread *thread,
			    uint64_t time, uint64_t ticks, enum incstack__state state)
{
	(void)file;
	(void)time;
	note_thread("ticks", thread);
	note(" x%d", (int)ticks);
	if (state != INCSTACK__STATE_RUNNING && state != INCSTACK__STATE_OTHER)
		note(" state %d", (int)state);
	note("; ");
}

/* The pc says for what the thread waits; two of them for the same. */
enum incstack__state tool_attach_cause(struct tool_attach_space *space, uint64_t pc)
{
	(void)space;
	return pc < INCSTACK__STATE_OTHER ? (enum incstack__state)pc : INCSTACK__STATE_OTHER;
}

void tool_attach_file_alloc(struct tool_attach_file *file, struct tool_attach_thread *thread,
			    const struct tool_attach_block *block)
{
	(void)file;
	note_thread("alloc", thread);
	note(" block %d of %d; ", (int)block->pointer, (int)block->bytes);
}

void tool_attach_file_free_block(struct tool_attach_file *file, struct tool_attach_thread *thread,
				 uint64_t time, uint64_t pointer)
{
	(void)file;
	(void)time;
	note("free %d block %d; ", (int)thread->tid, (int)pointer);
}

void tool_attach_file_count(struct tool_attach_file *file, enum incstack__tick what, uint64_t count)
{
	(void)file;
	note("count %d x%d; ", (int)what, (int)count);
}

void tool_attach_file_dropped(struct tool_attach_file *file, uint64_t count)
{
	(void)file;
	note("dropped %d; ", (int)count);
}

void tool_attach_file_moment(struct tool_attach_file *file)
{
	(void)file;
	note("moment; ");
}

void tool_attach_file_lost(struct tool_attach_file *file, uint64_t time, uint64_t count)
{
	(void)file;
	(void)time;
	note("lost %d; ", (int)count);
}

static enum incstack__tick find_one(const struct tool_attach_stack *stack,
				    struct tool_attach_frame *frames, size_t *count)
{
	frames[0] = (struct tool_attach_frame){.pc = stack->pc};
	*count = 1;
	return INCSTACK__TICK_TAKEN;
}

enum incstack__tick tool_attach_walk(struct tool_attach_space *space,
				     const struct tool_attach_stack *stack,
				     struct tool_attach_frame *frames, size_t *count)
{
	(void)space;
	return find_one(stack, frames, count);
}

enum incstack__tick tool_attach_walk_callers(struct tool_attach_space *space,
					     const struct tool_attach_stack *stack,
					     struct tool_attach_frame *frames, size_t *count)
{
	(void)space;
	return find_one(stack, frames, count);
}

enum tool_attach_code tool_attach_space_rule(struct tool_attach_space *space, uint64_t pc,
					     bool is_exact, struct incstack_rule *rule)
{
	(void)space;
	(void)pc;
	(void)is_exact;
	(void)rule;
	return TOOL_ATTACH_NO_RULE;
}

int tool_attach_events_open(struct tool_attach_events **events, pid_t pid, uint64_t interval,
			    bool is_wall)
{
	(void)events;
	(void)pid;
	note("interval %d%s; ", (int)interval, is_wall ? " wall" : "");
	return 0;
}

int tool_attach_process_may_return(pid_t pid)
{
	(void)pid;
	return 0;
}

void tool_attach_outputs_open(struct tool_attach_events *events,
			      const struct tool_attach_maps *maps)
{
	(void)events;
	(void)maps;
}

int tool_attach_functions_find(pid_t pid, const struct tool_attach_space *space,
			       struct tool_attach_wanted **wanted, size_t *count)
{
	(void)pid;
	(void)space;
	*wanted = NULL;
	*count = 0;
	return 0;
}

int tool_attach_hits_open(struct tool_attach_events *events,
			  const struct tool_attach_wanted *wanted, size_t count)
{
	(void)events;
	(void)wanted;
	(void)count;
	return 0;
}

uint64_t tool_attach_hits_lost(const struct tool_attach_events *events,
			       enum tool_attach_hit_kind kind)
{
	(void)events;
	return kind == TOOL_ATTACH_FREE ? 4 : 0;
}

void tool_attach_ask_threads(void (*call)(void *context, pid_t tid), void *context)
{
	(void)call;
	(void)context;
}

size_t tool_attach_ask_facts(enum tool_attach_facts what, pid_t tid, char *text, size_t size)
{
	(void)what;
	(void)tid;
	(void)size;
	text[0] = '\0';
	return 0;
}

int tool_attach_ask_memory(void)
{
	return -1;
}

uint64_t tool_proc_number(const char *stat, int number)
{
	(void)stat;
	(void)number;
	return 0;
}

/* ---- reports ---------------------------------------------------------------------------------- */

static void begin(const struct tool_attach_technique *chosen)
{
	technique = chosen;
	memset(&run, 0, sizeof(run));
	run.options = &options;
	written[0] = '\0';
	ck_assert_int_eq(technique->prepare(&run), 0);
	ck_assert_int_eq(technique->open(&run), 0);
}

static void end(void)
{
	free(run.own);
	tool_attach_threads_clear(&run.threads);
}

/* Compares what was written since the last call. */
static void expect(const char *text)
{
	ck_assert_str_eq(written, text);
	written[0] = '\0';
}

static void report(enum tool_attach_report_kind kind, pid_t tid, uint64_t time, uint64_t pc)
{
	const struct tool_attach_report one = {
		.kind = kind, .tid = tid, .time = time, .stack = {.pc = pc}};

	technique->report(&run, &one);
}

static void lose(uint64_t since, uint64_t time, uint64_t count)
{
	const struct tool_attach_report one = {
		.kind = TOOL_ATTACH_LOST, .time = time, .lost = {.count = count, .since = since}};

	technique->report(&run, &one);
}

/* The number of the function is that of a probe. */
static void hit(enum tool_attach_hit_kind kind, enum tool_attach_function function, pid_t tid,
		uint64_t value)
{
	const struct tool_attach_report one = {
		.kind = TOOL_ATTACH_HIT,
		.tid = tid,
		.hit = {.kind = kind,
			.probe = function,
			.stack = {.sp = kind == TOOL_ATTACH_RETURN ? 108 : 100, .pc = 7},
			.arguments = {value},
			.result = value},
	};

	technique->report(&run, &one);
}

/* ---- tests ------------------------------------------------------------------------------------ */

START_TEST(each_tick_is_written_with_its_trace)
{
	begin(&tool_attach_ticks);
	expect("interval 1000; ");
	report(TOOL_ATTACH_TICK, ONE, 1000, 5);
	report(TOOL_ATTACH_TICK, OTHER, 1000, 6);
	expect("ticks 1000 at 5 x1; ticks 2000 at 6 x1; ");
	lose(1000, 2000, 3);
	expect("lost 3; ");
	ck_assert_uint_eq(technique->end(&run, 3000, 42, 2), 42);
	expect("lost 2; ");
	end();
}
END_TEST

START_TEST(a_wait_is_divided_into_ticks)
{
	begin(&tool_attach_waits);
	expect("interval 1000 wall; ");
	report(TOOL_ATTACH_LEFT, ONE, 10000, 5);
	report(TOOL_ATTACH_LEFT, OTHER, 10500, 6);
	report(TOOL_ATTACH_ON, ONE, 15000, 0);
	report(TOOL_ATTACH_ON, OTHER, 12000, 0);
	expect("ticks 1000 at 5 x5; ticks 2000 at 6 x1; ");
	report(TOOL_ATTACH_OFF, OTHER, 13000, 0); /* without a trace; half an interval was left */
	report(TOOL_ATTACH_ON, OTHER, 17500, 0);
	expect("ticks 2000 x5; ");
	ck_assert_uint_eq(technique->end(&run, 18000, 42, 0), 8000 + 7500);
	expect("");
	end();
}
END_TEST

static void report_of(struct tool_attach_report one)
{
	technique->report(&run, &one);
}

/* A thread leaves its processor in a call, with that pc, and is back. */
static void wait_at(uint64_t pc, uint64_t from, uint64_t to, bool is_preempted)
{
	report_of((struct tool_attach_report){.kind = TOOL_ATTACH_LEFT,
					      .tid = ONE,
					      .time = from,
					      .stack = {.pc = pc, .is_native = true}});
	report_of((struct tool_attach_report){
		.kind = TOOL_ATTACH_OFF, .tid = ONE, .time = from, .is_preempted = is_preempted});
	report(TOOL_ATTACH_ON, ONE, to, 0);
}

START_TEST(each_wait_has_its_state)
{
	begin(&tool_attach_waits);
	expect("interval 1000 wall; ");
	wait_at(INCSTACK__STATE_LOCK, 10000, 13000, false);
	expect("ticks 1000 at 2 x3 state 2; ");
	wait_at(INCSTACK__STATE_SLEEP, 20000, 24000, false);
	expect("ticks 1000 at 4 x4 state 4; ");
	wait_at(INCSTACK__STATE_LOCK, 30000, 35000, true);
	expect("ticks 1000 at 2 x5 state 1; ");
	end();
}
END_TEST

/* Returns how many ticks the event that was written last stands for, and forgets it. */
static int ticks_written(void)
{
	const char *at = strchr(written, 'x');
	const int ticks = at ? atoi(at + 1) : 0;

	written[0] = '\0';
	return ticks;
}

/* Two places share each interval: a wait of 0.3 and one of 0.7 intervals. */
START_TEST(waits_that_repeat_are_sampled_in_their_shares)
{
	int ticks[8] = {0};

	begin(&tool_attach_waits);
	for (uint64_t i = 0; i < 10000; i++) {
		wait_at(6, 10000 + i * 1000, 10300 + i * 1000, false);
		ticks[6] += ticks_written();
		wait_at(7, 10300 + i * 1000, 11000 + i * 1000, false);
		ticks[7] += ticks_written();
	}
	ck_assert_int_ge(ticks[6], 2800);
	ck_assert_int_le(ticks[6], 3200);
	ck_assert_int_ge(ticks[7], 6800);
	end();
}
END_TEST

START_TEST(a_long_wait_is_written_before_it_ends)
{
	begin(&tool_attach_waits);
	expect("interval 1000 wall; ");
	report(TOOL_ATTACH_LEFT, ONE, 10000, 5);
	technique->account(&run, 40000);
	expect("");
	technique->account(&run, 60010000);
	expect("ticks 1000 at 5 x60000; ");
	end();
}
END_TEST

START_TEST(what_follows_lost_reports_is_not_known)
{
	begin(&tool_attach_waits);
	expect("interval 1000 wall; ");
	report(TOOL_ATTACH_LEFT, ONE, 10000, 5);
	lose(13000, 20000, 9);
	report(TOOL_ATTACH_ON, ONE, 30000, 0);
	expect("ticks 1000 at 5 x3; ");
	ck_assert_uint_eq(technique->end(&run, 40000, 42, 0), 30000);
	expect("lost 27; ");
	end();
}
END_TEST

START_TEST(another_program_has_other_waits)
{
	begin(&tool_attach_waits);
	expect("interval 1000 wall; ");
	report(TOOL_ATTACH_LEFT, ONE, 10000, 5);
	report(TOOL_ATTACH_EXECUTED, ONE, 12000, 0);
	expect("ticks 1000 at 5 x2; ");
	report(TOOL_ATTACH_ON, ONE, 20000, 0);
	report(TOOL_ATTACH_ENDED, ONE, 21000, 0);
	tool_attach_threads_remove(&run.threads, tool_attach_threads_find(&run.threads, ONE));
	ck_assert_uint_eq(technique->end(&run, 22000, 42, 0), 2000 + 1000);
	expect("");
	end();
}
END_TEST

START_TEST(a_call_and_its_return_are_an_allocation)
{
	begin(&tool_attach_heap);
	expect("interval 0; ");
	hit(TOOL_ATTACH_ENTRY, TOOL_ATTACH_MALLOC, ONE, 24);
	hit(TOOL_ATTACH_ENTRY, TOOL_ATTACH_MALLOC, OTHER, 16);
	expect("");
	hit(TOOL_ATTACH_RETURN, TOOL_ATTACH_MALLOC, ONE, 77);
	hit(TOOL_ATTACH_RETURN, TOOL_ATTACH_MALLOC, ONE, 78); /* of no call */
	hit(TOOL_ATTACH_RETURN, TOOL_ATTACH_MALLOC, OTHER, 79);
	expect("alloc 1000 at 7 block 77 of 24; alloc 2000 at 7 block 79 of 16; ");
	hit(TOOL_ATTACH_FREE, TOOL_ATTACH_DEALLOCATE, OTHER, 77);
	expect("free 2000 block 77; ");
	ck_assert_uint_eq(run.samples, 6);
	end();
}
END_TEST

START_TEST(calls_without_a_return_are_counted)
{
	const struct tool_attach_report lost = {.kind = TOOL_ATTACH_HITS_LOST,
						.hits_lost = {1, TOOL_ATTACH_RETURN}};
	char expected[32];

	snprintf(expected, sizeof(expected), "count %d x1; ", INCSTACK__TICK_NO_RECORD);
	begin(&tool_attach_heap);
	expect("interval 0; ");
	hit(TOOL_ATTACH_ENTRY, TOOL_ATTACH_MALLOC, ONE, 24);
	technique->report(&run, &lost);
	expect(expected);
	hit(TOOL_ATTACH_RETURN, TOOL_ATTACH_MALLOC, ONE, 77);
	expect("");
	hit(TOOL_ATTACH_ENTRY, TOOL_ATTACH_MALLOC, ONE, 24);
	report(TOOL_ATTACH_ENDED, ONE, 0, 0);
	expect(expected);
	hit(TOOL_ATTACH_ENTRY, TOOL_ATTACH_NEW, OTHER, 8);
	ck_assert_uint_eq(technique->end(&run, 0, 42, 5), 0);
	expect("dropped 4; alloc 2000 at 7 block 0 of 8; ");
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("attach techniques");
	TCase *all = tcase_create("all");

	tcase_add_test(all, each_tick_is_written_with_its_trace);
	tcase_add_test(all, a_wait_is_divided_into_ticks);
	tcase_add_test(all, each_wait_has_its_state);
	tcase_add_test(all, waits_that_repeat_are_sampled_in_their_shares);
	tcase_add_test(all, a_long_wait_is_written_before_it_ends);
	tcase_add_test(all, what_follows_lost_reports_is_not_known);
	tcase_add_test(all, another_program_has_other_waits);
	tcase_add_test(all, a_call_and_its_return_are_an_allocation);
	tcase_add_test(all, calls_without_a_return_are_counted);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
