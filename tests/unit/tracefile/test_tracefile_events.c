/* SPDX-License-Identifier: MIT
 *
 * Tests that events of a heap trace, of any value and in any order, are read as they were
 * recorded.
 */
#include <stdlib.h>

#include "tracefile/read.h"
#include "run_suite.h"
#include "tracefile_batch.h"

#define TRACES 48

static unsigned char file[1 << 18];
static struct incstack_frame_object object;
static struct incstack_trace traces[TRACES];

/* With all the traces that events may name, each of the same frame. */
static void start_file(void)
{
	struct incstack__tracefile_header header;

	ck_assert_int_eq(incstack__tracefile_header_init(&header, 7, 1, 0, 0, "cmd"), 0);
	memcpy(file, &header, sizeof(header));
	object = (struct incstack_frame_object){.position = -1, .flags = INCSTACK_OBJECT_BASE};
	for (uint32_t i = 0; i < TRACES; i++)
		traces[i] = (struct incstack_trace){.top = &object,
						    .next = i + 1 < TRACES ? &traces[i + 1] : NULL};
}

/* Values at the edge of each form and past it, each alone in a batch. */
static const struct incstack__tracefile_event edges[] = {
	{.stamp = INCSTACK__TRACEFILE_SMALL_STAMP_MAX,
	 .pointer = INCSTACK__TRACEFILE_SMALL_POINTER_MAX * 16,
	 .size = INCSTACK__TRACEFILE_SMALL_SIZE_MAX},
	{.stamp = INCSTACK__TRACEFILE_SMALL_STAMP_MAX + 1, .pointer = 16, .size = 1},
	{.stamp = 1, .pointer = INCSTACK__TRACEFILE_SMALL_POINTER_MAX * 16 + 16, .size = 1},
	{.stamp = 1, .pointer = 24, .size = 1},
	{.stamp = 1, .pointer = 16, .size = INCSTACK__TRACEFILE_SMALL_SIZE_MAX + 1},
	{.stamp = 1, .pointer = 16, .size = 1, .trace = 1},
	{.stamp = INCSTACK__TRACEFILE_STAMP_MAX,
	 .pointer = INCSTACK__TRACEFILE_POINTER_MAX,
	 .size = INCSTACK__TRACEFILE_SIZE_MAX,
	 .trace = TRACES - 1},
	{.stamp = INCSTACK__TRACEFILE_STAMP_MAX + 1, .pointer = 16, .size = 1},
	{.stamp = INCSTACK__TRACEFILE_TIME_MAX, .pointer = 16, .size = 1},
	{.stamp = INCSTACK__TRACEFILE_TIME_MAX + 1, .pointer = 16, .size = 1},
	{.stamp = 1, .pointer = INCSTACK__TRACEFILE_POINTER_MAX + 1, .size = 1},
	{.stamp = 1, .pointer = UINT64_MAX, .size = 1},
	{.stamp = 1, .pointer = 16, .size = INCSTACK__TRACEFILE_SIZE_MAX + 1},
	{.stamp = UINT64_MAX, .pointer = 16, .size = 1, .trace = INCSTACK__TRACEFILE_NO_TRACE},
};

static int put_event(struct incstack__tracefile_log *log,
		     const struct incstack__tracefile_event *event)
{
	if (event->kind == INCSTACK__TRACEFILE_FREE)
		return incstack__tracefile_put_free(log, event->stamp, event->pointer);
	return incstack__tracefile_put_alloc(log, event->stamp, event->pointer, event->size,
					     event->trace);
}

static void check_event(struct incstack__tracefile_reader *reader,
			const struct incstack__tracefile_event *wanted)
{
	struct incstack__tracefile_event event;

	ck_assert_int_eq(incstack__tracefile_next(reader, &event), 1);
	ck_assert_uint_eq(event.kind, wanted->kind);
	ck_assert_uint_eq(event.stamp, wanted->stamp);
	ck_assert_uint_eq(event.pointer, wanted->pointer);
	if (event.kind == INCSTACK__TRACEFILE_FREE)
		return;
	ck_assert_uint_eq(event.size, wanted->size);
	ck_assert_uint_eq(event.trace, wanted->trace);
}

/* One batch of these events is written and read back. */
static void check_events(const struct incstack__tracefile_event *events, size_t count)
{
	static uint64_t words[1 << 13];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	const struct incstack_tree tree = {traces, TRACES, 1, 0};
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__tracefile_event event;
	int64_t bytes;

	start_file();
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(put_event(&log, &events[i]), 0);
	bytes = put_batch(file + INCSTACK__TRACEFILE_START,
			  sizeof(file) - INCSTACK__TRACEFILE_START, &log, 1, 1, &tree);
	ck_assert_int_gt(bytes, 0);
	ck_assert_uint_eq(log.used, 0);
	ck_assert_int_eq(incstack__tracefile_open(file, INCSTACK__TRACEFILE_START + (size_t)bytes,
						  &reader, &problem),
			 0);
	for (size_t i = 0; i < count; i++)
		check_event(reader, &events[i]);
	ck_assert_int_eq(incstack__tracefile_next(reader, &event), 0);
	ck_assert_ptr_null(incstack__tracefile_reader_problem(reader).what);
	incstack__tracefile_close(reader);
}

/* Then an earlier one: time seems to go back. */
START_TEST(events_of_any_value)
{
	struct incstack__tracefile_event events[] = {edges[_i], edges[_i], edges[_i]};

	events[0].kind = events[2].kind = INCSTACK__TRACEFILE_ALLOC;
	events[1].kind = INCSTACK__TRACEFILE_FREE;
	events[1].stamp--;
	check_events(events, 1);
	check_events(events + 1, 1);
	check_events(events, 3);
}
END_TEST

/* Numbers of all lengths. */
static uint64_t any_number(uint64_t *seed)
{
	const uint64_t high = random_next(seed) << 33;

	return (high | random_next(seed)) >> random_next(seed) % 64;
}

static struct incstack__tracefile_event any_event(uint64_t *seed, uint64_t stamp, uint64_t trace)
{
	const uint64_t common = random_next(seed) % 4;
	const uint64_t since = random_next(seed) % (common != 0 ? 20 : 1 << 15);

	return (struct incstack__tracefile_event){
		.kind = random_next(seed) % 3 != 0 ? INCSTACK__TRACEFILE_ALLOC
						   : INCSTACK__TRACEFILE_FREE,
		.stamp = common == 1 ? any_number(seed) : stamp + since,
		.pointer = common == 2 ? any_number(seed) : random_next(seed) * 16,
		.size = common == 3 ? any_number(seed) : random_next(seed) % 1000,
		.trace = random_next(seed) % 8 != 0 ? trace : random_next(seed) % TRACES,
	};
}

/* Each form behind each other one. */
START_TEST(any_sequence_of_events)
{
	static struct incstack__tracefile_event events[500];
	const size_t count = sizeof(events) / sizeof(events[0]);
	uint64_t seed = (uint64_t)_i;
	uint64_t stamp = 0;
	uint64_t trace = 0;

	for (size_t i = 0; i < count; i++) {
		events[i] = any_event(&seed, stamp, trace % TRACES);
		if (i % 50 == 0)
			events[i].trace = INCSTACK__TRACEFILE_NO_TRACE;
		if (events[i].kind == INCSTACK__TRACEFILE_ALLOC &&
		    events[i].trace != INCSTACK__TRACEFILE_NO_TRACE)
			trace = events[i].trace + 1;
		stamp = events[i].stamp;
	}
	check_events(events, count);
}
END_TEST

START_TEST(an_event_in_one_word_is_the_rule)
{
	static uint64_t words[64];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));

	for (uint64_t i = 0; i < 10; i++) {
		ck_assert_int_eq(incstack__tracefile_put_alloc(&log, 2 * i, 4096 + 16 * i, 100, i),
				 0);
		ck_assert_int_eq(incstack__tracefile_put_free(&log, 2 * i + 1, 4096 + 16 * i), 0);
	}
	ck_assert_uint_eq(log.used, 20 * INCSTACK__TRACEFILE_WORD_BYTES);
}
END_TEST

/* The shortest form that holds the event. */
START_TEST(forms_are_short)
{
	static const struct {
		uint32_t kind;
		uint64_t before, stamp, words;
	} forms[] = {
		{INCSTACK__TRACEFILE_ALLOC, 0, INCSTACK__TRACEFILE_STAMP_MAX, 2},
		{INCSTACK__TRACEFILE_ALLOC, 0, INCSTACK__TRACEFILE_STAMP_MAX + 1,
		 3}, /* and the time */
		{INCSTACK__TRACEFILE_FREE, 0, INCSTACK__TRACEFILE_STAMP_MAX, 1},
		{INCSTACK__TRACEFILE_FREE, 0, INCSTACK__TRACEFILE_STAMP_MAX + 1, 2},
		{INCSTACK__TRACEFILE_ALLOC, 0, INCSTACK__TRACEFILE_TIME_MAX, 3},
		{INCSTACK__TRACEFILE_ALLOC, 0, INCSTACK__TRACEFILE_TIME_MAX + 1, 5},
		{INCSTACK__TRACEFILE_FREE, 0, INCSTACK__TRACEFILE_TIME_MAX, 2},
		{INCSTACK__TRACEFILE_FREE, 0, INCSTACK__TRACEFILE_TIME_MAX + 1, 5},
		{INCSTACK__TRACEFILE_ALLOC, INCSTACK__TRACEFILE_TIME_MAX + 1,
		 INCSTACK__TRACEFILE_TIME_MAX + 1 + INCSTACK__TRACEFILE_STAMP_MAX, 2},
		{INCSTACK__TRACEFILE_ALLOC, INCSTACK__TRACEFILE_TIME_MAX + 1, 5,
		 3}, /* back in time */
	};
	static uint64_t words[64];

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct incstack__tracefile_log log = log_in(words, sizeof(words));
		const struct incstack__tracefile_event event = {.kind = forms[i].kind,
								.stamp = forms[i].stamp,
								.pointer = 16,
								.size = 1,
								.trace = 7};
		log.stamp = forms[i].before;
		ck_assert_int_eq(put_event(&log, &event), 0);
		ck_assert_uint_eq(log.used, forms[i].words * INCSTACK__TRACEFILE_WORD_BYTES);
	}
}
END_TEST

/* Whatever form it has, nothing is written past the events' part. */
START_TEST(a_full_log_refuses)
{
	static uint64_t words[64];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	uint64_t seed = (uint64_t)_i;
	struct incstack__tracefile_event event;

	do {
		event = any_event(&seed, log.stamp, log.trace);
	} while (put_event(&log, &event) == 0);
	ck_assert_uint_le(log.used, log.size);
	ck_assert_uint_lt(log.size - log.used, INCSTACK__TRACEFILE_WIDE_BYTES);
	for (size_t i = (size_t)(log.data + log.size - (unsigned char *)words) / 8; i < 64; i++)
		ck_assert_uint_eq(words[i], 0);
	memset(words, 0, sizeof(words));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tracefile_events");
	TCase *tests = tcase_create("all");

	tcase_add_loop_test(tests, events_of_any_value, 0, sizeof(edges) / sizeof(edges[0]));
	tcase_add_loop_test(tests, any_sequence_of_events, 0, 100);
	tcase_add_test(tests, an_event_in_one_word_is_the_rule);
	tcase_add_test(tests, forms_are_short);
	tcase_add_loop_test(tests, a_full_log_refuses, 0, 50);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
