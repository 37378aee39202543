/* SPDX-License-Identifier: MIT
 *
 * The techniques of a JVM with the library inside, against a JVM made of a few functions: what
 * is requested, and what becomes of the traces.
 */
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "extended.h"
#include "extension.h"
#include "handover.h"
#include "jvm_with_extension.h"

#define MEMORY (UINT64_C(64) << 20)

/* Called on a thread that this JVM does not start. */
void agent_threads_remove(struct agent_threads *threads, JNIEnv *env, jthread thread)
{
	(void)threads, (void)env, (void)thread;
}

/* ---- the technique ---- */

static struct agent_shared shared;
static struct agent_technique *technique;

/* The caller has set the options. */
static void open_technique(const struct agent_technique_kind *kind)
{
	const char *why = "";

	shared.jvmti = &extension_jvmti;
	shared.samples = 4;
	agent_retriever_init(&shared.retriever, &extension_jvmti, &shared.threads);
	ck_assert(agent_collector_open(&shared.collector, MEMORY));
	technique = kind->open(kind, &shared, &why);
	ck_assert_ptr_nonnull(technique);
}

static void begin(const struct agent_technique_kind *kind)
{
	memset(&jvm, 0, sizeof(jvm));
	memset(&shared, 0, sizeof(shared));
	jvm.functions = 6;
	shared.options.memory = MEMORY;
	open_technique(kind);
}

static void end(void)
{
	agent_collector_close(&shared.collector);
	technique->kind->close(technique, &extension_jni);
	ck_assert_int_eq(jvm.allocated, 0);
}

START_TEST(a_jvm_has_all_functions_or_none)
{
	struct agent_extension extension;

	memset(&jvm, 0, sizeof(jvm));
	for (jvm.functions = 0; jvm.functions < 6; jvm.functions++)
		ck_assert(!agent_extension_find(&extension, &extension_jvmti));
	ck_assert(agent_extension_find(&extension, &extension_jvmti));
	ck_assert_int_eq(jvm.allocated, 0);
}
END_TEST

START_TEST(each_mode_requests_in_its_way)
{
	const struct {
		const struct agent_technique_kind *kind;
		uint32_t flags;
	} modes[] = {{&agent_technique_extended_partial, INCSTACK_JVMTI_FULL_WALK},
		     {&agent_technique_extended_incremental, INCSTACK_JVMTI_FULL_SAFEPOINT},
		     {&agent_technique_extended_partial_incremental, 0}};

	for (size_t i = 0; i < 3; i++) {
		struct agent_tick tick = {.due = 12345};

		/* The others would leave a program that they slow down no time at all. */
		ck_assert(modes[i].kind->takes_turns == !modes[i].flags);
		begin(modes[i].kind);
		technique->kind->tick(technique, &extension_jni, &tick);
		ck_assert_uint_eq(jvm.request.size, sizeof(jvm.request));
		ck_assert_uint_eq(jvm.request.flags, modes[i].flags);
		ck_assert_uint_eq(jvm.request.due, 12345);
		ck_assert_uint_eq(jvm.request.n, 4);
		ck_assert(tick.wanted == 3 && tick.taken == 3);
		shared.options.waiting = true;
		technique->kind->tick(technique, &extension_jni, &tick);
		ck_assert_uint_eq(jvm.request.flags, modes[i].flags | INCSTACK_JVMTI_WAITING);
		end();
	}
}
END_TEST

START_TEST(a_refused_request_loses_its_samples)
{
	struct agent_tick tick = {.due = 1};

	begin(&agent_technique_extended_partial);
	jvm.answer = JVMTI_ERROR_OUT_OF_MEMORY;
	technique->kind->tick(technique, &extension_jni, &tick);
	ck_assert(tick.wanted == 4 && tick.taken == 0);
	technique->kind->retrieve(technique, &extension_jni);
	ck_assert_int_eq(jvm.released, 0);
	end();
}
END_TEST

START_TEST(check_is_switched)
{
	begin(&agent_technique_extended_incremental);
	ck_assert_int_eq(jvm.check, 0);
	end();
	shared.options.check = true;
	open_technique(&agent_technique_extended_incremental);
	ck_assert_int_eq(jvm.check, 1);
	end();
}
END_TEST

/* ---- traces ---- */

#define KIND(kind, key) ((uint64_t)(kind) << 56 | (key))

static struct incstack_frame_object base = {.function = KIND(1, 1),
					    .position = 30,
					    .address = 9,
					    .flags = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_BASE};
static struct incstack_frame_object f = {.parent = &base,
					 .function = KIND(3, 2),
					 .position = 70,
					 .address = 8,
					 .flags = INCSTACK_OBJECT_FILLED};
static struct incstack_frame_object g = {.parent = &base,
					 .function = KIND(2, 2),
					 .position = 71,
					 .address = 8,
					 .flags = INCSTACK_OBJECT_FILLED};
static struct incstack_trace second = {.weight = 2000, .top = &g};
static struct incstack_trace first = {.next = &second, .weight = 1000, .top = &f};
static struct incstack_tree tree = {.traces = &first, .count = 2, .objects = 3};

static int shape(void *context, const struct incstack_profile *profile,
		 const struct agent_counts *counts)
{
	struct incstack_profile *named = NULL;
	struct incstack_profile_node node = {.size = sizeof(node)};
	int nodes;

	*(struct agent_counts *)context = *counts;
	ck_assert_int_eq(
		incstack_profile_name_frames(profile, technique->kind->source, technique, &named),
		0);
	nodes = (int)incstack_profile_nodes(named);
	ck_assert_int_eq(incstack_profile_node(named, (uint32_t)nodes - 1, &node), 0);
	ck_assert_int_eq(strncmp(node.frame.name, "p.Main.f", node.frame.name_length), 0);
	ck_assert_ptr_null(node.frame.file);
	ck_assert_int_eq(node.frame.line, shared.options.lines ? 7 : 0);
	incstack_profile_destroy(named);
	return nodes;
}

START_TEST(traces_come_to_the_profile)
{
	struct incstack_jvmti_thread_traces threads[] = {
		{.thread = (jthread)&jvm, .thread_id = 1, .tree = &tree},
		{.thread = (jthread)&jvm.asked, .thread_id = 7, .tree = &tree},
		{.thread = NULL, .thread_id = 8, .tree = &tree}};
	struct agent_figures figures = {.processor_ns = 0};
	struct agent_counts counts;

	for (int roots = 0; roots < 2; roots++) {
		begin(&agent_technique_extended_partial_incremental);
		shared.options.threads = roots;
		shared.options.lines = !roots;
		jvm.traces.threads = threads;
		jvm.traces.count = 3;
		technique->kind->retrieve(technique, &extension_jni);
		ck_assert_int_eq(jvm.asked, 0);
		ck_assert_int_eq(jvm.released, 1);
		technique->kind->retrieve(technique, &extension_jni);
		/* main and f, or those below "worker", "thread 7" and "thread 8" */
		ck_assert_int_eq(agent_collector_read(&shared.collector, shape, &counts),
				 roots ? 1 + 3 * 3 : 3);
		ck_assert_uint_eq(counts.traces, 12);
		ck_assert_uint_eq(counts.depth_sum, 24);
		ck_assert_uint_eq(counts.popped_sum, 6);
		technique->kind->count(technique, &figures);
		ck_assert_uint_eq(figures.findings.latency.count, 12);
		ck_assert_uint_eq(figures.findings.latency.largest, 2000);
		technique->kind->next_part(technique);
		technique->kind->count(technique, &figures);
		ck_assert_uint_eq(figures.findings.latency.count, 0);
		end();
	}
}
END_TEST

/* While another thread retrieves or writes, it holds these locks. */
static void hold(bool held)
{
	(held ? pthread_mutex_lock : pthread_mutex_unlock)(&shared.collector.lock);
	(held ? pthread_mutex_lock : pthread_mutex_unlock)(&shared.retriever.lock);
}

START_TEST(a_thread_that_ends_waits_for_nobody)
{
	struct incstack_jvmti_thread_traces ending = {
		.thread = (jthread)&jvm, .thread_id = 1, .tree = &tree};
	struct agent_counts counts;

	begin(&agent_technique_extended_partial_incremental);
	shared.options.threads = shared.options.lines = true;
	jvm.traces.threads = &ending;
	hold(true);
	technique->kind->thread_ends(technique, &extension_jni,
				     (jthread)&jvm); /* it has no traces */
	ck_assert_int_eq(jvm.asked, 1);
	ck_assert_int_eq(jvm.released, 1);
	jvm.traces.count = 1;
	ending.thread = (jthread)&jvm;
	technique->kind->thread_ends(technique, &extension_jni, (jthread)&jvm);
	hold(false);
	ck_assert_int_eq(jvm.released, 1);
	jvm.answer = JVMTI_ERROR_OUT_OF_MEMORY; /* no other thread has traces */
	technique->kind->retrieve(technique, &extension_jni);
	ck_assert_int_eq(jvm.released, 2);
	ck_assert_int_eq(agent_collector_read(&shared.collector, shape, &counts), 1 + 3);
	ck_assert_uint_eq(counts.traces, 2);
	end();
}
END_TEST

static void end_thread(int expected_releases)
{
	technique->kind->thread_ends(technique, &extension_jni, (jthread)&jvm);
	ck_assert_int_eq(jvm.released, expected_releases);
}

/* Takes the traces of ended threads. No other thread has any. */
static void retrieve_ended(int expected_releases)
{
	jvm.answer = JVMTI_ERROR_OUT_OF_MEMORY;
	technique->kind->retrieve(technique, &extension_jni);
	jvm.answer = JVMTI_ERROR_NONE;
	ck_assert_int_eq(jvm.released, expected_releases);
}

/* Those that are refused use nothing of it, and those that were retrieved no longer do. */
START_TEST(traces_of_ended_threads_have_a_limit)
{
	struct incstack_jvmti_thread_traces ending = {.tree = &tree};
	const uint64_t size = sizeof(struct agent_handed) + 1 +
			      sizeof(struct incstack_jvmti_traces) + agent_tree_bytes(&tree);
	struct agent_counts counts;
	struct incstack_profile *profile;

	begin(&agent_technique_extended_partial_incremental);
	end();
	shared.options.memory = size * 3 / 2 * 8; /* an eighth is for them: one fits */
	open_technique(&agent_technique_extended_partial_incremental);
	jvm.traces = (struct incstack_jvmti_traces){.count = 1, .threads = &ending};
	end_thread(0);
	end_thread(1);
	end_thread(2);
	retrieve_ended(3);
	end_thread(3);
	retrieve_ended(4);
	profile = agent_collector_take(&shared.collector, true, &counts);
	ck_assert_uint_eq(counts.lost[AGENT_LOSS_MEMORY], 4);
	ck_assert_uint_eq(counts.traces, 4);
	incstack_profile_destroy(profile);
	end();
}
END_TEST

static struct agent_tick tick_with(uint64_t taken)
{
	struct agent_tick tick = {.due = 1};

	jvm.taken = taken;
	technique->kind->tick(technique, &extension_jni, &tick);
	return tick;
}

/* They may use an eighth of the memory. From a half of it on, the retriever is to begin at once; beyond the
 * eighth, no samples are requested until it has. */
START_TEST(traces_that_were_not_retrieved_have_a_limit)
{
	struct incstack_jvmti_thread_traces one = {.tree = &tree};
	struct agent_tick tick;
	uint64_t half;

	begin(&agent_technique_extended_partial_incremental);
	jvm.traces = (struct incstack_jvmti_traces){.count = 1, .threads = &one};
	technique->kind->retrieve(technique, &extension_jni); /* shows how large a trace is */
	half = MEMORY / 8 / 2 / (agent_tree_bytes(&tree) / tree.count);
	tick = tick_with(half * 3 / 2);
	ck_assert(tick.taken == 3 && !atomic_load(&shared.retriever.hurry));
	tick = tick_with(half * 3);
	ck_assert(tick.taken == 3 && atomic_load(&shared.retriever.hurry));
	tick = tick_with(half * 3);
	ck_assert(tick.taken == 0 && tick.wanted == 3 && tick.reason == AGENT_LOSS_BEHIND);
	technique->kind->retrieve(technique, &extension_jni);
	ck_assert(!atomic_load(&shared.retriever.hurry));
	ck_assert_uint_eq(tick_with(half * 3).taken, 3);
	end();
}
END_TEST

START_TEST(counters_are_those_of_the_part)
{
	struct agent_figures figures = {.counts = {.lost = {[AGENT_LOSS_CLOSED] = 5}}};

	begin(&agent_technique_extended_partial);
	end();
	jvm.statistics = (struct incstack_jvmti_statistics){.crosschecked = 10,
							    .mismatches = 1,
							    .returns = 100,
							    .stale = 2,
							    .lost_closed = 3,
							    .lost_refused = 4,
							    .lost_ended = 5};
	open_technique(&agent_technique_extended_partial);
	jvm.statistics = (struct incstack_jvmti_statistics){.crosschecked = 15,
							    .mismatches = 2,
							    .returns = 1100,
							    .stale = 2,
							    .lost_closed = 13,
							    .lost_refused = 24,
							    .lost_ended = 35};
	technique->kind->count(technique, &figures);
	ck_assert_uint_eq(figures.findings.crosschecked, 5);
	ck_assert_uint_eq(figures.findings.mismatches, 1);
	ck_assert_uint_eq(figures.findings.returns, 1000);
	ck_assert_uint_eq(figures.findings.stale, 0);
	ck_assert_uint_eq(figures.counts.lost[AGENT_LOSS_CLOSED], 5 + 10);
	ck_assert_uint_eq(figures.counts.lost[AGENT_LOSS_MEMORY], 20);
	ck_assert_uint_eq(figures.counts.lost[AGENT_LOSS_ENDED], 30);
	technique->kind->next_part(technique);
	figures = (struct agent_figures){.processor_ns = 0};
	technique->kind->count(technique, &figures);
	ck_assert_uint_eq(figures.findings.returns, 0);
	ck_assert_uint_eq(agent_counts_lost(&figures.counts), 0);
	end();
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("extended");
	Suite *suite = suite_create("agent");

	tcase_add_test(tests, a_jvm_has_all_functions_or_none);
	tcase_add_test(tests, each_mode_requests_in_its_way);
	tcase_add_test(tests, a_refused_request_loses_its_samples);
	tcase_add_test(tests, check_is_switched);
	tcase_add_test(tests, traces_come_to_the_profile);
	tcase_add_test(tests, a_thread_that_ends_waits_for_nobody);
	tcase_add_test(tests, traces_of_ended_threads_have_a_limit);
	tcase_add_test(tests, traces_that_were_not_retrieved_have_a_limit);
	tcase_add_test(tests, counters_are_those_of_the_part);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
