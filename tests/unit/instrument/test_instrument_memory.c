/* SPDX-License-Identifier: MIT
 *
 * Each allocation of a subgraph and of a meter fails once: an error, no leak, and what was there before still works.
 */
#include <check.h>

#include <incstack/instrument.h>

#include "failing.h"
#include "run_suite.h"

enum { CLASSES = 70, NAMES = 3 };

/* Class c extends c - 1. Its methods call those of all other classes. */
static int add_class(struct incstack_subgraph *subgraph, uint64_t c)
{
	const uint64_t super = c - 1;
	struct incstack_call_site sites[NAMES];
	struct incstack_method methods[NAMES];
	const struct incstack_class added = {.size = sizeof(added),
					     .class_id = c,
					     .supers = &super,
					     .super_count = c > 0,
					     .methods = methods,
					     .method_count = NAMES};

	for (uint32_t n = 0; n < NAMES; n++) {
		sites[n] = (struct incstack_call_site){(c * 7 + n) % CLASSES, n, n % 2};
		methods[n] = (struct incstack_method){
			.method = c * NAMES + n, .name = n, .call_count = NAMES, .calls = sites};
	}
	return incstack_subgraph_add_class(subgraph, &added);
}

/* Repeats what has failed, without failures. Returns how many methods are instrumented then. */
static uint64_t finish(struct incstack_subgraph *subgraph)
{
	struct incstack_subgraph_stats stats = {.size = sizeof(stats)};
	struct incstack_subgraph_change change;

	for (uint64_t c = 0; c < CLASSES; c++)
		(void)add_class(subgraph, c);
	ck_assert_int_eq(incstack_subgraph_add_root(subgraph, 0, 0), 0);
	while (incstack_subgraph_next_change(subgraph, &change) == 1)
		;
	ck_assert_int_eq(incstack_subgraph_stats(subgraph, &stats), 0);
	ck_assert_uint_eq(stats.classes, CLASSES);
	return stats.instrumented;
}

static int subgraphs(long n, bool for_ever, bool *something_failed)
{
	const struct incstack_subgraph_options options = {.size = sizeof(options)};
	struct incstack_subgraph *subgraph = NULL;
	static uint64_t right; /* without a failure */
	uint64_t instrumented = right;
	int error;

	arm(n, for_ever);
	error = incstack_subgraph_create(&options, &subgraph);
	for (uint64_t c = 0; c < CLASSES / 2 && !error; c++)
		error = add_class(subgraph, c);
	if (!error)
		error = incstack_subgraph_add_root(subgraph, 0, 0);
	for (uint64_t c = CLASSES / 2; c < CLASSES && !error; c++)
		error = add_class(subgraph, c);
	if (!error)
		error = incstack_subgraph_add_root(subgraph, 5, 1);
	if (!error)
		error = incstack_subgraph_remove_root(subgraph, 5, 1);
	*something_failed = disarm();
	if (subgraph)
		instrumented = finish(subgraph);
	if (n < 0)
		right = instrumented;
	ck_assert_uint_eq(instrumented, right);
	incstack_subgraph_destroy(subgraph);
	return error;
}

static int use(struct incstack_meter *meter)
{
	struct incstack_meter_snapshot *snapshot = NULL;
	struct incstack_meter_method *methods[100];
	struct incstack_meter_thread *thread = NULL;
	int error = incstack_meter_thread_create(meter, 1, &thread);

	for (uint64_t i = 0; i < 100 && !error; i++) {
		error = incstack_meter_method_create(meter, i, &methods[i]);
		if (error)
			break;
		incstack_meter_method_set_root(methods[i], 1);
		incstack_meter_enter(thread, methods[i], 1);
		incstack_meter_exit(thread, methods[i], 1);
	}
	if (!error)
		error = incstack_meter_snapshot_create(meter, 0, &snapshot);
	if (!error)
		error = incstack_meter_adapt(meter, 0.01, NULL);
	incstack_meter_snapshot_destroy(snapshot);
	incstack_meter_thread_end(thread);
	return error;
}

static int meters(long n, bool for_ever, bool *something_failed)
{
	const struct incstack_meter_options options = {.size = sizeof(options)};
	struct incstack_meter_stats stats = {.size = sizeof(stats)};
	struct incstack_meter *meter = NULL;
	int error;

	arm(n, for_ever);
	error = incstack_meter_create(&options, &meter);
	if (!error)
		error = use(meter);
	*something_failed = disarm();
	if (!error) {
		/* What a thread that ended could not hand over is counted. */
		ck_assert_int_eq(incstack_meter_stats(meter, &stats), 0);
		ck_assert_uint_eq(stats.calls + stats.lost, 100);
		ck_assert(*something_failed || stats.lost == 0);
	}
	incstack_meter_destroy(meter);
	return error;
}

START_TEST(subgraph_without_memory)
{
	bool something_failed;

	ck_assert_int_eq(subgraphs(-1, false, &something_failed), 0);
	fail_each_allocation(subgraphs, 100);
}
END_TEST

START_TEST(meter_without_memory)
{
	fail_each_allocation(meters, 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("instrumentation without memory");
	TCase *memory = tcase_create("memory");

	tcase_add_test(memory, subgraph_without_memory);
	tcase_add_test(memory, meter_without_memory);
	suite_add_tcase(suite, memory);
	return run_suite(suite);
}
