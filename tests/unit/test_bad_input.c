/* SPDX-License-Identifier: MIT
 *
 * Tests arguments that are invalid: null, another thread, misaligned or foreign addresses,
 * impossible sizes and options. Every public function returns the error that its header names,
 * and leaves the stack as it was.
 */
#include <pthread.h>

#include <incstack/native.h>
#include <incstack/profile.h>
#include <incstack/safepoint.h>

#include "run_suite.h"
#include "safepoint/step.h"
#include "simulated.h"
#include "profile/analysis.h"
#include "profile/reduce.h"

/* Each line of a table is evaluated in order; a wrong answer names its line. */
struct answer {
	const char *call;
	int got, want;
};
#define SAYS(want, call) \
	{ \
#call, call, want \
	}
#define CHECK_ANSWERS(...) \
	do { \
		const struct answer answers[] = {__VA_ARGS__}; \
		for (size_t i_ = 0; i_ < sizeof(answers) / sizeof(answers[0]); i_++) { \
			ck_assert_msg(answers[i_].got == answers[i_].want, "%s: %d, not %d", \
				      answers[i_].call, answers[i_].got, answers[i_].want); \
			ck_assert_str_ne(incstack_error_text(answers[i_].got), "unknown error"); \
		} \
	} while (0)

static struct incstack_options options;
static struct incstack_embedder embedder;
static struct incstack_runtime *rt;

static int create(void)
{
	int error = incstack_runtime_create(&options, &rt);
	if (!error)
		incstack_runtime_destroy(rt);
	return error;
}

/* One field is wrong. */
#define WRONG(field, value) (reset_options(), (field) = (value), create())

static void reset_options(void)
{
	embedder = sim_embedder;
	options = (struct incstack_options){
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
}

START_TEST(options_are_checked)
{
	reset_options();
	CHECK_ANSWERS(SAYS(0, create()), SAYS(INCSTACK_EINVAL, incstack_runtime_create(NULL, &rt)),
		      SAYS(INCSTACK_EINVAL, incstack_runtime_create(&options, NULL)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.size, 0)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.size, 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.size, sizeof(options) - 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.size, sizeof(options) + 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.embedder, NULL)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.mode, INCSTACK_MODE_EMBEDDER)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.mode, 99)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.distance, INCSTACK_DISTANCE_MAX + 1)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.size, 0)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.size, sizeof(embedder) - 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.size, sizeof(embedder) + 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.memory.allocate, NULL)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.memory.release, NULL)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.memory.allocate_traces, sim_allocate)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.code.frame_pointers, 1)));
	reset_options();
	options.stack_bytes = 1000;
	options.chunk_bytes = 2000;
	ck_assert_int_eq(create(), INCSTACK_EINVAL);
}
END_TEST

/* A runtime without rules has no machine stacks, because nobody has said that frame pointers are kept. */
START_TEST(rules_are_asked_for)
{
	uintptr_t words[16];
	const uintptr_t low = (uintptr_t)words, high = (uintptr_t)(words + 16);
	struct incstack_stack *created;
	reset_options();
	embedder.code.find_rule = NULL;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	ck_assert_int_eq(incstack_stack_create(rt, low, high, &created), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_create(rt, 0, 0, &created), INCSTACK_EINVAL);
	incstack_runtime_destroy(rt);
	embedder.code.frame_pointers = 1;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	ck_assert_int_eq(incstack_stack_create(rt, low, high, &created), 0);
	incstack_stack_destroy(created);
	incstack_runtime_destroy(rt);
}
END_TEST

/* Harmless oddities: sizes out of bounds. */
START_TEST(options_are_tolerant)
{
	static const uint32_t chunks[] = {1, 513, 4095, 1u << 20};
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		ck_assert_int_eq(sim_open((struct incstack_options){.distance = 1,
								    .chunk_bytes = chunks[i]}),
				 0);
		ck_assert_int_eq(sim_sample(), 0);
		ck_assert_int_eq(sim_retrieve(), 0);
		sim_close();
	}
	ck_assert_int_eq(sim_open((struct incstack_options){.distance = 1, .stack_bytes = 1}), 0);
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_close();
}
END_TEST

static struct incstack_top top_of_stack(void)
{
	return (struct incstack_top){.pc = sim_top()->pc,
				     .sp = sim_top()->sp,
				     .fp = sim_top()->fp,
				     .flags = INCSTACK_TOP_EXACT};
}

static int sample_with(uintptr_t pc, uintptr_t sp, uintptr_t slot, uint32_t flags)
{
	struct incstack_top top = top_of_stack();
	top.pc = pc;
	top.sp = sp;
	top.slot = slot;
	top.flags = flags;
	return incstack_stack_sample(sim.s, 1, 1, &top);
}

static void open_stack(void)
{
	ck_assert_int_eq(sim_open((struct incstack_options){.distance = 1}), 0);
	while (sim.depth < 10)
		sim_call();
	ck_assert_int_eq(sim_sample(), 0);
}

/* The barrier is live all the time, and its trace comes out right. */
static void close_stack(void)
{
	ck_assert_int_eq(sim_retrieve(), 0);
	ck_assert_uint_eq(sim_stats().truncated, 0);
	sim_close();
}

START_TEST(stacks_are_checked)
{
	struct incstack_stack *other;
	struct incstack_stats stats = {.size = 1};
	open_stack();
	incstack_runtime_destroy(NULL);
	incstack_stack_destroy(NULL);
	incstack_stack_abandon(NULL);
	incstack_tree_release(NULL);
	CHECK_ANSWERS(
		SAYS(INCSTACK_EINVAL, incstack_stack_create(NULL, 8, 16, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 8, 16, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 16, 16, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 24, 16, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 9, 16, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 8, 17, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create_embedder(sim.rt, NULL, NULL, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_set_owner(NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_set_mode(NULL, INCSTACK_MODE_FULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_set_mode(sim.s, INCSTACK_MODE_EMBEDDER)),
		SAYS(INCSTACK_EINVAL, incstack_stack_set_mode(sim.s, (enum incstack_mode)77)),
		SAYS(INCSTACK_EINVAL, incstack_stack_reserve(NULL, 1)),
		SAYS(INCSTACK_ELIMIT, incstack_stack_reserve(sim.s, SIZE_MAX)),
		SAYS(0, (int)incstack_stack_room(NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_stats(NULL, &stats)),
		SAYS(INCSTACK_EINVAL, incstack_stack_stats(sim.s, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_stats(sim.s, &stats)));
	close_stack();
}
END_TEST

START_TEST(samples_are_checked)
{
	struct incstack_tree *tree;
	struct incstack_top top;
	open_stack();
	uintptr_t pc = sim_top()->pc, sp = sim_top()->sp;
	top = top_of_stack();
	CHECK_ANSWERS(SAYS(INCSTACK_EINVAL, incstack_stack_sample(NULL, 1, 1, &top)),
		      SAYS(INCSTACK_EINVAL, incstack_stack_sample(sim.s, 1, 1, NULL)),
		      SAYS(INCSTACK_EINVAL, sample_with(0, sp, 0, INCSTACK_TOP_EXACT)),
		      SAYS(INCSTACK_EINVAL, sample_with(pc, sp + 1, 0, INCSTACK_TOP_EXACT)),
		      SAYS(INCSTACK_EINVAL, sample_with(pc, sp, 3, INCSTACK_TOP_EXACT)),
		      SAYS(INCSTACK_EINVAL, sample_with(pc, sp, 0, INCSTACK_TOP_DECODE_NOW)),
		      SAYS(INCSTACK_EUNWIND, sample_with(77, sp, 0, INCSTACK_TOP_INTERRUPTED)),
		      SAYS(INCSTACK_EINVAL, incstack_stack_retrieve(NULL, &tree)),
		      SAYS(INCSTACK_EINVAL, incstack_stack_retrieve(sim.s, NULL)));
	ck_assert_uint_eq(sim_stats().lost_unwind, 1);
	close_stack();
}
END_TEST

START_TEST(addresses_are_checked)
{
	uintptr_t low = (uintptr_t)sim.words, high = (uintptr_t)(sim.words + SIM_WORDS);
	static struct incstack_runtime *other;
	open_stack();
	uintptr_t slot = sim_top()->slot, *odd = (uintptr_t *)(slot + 4);
	reset_options();
	ck_assert_int_eq(incstack_runtime_create(&options, &other), 0);
	CHECK_ANSWERS(
		SAYS(0, (int)incstack_slot_read(NULL)), SAYS(0, (int)incstack_slot_read(odd)),
		SAYS(INCSTACK_EINVAL, incstack_stack_slot_write(NULL, (uintptr_t *)slot, 1)),
		SAYS(INCSTACK_EINVAL, incstack_stack_slot_write(sim.s, NULL, 1)),
		SAYS(INCSTACK_EINVAL, incstack_stack_slot_write(sim.s, odd, 1)),
		SAYS(INCSTACK_ERANGE, incstack_stack_slot_write(sim.s, (uintptr_t *)high, 1)),
		SAYS(INCSTACK_ERANGE, incstack_stack_slot_write(sim.s, (uintptr_t *)(low - 8), 1)),
		SAYS(INCSTACK_EINVAL, incstack_stack_unwinding_to(NULL, slot)),
		SAYS(INCSTACK_ERANGE, incstack_stack_unwinding_to(sim.s, low - 8)),
		SAYS(INCSTACK_ERANGE, incstack_stack_unwinding_to(sim.s, high + 8)),
		SAYS(INCSTACK_EINVAL, incstack_stack_returned(NULL, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_returned(sim.s, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_frame_moved(NULL, slot, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_frame_moved(sim.s, 0, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_frame_moved(sim.s, slot, slot + 1)),
		SAYS(INCSTACK_ERANGE, incstack_stack_frame_moved(sim.s, slot, high)),
		SAYS(INCSTACK_ERANGE, incstack_stack_frame_moved(sim.s, low - 8, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_moved(NULL, low, high)),
		SAYS(INCSTACK_EINVAL, incstack_stack_moved(sim.s, high, low)),
		SAYS(INCSTACK_EINVAL, incstack_stack_moved(sim.s, low + 1, high)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_code_unloading(NULL, sim.s, 1, 2)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_code_unloading(sim.rt, sim.s, 2, 2)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_code_unloading(other, sim.s, 1, 2)));
	incstack_runtime_destroy(other);
	close_stack();
}
END_TEST

static void *as_another_thread(void *argument)
{
	struct incstack_tree *tree;
	struct incstack_top top = top_of_stack();
	uintptr_t slot = sim_top()->slot;
	(void)argument;
	CHECK_ANSWERS(
		SAYS(INCSTACK_ETHREAD, incstack_stack_sample(sim.s, 1, 1, &top)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_retrieve(sim.s, &tree)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_reserve(sim.s, 1)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_set_mode(sim.s, INCSTACK_MODE_FULL)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_slot_write(sim.s, (uintptr_t *)slot, 1)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_unwinding_to(sim.s, slot)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_returned(sim.s, slot)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_frame_moved(sim.s, slot, slot)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_moved(sim.s, 8, 16)),
		SAYS(INCSTACK_ETHREAD, incstack_runtime_code_unloading(sim.rt, sim.s, 1, 2)));
	ck_assert_uint_eq(incstack_slot_read((uintptr_t *)slot), sim_top()->resume);
	return NULL;
}

START_TEST(owners_are_checked)
{
	pthread_t thread;
	open_stack();
	ck_assert_int_eq(pthread_create(&thread, NULL, as_another_thread, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	close_stack();
}
END_TEST

static void *own_and_go_on(void *argument)
{
	(void)argument;
	ck_assert_int_eq(incstack_stack_set_owner(sim.s), 0);
	for (int i = 0; i < 500; i++)
		sim_step();
	ck_assert_int_eq(sim_retrieve(), 0);
	return NULL;
}

START_TEST(owners_change)
{
	pthread_t thread;
	open_stack();
	ck_assert_int_eq(pthread_create(&thread, NULL, own_and_go_on, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(sim_retrieve(), INCSTACK_ETHREAD);
	ck_assert_int_eq(incstack_stack_set_owner(sim.s), 0);
	close_stack();
}
END_TEST

START_TEST(native_is_checked)
{
	struct incstack_rule rule;
	struct incstack_frame frames[4];
	struct incstack_stack *mine;
	uintptr_t word;
	reset_options();
	CHECK_ANSWERS(
		SAYS(INCSTACK_EINVAL,
		     incstack_native_embedder()->code.find_rule(NULL, (uintptr_t)create, NULL)),
		SAYS(INCSTACK_EUNWIND, incstack_native_embedder()->code.find_rule(NULL, 0, &rule)),
		SAYS(INCSTACK_EUNWIND,
		     incstack_native_embedder()->code.find_rule(NULL, UINTPTR_MAX, &rule)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_create_native(NULL, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_create_native(&options, &rt)),
		SAYS(INCSTACK_EINVAL, incstack_native_stack_range(NULL, &word)),
		SAYS(INCSTACK_EINVAL, incstack_native_stack_range(&word, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create_native(NULL, &mine)),
		SAYS(INCSTACK_EINVAL,
		     incstack_native_embedder()->signals.interrupted(NULL, NULL, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_native_walk(NULL, 4)),
		SAYS(INCSTACK_EINVAL, incstack_native_walk(frames, 0)),
		SAYS(INCSTACK_EINVAL, incstack_native_walk(frames, -1)));
}
END_TEST

START_TEST(profile_is_checked)
{
	struct incstack_profile *p, *other;
	const struct incstack_profile_kind kind = {"samples", "count"};
	struct incstack_profile_kind other_kind;
	struct incstack_profile_node at = {.size = sizeof(at)}, unsized_node = {0};
	const struct incstack_profile_frame named = {
		.size = sizeof(named), .name = "f", .name_length = 1};
	const struct incstack_profile_frame nameless = {.size = sizeof(nameless), .name = ""};
	const struct incstack_profile_frame label = {.size = sizeof(label),
						     .flags = INCSTACK_PROFILE_LABEL};
	const struct incstack_profile_frame broken = {
		.size = sizeof(broken), .name = "\xff", .name_length = 1};
	struct incstack_profile_frame unsized = {.name = "f", .name_length = 1};
	struct incstack_profile_meta meta = {0};
	struct incstack_profile_problem problem = {0};
	struct incstack__profile_difference difference;
	uint32_t node;
	struct incstack_tree tree = {0};
	uint64_t totals[4];
	ck_assert_int_eq(incstack_profile_create(&kind, 1, &p), 0);
	ck_assert_int_eq(incstack_profile_add_node(p, 0, &named, &node), 0);
	CHECK_ANSWERS(
		SAYS(INCSTACK_EINVAL, incstack_profile_create(NULL, 1, &other)),
		SAYS(INCSTACK_EINVAL, incstack_profile_create(&kind, 0, &other)),
		SAYS(INCSTACK_EINVAL, incstack_profile_create(&kind, 17, &other)),
		SAYS(INCSTACK_EINVAL, incstack_profile_create(&kind, 1, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_add_tree(NULL, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_add_tree(p, INCSTACK_PROFILE_ROOT, NULL, NULL, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_tree(p, 9, &tree, NULL, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 9, &named, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 0, NULL, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 0, &nameless, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 0, &label, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 0, &unsized, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_set_meta(p, &meta)),
		SAYS(INCSTACK_EINVAL, incstack_profile_meta(p, &meta)),
		SAYS(INCSTACK_EFORMAT, incstack_profile_add_node(p, 0, &broken, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_weights(p, 0, totals)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_weights(p, 9, totals)),
		SAYS(INCSTACK_EINVAL, incstack_profile_name_frames(p, NULL, NULL, &other)),
		SAYS(INCSTACK_EINVAL, incstack__profile_fold_recursion(p, NULL)),
		SAYS(INCSTACK_EINVAL, incstack__profile_fold_recursion(NULL, &other)),
		SAYS(INCSTACK_EINVAL, incstack_profile_kind(p, 1, &other_kind)),
		SAYS(INCSTACK_EINVAL, incstack_profile_node(NULL, node, &at)),
		SAYS(INCSTACK_EINVAL, incstack_profile_node(p, 9, &at)),
		SAYS(INCSTACK_EINVAL, incstack_profile_node(p, node, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_profile_node(p, node, &unsized_node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_totals(p, 9, totals)),
		SAYS(INCSTACK_EINVAL, incstack_profile_totals(p, 0, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_profile_merge(p, NULL)),
		SAYS(INCSTACK_EINVAL, incstack__profile_average(NULL, 1, &other)),
		SAYS(INCSTACK_EINVAL,
		     incstack__profile_compare(p, p, 9, INCSTACK__MEASURE_SELF, 0, &difference)),
		SAYS(INCSTACK_EINVAL,
		     incstack__profile_compare(p, p, 0, INCSTACK__MEASURE_SELF, 2, &difference)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_read(NULL, INCSTACK_FORMAT_FOLDED, 0, &other, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_read(stdin, INCSTACK_FORMAT_FOLDED, 4, &other, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_read(stdin, INCSTACK_FORMAT_FOLDED, 0, &other, &problem)),
		SAYS(INCSTACK_EINVAL, incstack_profile_write(p, INCSTACK_FORMAT_FOLDED, 0, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_write(p, INCSTACK_FORMAT_FOLDED, 9, stdout)));
	incstack_profile_destroy(p);
	incstack_profile_destroy(NULL);
}
END_TEST

static void do_nothing(const struct incstack_ticket *ticket, void *argument)
{
	(void)ticket;
	(void)argument;
}

START_TEST(safepoints_are_checked)
{
	struct incstack_safepoint *points;
	struct incstack_thread *thread;
	struct incstack_request *request, *other;
	struct incstack_request_options wanted = {.size = sizeof(wanted)};
	const struct incstack_request_options good = {
		.size = sizeof(good), .n = 1, .operation = do_nothing};
	struct incstack_request_options bad[] = {good, good, good};
	struct incstack_request_result small = {.size = sizeof(small) - 1};
	struct incstack_safepoint_options odd = {.size = sizeof(odd) - 1};
	struct incstack_safepoint *others;
	bad[0].size--;
	bad[1].n = UINT32_MAX;
	bad[2].flags = UINT32_MAX;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &points), 0);
	ck_assert_int_eq(incstack_safepoint_create(NULL, &others), 0);
	ck_assert_int_eq(incstack_safepoint_attach(others, &thread), 0);
	ck_assert_int_eq(incstack_request_start(others, &good, &request), 0);
	CHECK_ANSWERS(SAYS(INCSTACK_EINVAL, incstack_safepoint_create(NULL, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_create(&odd, &points)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_attach(NULL, &thread)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_attach(points, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_thread_detach(NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_stop(NULL, NULL, 0, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_stop(points, thread, 0, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_resume(NULL, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_resume(points, thread)),
		      SAYS(INCSTACK_EINVAL,
			   incstack__safepoint_run_operation(NULL, 1, 0, do_nothing, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, NULL, &request)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, &wanted, &request)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(NULL, &wanted, &request)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, &bad[0], &other)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, &bad[1], &other)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, &bad[2], &other)),
		      SAYS(INCSTACK_EINVAL, incstack_request_wait(request, 1, &small)),
		      SAYS(INCSTACK_EINVAL, incstack_request_wait(NULL, 1, NULL)));
	incstack_safepoint_destroy(NULL);
	incstack_request_release(NULL);
	ck_assert_int_eq(incstack_safepoint_stop(points, NULL, 0, NULL), 0);
	CHECK_ANSWERS(
		SAYS(INCSTACK_EINVAL,
		     incstack__safepoint_run_operation(points, 0, 0, do_nothing, NULL)),
		SAYS(INCSTACK_EINVAL, incstack__safepoint_run_operation(points, 1, 0, NULL, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack__safepoint_run_operation(points, 1, UINT32_MAX, do_nothing, NULL)));
	ck_assert_int_eq(incstack_safepoint_resume(points, NULL), 0);
	incstack_safepoint_destroy(points);
	incstack_thread_poll(thread);
	incstack_request_release(request);
	ck_assert_int_eq(incstack_thread_detach(thread), 0);
	incstack_safepoint_destroy(others);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bad input");
	TCase *tc = tcase_create("is refused");
	tcase_add_test(tc, options_are_checked);
	tcase_add_test(tc, rules_are_asked_for);
	tcase_add_test(tc, options_are_tolerant);
	tcase_add_test(tc, stacks_are_checked);
	tcase_add_test(tc, samples_are_checked);
	tcase_add_test(tc, addresses_are_checked);
	tcase_add_test(tc, owners_are_checked);
	tcase_add_test(tc, owners_change);
	tcase_add_test(tc, native_is_checked);
	tcase_add_test(tc, profile_is_checked);
	tcase_add_test(tc, safepoints_are_checked);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
