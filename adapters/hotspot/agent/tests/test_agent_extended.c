/* SPDX-License-Identifier: MIT
 *
 * The techniques of a JVM with the library inside, against a JVM made of a few functions: what
 * is requested, and what becomes of the traces.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "session.h"

#define MEMORY (UINT64_C(64) << 20)

/* ---- the JVM ---- */

static struct {
	int functions; /* how many of the extension functions it has */
	long allocated;
	struct incstack_jvmti_request request;
	jvmtiError answer;
	jint check, asked;
	struct incstack_jvmti_statistics statistics;
	struct incstack_jvmti_traces traces;
	int released;
} jvm;

static jvmtiError JNICALL allocate(jvmtiEnv *env, jlong size, unsigned char **memory)
{
	(void)env;
	*memory = malloc((size_t)size);
	jvm.allocated++;
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL deallocate(jvmtiEnv *env, unsigned char *memory)
{
	(void)env;
	jvm.allocated -= memory != NULL;
	free(memory);
	return JVMTI_ERROR_NONE;
}

static char *text(const char *content)
{
	unsigned char *copy = NULL;

	allocate(NULL, (jlong)strlen(content) + 1, &copy);
	return strcpy((char *)copy, content);
}

static jvmtiError JNICALL request_traces(jvmtiEnv *env, ...)
{
	va_list list;
	struct incstack_jvmti_requested *requested;

	va_start(list, env);
	ck_assert_int_eq(va_arg(list, jint), 0);
	ck_assert_ptr_null(va_arg(list, const jthread *));
	jvm.request = *va_arg(list, const struct incstack_jvmti_request *);
	requested = va_arg(list, struct incstack_jvmti_requested *);
	va_end(list);
	ck_assert_uint_eq(requested->size, sizeof(*requested));
	requested->wanted = jvm.request.n - 1; /* there are fewer threads */
	return jvm.answer;
}

static jvmtiError JNICALL retrieve_traces(jvmtiEnv *env, ...)
{
	va_list list;

	va_start(list, env);
	jvm.asked = va_arg(list, jint);
	ck_assert((va_arg(list, const jthread *) != NULL) == (jvm.asked == 1));
	*va_arg(list, struct incstack_jvmti_traces **) = &jvm.traces;
	va_end(list);
	return jvm.answer;
}

static jvmtiError JNICALL release_traces(jvmtiEnv *env, ...)
{
	va_list list;

	va_start(list, env);
	ck_assert_ptr_eq(va_arg(list, struct incstack_jvmti_traces *), &jvm.traces);
	va_end(list);
	jvm.released++;
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL describe_method(jvmtiEnv *env, ...)
{
	struct incstack_jvmti_method *method;
	va_list list;
	jlong key;
	jint bci;

	va_start(list, env);
	key = va_arg(list, jlong);
	bci = va_arg(list, jint);
	method = va_arg(list, struct incstack_jvmti_method *);
	va_end(list);
	key = (jlong)INCSTACK_JVMTI_METHOD_KEY((uint64_t)key);
	if (key > 2)
		return JVMTI_ERROR_INVALID_METHODID;
	method->class_signature = text("Lp/Main;");
	method->name = text(key == 1 ? "main" : "f");
	method->signature = text("()V");
	method->source_file = key == 1 ? text("Main.java") : NULL;
	method->line = bci / 10;
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_statistics(jvmtiEnv *env, ...)
{
	va_list list;

	va_start(list, env);
	*va_arg(list, struct incstack_jvmti_statistics *) = jvm.statistics;
	va_end(list);
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL set_check(jvmtiEnv *env, ...)
{
	va_list list;

	va_start(list, env);
	jvm.check = va_arg(list, jint);
	va_end(list);
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_functions(jvmtiEnv *env, jint *count,
					jvmtiExtensionFunctionInfo **infos)
{
	const struct {
		const char *id;
		jvmtiExtensionFunction function;
	} all[] = {{INCSTACK_JVMTI_REQUEST_TRACES, request_traces},
		   {INCSTACK_JVMTI_RETRIEVE_TRACES, retrieve_traces},
		   {INCSTACK_JVMTI_RELEASE_TRACES, release_traces},
		   {INCSTACK_JVMTI_DESCRIBE_METHOD, describe_method},
		   {INCSTACK_JVMTI_GET_STATISTICS, get_statistics},
		   {INCSTACK_JVMTI_SET_CHECK, set_check}};
	unsigned char *memory = NULL;

	allocate(env, 6 * (jlong)sizeof(**infos), &memory);
	memset(memory, 0, 6 * sizeof(**infos));
	*infos = (jvmtiExtensionFunctionInfo *)memory;
	*count = jvm.functions;
	for (jint i = 0; i < *count; i++) {
		jvmtiExtensionFunctionInfo *info = &(*infos)[i];

		info->id = text(all[i].id);
		info->func = all[i].function;
		info->short_description = text("");
		allocate(env, sizeof(*info->params), &memory);
		info->params = (jvmtiParamInfo *)memory;
		info->params[0].name = text("x");
		info->param_count = 1;
	}
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_thread_info(jvmtiEnv *env, jthread thread, jvmtiThreadInfo *info)
{
	(void)env;
	if (thread == (jthread)&jvm.asked)
		return JVMTI_ERROR_INVALID_THREAD;
	info->name = text("worker");
	return JVMTI_ERROR_NONE;
}

static void JNICALL delete_local(JNIEnv *jni, jobject object)
{
	(void)jni;
	(void)object;
}

static const struct jvmtiInterface_1_ jvmti_table = {.Allocate = allocate,
						     .Deallocate = deallocate,
						     .GetExtensionFunctions = get_functions,
						     .GetThreadInfo = get_thread_info};
static const struct JNINativeInterface_ jni_table = {.DeleteLocalRef = delete_local};
static jvmtiEnv jvmti = &jvmti_table;
static JNIEnv jni = &jni_table;

/* Called on a thread that this JVM does not start. */
void agent_threads_remove(struct agent_threads *threads, JNIEnv *env, jthread thread)
{
	(void)threads, (void)env, (void)thread;
}

/* ---- the session ---- */

static struct agent_session session;

static void begin(const struct agent_technique *technique)
{
	memset(&jvm, 0, sizeof(jvm));
	memset(&session, 0, sizeof(session));
	jvm.functions = 6;
	session.jvmti = &jvmti;
	session.technique = technique;
	session.samples = 4;
	pthread_mutex_init(&session.lock, NULL);
	agent_retriever_init(&session.retriever, &jvmti, &session.threads);
	ck_assert(agent_extension_find(&session.extension, &jvmti));
	ck_assert(agent_collector_open(&session.collector, MEMORY));
	agent_handover_open(&session.handover, MEMORY);
	ck_assert_ptr_null(technique->start(&session));
}

static void end(void)
{
	agent_collector_close(&session.collector);
	free(session.name);
	free(session.file);
	ck_assert_int_eq(jvm.allocated, 0);
}

START_TEST(a_jvm_has_all_functions_or_none)
{
	struct agent_extension extension;

	memset(&jvm, 0, sizeof(jvm));
	for (jvm.functions = 0; jvm.functions < 6; jvm.functions++)
		ck_assert(!agent_extension_find(&extension, &jvmti));
	ck_assert(agent_extension_find(&extension, &jvmti));
	ck_assert_int_eq(jvm.allocated, 0);
}
END_TEST

START_TEST(each_mode_requests_in_its_way)
{
	const struct {
		const struct agent_technique *technique;
		uint32_t flags;
	} modes[] = {{&agent_technique_extended_partial, INCSTACK_JVMTI_FULL_WALK},
		     {&agent_technique_extended_incremental, INCSTACK_JVMTI_FULL_SAFEPOINT},
		     {&agent_technique_extended_partial_incremental, 0}};

	for (size_t i = 0; i < 3; i++) {
		struct agent_tick tick = {.due = 12345};

		/* The others would leave a program that they slow down no time at all. */
		ck_assert(modes[i].technique->takes_turns == !modes[i].flags);
		begin(modes[i].technique);
		modes[i].technique->tick(&session, &jni, &tick);
		ck_assert_uint_eq(jvm.request.size, sizeof(jvm.request));
		ck_assert_uint_eq(jvm.request.flags, modes[i].flags);
		ck_assert_uint_eq(jvm.request.due, 12345);
		ck_assert_uint_eq(jvm.request.n, 4);
		ck_assert(tick.wanted == 3 && tick.taken == 3);
		session.options.waiting = true;
		modes[i].technique->tick(&session, &jni, &tick);
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
	session.technique->tick(&session, &jni, &tick);
	ck_assert(tick.wanted == 4 && tick.taken == 0);
	session.technique->retrieve(&session, &jni);
	ck_assert_int_eq(jvm.released, 0);
	end();
}
END_TEST

START_TEST(check_is_switched)
{
	begin(&agent_technique_extended_incremental);
	ck_assert_int_eq(jvm.check, 0);
	session.options.check = true;
	ck_assert_ptr_null(session.technique->start(&session));
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
		incstack_profile_name_frames(profile, session.technique->source, &session, &named),
		0);
	nodes = (int)incstack_profile_nodes(named);
	ck_assert_int_eq(incstack_profile_node(named, (uint32_t)nodes - 1, &node), 0);
	ck_assert_int_eq(strncmp(node.frame.name, "p.Main.f", node.frame.name_length), 0);
	ck_assert_ptr_null(node.frame.file);
	ck_assert_int_eq(node.frame.line, session.options.lines ? 7 : 0);
	incstack_profile_destroy(named);
	return nodes;
}

START_TEST(traces_come_to_the_profile)
{
	struct incstack_jvmti_thread_traces threads[] = {
		{.thread = (jthread)&jvm, .thread_id = 1, .tree = &tree},
		{.thread = (jthread)&jvm.asked, .thread_id = 7, .tree = &tree},
		{.thread = NULL, .thread_id = 8, .tree = &tree}};
	struct agent_counts counts;

	for (int roots = 0; roots < 2; roots++) {
		begin(&agent_technique_extended_partial_incremental);
		session.options.threads = roots;
		session.options.lines = !roots;
		jvm.traces.threads = threads;
		jvm.traces.count = 3;
		session.technique->retrieve(&session, &jni);
		ck_assert_int_eq(jvm.asked, 0);
		ck_assert_int_eq(jvm.released, 1);
		session.technique->retrieve(&session, &jni);
		/* main and f, or those below "worker", "thread 7" and "thread 8" */
		ck_assert_int_eq(agent_collector_read(&session.collector, shape, &counts),
				 roots ? 1 + 3 * 3 : 3);
		ck_assert_uint_eq(counts.traces, 12);
		ck_assert_uint_eq(counts.depth_sum, 24);
		ck_assert_uint_eq(counts.popped_sum, 6);
		ck_assert_uint_eq(session.findings.latency.count, 12);
		ck_assert_uint_eq(session.findings.latency.largest, 2000);
		end();
	}
}
END_TEST

/* While another thread retrieves or writes, it holds these locks. */
static void hold(bool held)
{
	(held ? pthread_mutex_lock : pthread_mutex_unlock)(&session.retrieving);
	(held ? pthread_mutex_lock : pthread_mutex_unlock)(&session.collector.lock);
	(held ? pthread_mutex_lock : pthread_mutex_unlock)(&session.lock);
	(held ? pthread_mutex_lock : pthread_mutex_unlock)(&session.retriever.lock);
}

START_TEST(a_thread_that_ends_waits_for_nobody)
{
	struct incstack_jvmti_thread_traces ending = {
		.thread = (jthread)&jvm, .thread_id = 1, .tree = &tree};
	struct agent_counts counts;

	begin(&agent_technique_extended_partial_incremental);
	pthread_mutex_init(&session.retrieving, NULL);
	session.options.threads = session.options.lines = true;
	jvm.traces.threads = &ending;
	hold(true);
	session.technique->thread_ends(&session, &jni, (jthread)&jvm); /* it has no traces */
	ck_assert_int_eq(jvm.asked, 1);
	ck_assert_int_eq(jvm.released, 1);
	jvm.traces.count = 1;
	ending.thread = (jthread)&jvm;
	session.technique->thread_ends(&session, &jni, (jthread)&jvm);
	hold(false);
	ck_assert_int_eq(jvm.released, 1);
	jvm.answer = JVMTI_ERROR_OUT_OF_MEMORY; /* no other thread has traces */
	session.technique->retrieve(&session, &jni);
	ck_assert_int_eq(jvm.released, 2);
	ck_assert_int_eq(agent_collector_read(&session.collector, shape, &counts), 1 + 3);
	ck_assert_uint_eq(counts.traces, 2);
	ck_assert_uint_eq(session.handover.bytes, 0);
	end();
}
END_TEST

START_TEST(traces_of_ended_threads_have_a_limit)
{
	struct incstack_jvmti_thread_traces ending = {.tree = &tree};
	struct agent_counts counts;
	struct incstack_profile *profile;

	begin(&agent_technique_extended_partial_incremental);
	jvm.traces = (struct incstack_jvmti_traces){.count = 1, .threads = &ending};
	session.handover.bytes_max = 100;
	session.technique->thread_ends(&session, &jni, (jthread)&jvm);
	ck_assert_int_eq(jvm.released, 1);
	ck_assert_uint_eq(session.handover.bytes, 0);
	profile = agent_collector_take(&session.collector, true, &counts);
	ck_assert_uint_eq(counts.lost[AGENT_LOSS_MEMORY], 2);
	incstack_profile_destroy(profile);
	end();
}
END_TEST

START_TEST(counters_are_those_of_the_session)
{
	struct agent_figures figures = {.counts = {.lost = {[AGENT_LOSS_CLOSED] = 5}}};

	begin(&agent_technique_extended_partial);
	session.before = (struct incstack_jvmti_statistics){.crosschecked = 10,
							    .mismatches = 1,
							    .returns = 100,
							    .stale = 2,
							    .lost_closed = 3,
							    .lost_refused = 4,
							    .lost_ended = 5};
	jvm.statistics = (struct incstack_jvmti_statistics){.crosschecked = 15,
							    .mismatches = 2,
							    .returns = 1100,
							    .stale = 2,
							    .lost_closed = 13,
							    .lost_refused = 24,
							    .lost_ended = 35};
	session.technique->count(&session, &figures);
	ck_assert_uint_eq(figures.findings.crosschecked, 5);
	ck_assert_uint_eq(figures.findings.mismatches, 1);
	ck_assert_uint_eq(figures.findings.returns, 1000);
	ck_assert_uint_eq(figures.findings.stale, 0);
	ck_assert_uint_eq(figures.counts.lost[AGENT_LOSS_CLOSED], 5 + 10);
	ck_assert_uint_eq(figures.counts.lost[AGENT_LOSS_MEMORY], 20);
	ck_assert_uint_eq(figures.counts.lost[AGENT_LOSS_ENDED], 30);
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
	tcase_add_test(tests, counters_are_those_of_the_session);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
