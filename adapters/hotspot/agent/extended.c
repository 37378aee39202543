/* SPDX-License-Identifier: MIT
 *
 * The techniques of a JVM with the library inside: samples are requested, and the traces are
 * retrieved later, many at once.
 */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* The part of the memory that traces may use that were not retrieved yet. They are copied when they are, so
 * that they use twice as much. */
enum { BACKLOG_SHARE = 8 };

enum { NAME_SIZE = 256 };

static const char *start(struct agent_session *session)
{
	struct incstack_jvmti_statistics before = {.size = sizeof(before)};

	if (agent_statistics(&session->extension, &before))
		return "the JVM's statistics cannot be read";
	session->before = session->now = before;
	agent_backlog_open(&session->backlog, session->options.memory / BACKLOG_SHARE,
			   before.traces);
	if (agent_set_check(&session->extension, session->options.check))
		return "the JVM's check cannot be switched";
	return NULL;
}

/* ---- request ------------------------------------------------------------------------ */

static uint32_t flags_of(const struct agent_session *session)
{
	uint32_t flags = session->options.waiting ? INCSTACK_JVMTI_WAITING : 0u;

	switch (session->technique->mode) {
	case AGENT_MODE_PARTIAL:
		return flags | INCSTACK_JVMTI_FULL_WALK;
	case AGENT_MODE_INCREMENTAL:
		return flags | INCSTACK_JVMTI_FULL_SAFEPOINT;
	default:
		return flags;
	}
}

/* Returns whether there are too many traces that were not retrieved. Before, it lets the retriever begin. */
static bool must_wait(struct agent_session *session)
{
	if (!agent_backlog_exceeds(&session->backlog, 0.5))
		return false;
	agent_retriever_hurry(&session->retriever);
	return agent_backlog_exceeds(&session->backlog, 1);
}

/* Requests samples. Those that the request has not yielded by the next tick are lost; the JVM
 * counts them. */
static void tick_extended(struct agent_session *session, JNIEnv *jni, struct agent_tick *tick)
{
	struct incstack_jvmti_request request = {.size = sizeof(request),
						 .id = (int64_t)tick->due,
						 .due = tick->due,
						 .deadline_ns = 0,
						 .n = session->samples,
						 .flags = flags_of(session)};
	struct incstack_jvmti_requested requested = {.size = sizeof(requested)};

	(void)jni;
	if (must_wait(session)) {
		tick->wanted = session->usual;
		tick->reason = AGENT_LOSS_BEHIND;
		return;
	}
	if (agent_request(&session->extension, 0, NULL, &request, &requested)) {
		tick->wanted = session->samples;
		return;
	}
	tick->wanted = tick->taken = requested.wanted;
	session->usual = requested.wanted;
	agent_backlog_took(&session->backlog, requested.traces);
}

/* ---- retrieve ----------------------------------------------------------------------- */

/* Finds the name of a thread. It may have ended since its traces were retrieved. */
static void root_of(struct agent_session *session, JNIEnv *jni,
		    const struct incstack_jvmti_thread_traces *one, char name[NAME_SIZE])
{
	jvmtiThreadInfo info = {0};

	snprintf(name, NAME_SIZE, "thread %lld", (long long)one->thread_id);
	if (!one->thread || (*session->jvmti)->GetThreadInfo(session->jvmti, one->thread, &info))
		return;
	(*jni)->DeleteLocalRef(jni, info.thread_group);
	(*jni)->DeleteLocalRef(jni, info.context_class_loader);
	if (info.name && *info.name) {
		snprintf(name, NAME_SIZE, "%s", info.name);
		agent_text_repair(name);
	}
	(*session->jvmti)->Deallocate(session->jvmti, (unsigned char *)info.name);
}

/* Holds the lock only for the sum of all traces, because the sampler's thread takes it at each tick. */
static void note_latencies(struct agent_session *session, const struct incstack_tree *tree)
{
	struct agent_latency sum = {.count = 0};

	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		agent_latency_add(&sum, t->weight);
	pthread_mutex_lock(&session->lock);
	agent_latency_merge(&session->findings.latency, &sum);
	pthread_mutex_unlock(&session->lock);
}

/* How many traces a retrieve has found, and their size. */
struct sum {
	uint64_t count, bytes;
};

static void take(struct agent_session *session, const char *root, const struct incstack_tree *tree,
		 struct sum *sum)
{
	note_latencies(session, tree);
	agent_collector_tree(&session->collector, root, tree);
	sum->count += tree->count;
	sum->bytes += agent_tree_bytes(tree);
}

static void take_handed(struct agent_session *session, struct sum *sum)
{
	struct agent_handed *handed = agent_handover_take(&session->handover);

	while (handed) {
		struct agent_handed *next = handed->next;

		for (size_t i = 0; i < handed->traces->count; i++)
			take(session, handed->root, handed->traces->threads[i].tree, sum);
		agent_release(&session->extension, handed->traces);
		free(handed);
		handed = next;
	}
}

static void take_all(struct agent_session *session, JNIEnv *jni, struct sum *sum)
{
	struct incstack_jvmti_traces *traces = NULL;

	if (agent_retrieve(&session->extension, 0, NULL, &traces))
		return;
	for (size_t i = 0; i < traces->count; i++) {
		char name[NAME_SIZE] = "";

		if (session->options.threads)
			root_of(session, jni, &traces->threads[i], name);
		take(session, name, traces->threads[i].tree, sum);
		if (traces->threads[i].thread)
			(*jni)->DeleteLocalRef(jni, traces->threads[i].thread);
	}
	agent_release(&session->extension, traces);
}

static void retrieve(struct agent_session *session, JNIEnv *jni)
{
	const uint64_t begun = agent_backlog_begin(&session->backlog);
	struct sum sum = {.count = 0};

	agent_retriever_begun(&session->retriever);
	take_handed(session, &sum);
	take_all(session, jni, &sum);
	agent_backlog_end(&session->backlog, begun, sum.count, sum.bytes);
}

/* Finds the name while the thread still has one. */
static void hand_over(struct agent_session *session, JNIEnv *jni,
		      struct incstack_jvmti_traces *traces)
{
	char name[NAME_SIZE] = "";

	if (traces->count && session->options.threads)
		root_of(session, jni, &traces->threads[0], name);
	for (size_t i = 0; i < traces->count; i++)
		if (traces->threads[i].thread)
			(*jni)->DeleteLocalRef(jni, traces->threads[i].thread);
	if (traces->count && agent_handover_put(&session->handover, traces, name))
		return;
	agent_collector_lose(&session->collector, AGENT_LOSS_MEMORY, agent_handover_count(traces));
	agent_release(&session->extension, traces);
}

static void thread_ends(struct agent_session *session, JNIEnv *jni, jthread thread)
{
	struct incstack_jvmti_traces *traces = NULL;

	pthread_rwlock_rdlock(&session->handover.gate);
	if (!agent_retrieve(&session->extension, 1, &thread, &traces))
		hand_over(session, jni, traces);
	pthread_rwlock_unlock(&session->handover.gate);
}

/* ---- counters and names ------------------------------------------------------------- */

/* What the JVM has compared is counted when traces are retrieved. If traces are compared, no thread may be
 * between its retrieve and the handover: then they would count in this part and be in the next one. The
 * statistics ask each thread in turn, so that threads that end wait, but only if traces are compared. */
static jvmtiError read_statistics(struct agent_session *session,
				  struct incstack_jvmti_statistics *now)
{
	struct sum sum = {.count = 0};
	jvmtiError error;

	if (session->options.check)
		pthread_rwlock_wrlock(&session->handover.gate);
	error = agent_statistics(&session->extension, now);
	if (session->options.check)
		pthread_rwlock_unlock(&session->handover.gate);
	take_handed(session, &sum);
	return error;
}

static void count(struct agent_session *session, struct agent_figures *figures)
{
	struct incstack_jvmti_statistics now = {.size = sizeof(now)};
	const struct incstack_jvmti_statistics *before = &session->before;
	uint64_t *lost = figures->counts.lost;

	if (read_statistics(session, &now))
		return;
	session->now = now;
	figures->findings.crosschecked = now.crosschecked - before->crosschecked;
	figures->findings.mismatches = now.mismatches - before->mismatches;
	figures->findings.returns = now.returns - before->returns;
	figures->findings.stale = now.stale - before->stale;
	lost[AGENT_LOSS_CLOSED] += now.lost_closed - before->lost_closed;
	lost[AGENT_LOSS_MEMORY] += now.lost_refused - before->lost_refused;
	lost[AGENT_LOSS_ENDED] += now.lost_ended - before->lost_ended;
}

static void free_description(jvmtiEnv *jvmti, const struct incstack_jvmti_method *method)
{
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method->class_signature);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method->name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method->signature);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method->source_file);
}

/* Which kind of frame the key of a method names. */
static uint32_t kind_of(uint64_t key)
{
	switch (INCSTACK_JVMTI_METHOD_KIND(key)) {
	case INCSTACK_JVMTI_KIND_INTERPRETED:
		return INCSTACK_KIND_INTERPRETED;
	case INCSTACK_JVMTI_KIND_C1:
	case INCSTACK_JVMTI_KIND_C2:
		return INCSTACK_KIND_COMPILED;
	case INCSTACK_JVMTI_KIND_NATIVE:
		return INCSTACK_KIND_WRAPPER;
	default:
		return INCSTACK_KIND_UNKNOWN;
	}
}

static int source(void *context, const struct incstack_profile_frame *frame,
		  struct incstack_profile_source *found)
{
	struct agent_session *session = context;
	struct incstack_jvmti_method method = {.size = sizeof(method)};

	if (frame->name)
		return 0;
	if (agent_describe(&session->extension, (jlong)frame->function, frame->position, &method)) {
		found->name = "[unknown method]";
		return 0;
	}
	free(session->name);
	free(session->file);
	session->name = agent_method_name(method.class_signature, method.name);
	session->file = method.source_file ? strdup(method.source_file) : NULL;
	if (session->file)
		agent_text_repair(session->file);
	found->name = session->name;
	found->file = session->file;
	found->line = session->options.lines ? method.line : 0;
	found->kind = kind_of(frame->function);
	free_description(session->jvmti, &method);
	return found->name ? 0 : INCSTACK_ENOMEM;
}

/* Only in this mode the sampler has several threads. A full safepoint or a full walk may take longer than the
 * interval. One thread then misses times, and the program runs meanwhile. Several threads miss none. */
#define EXTENDED(name, its_mode, text) \
	const struct agent_technique agent_technique_extended_##name = { \
		.mode = (its_mode), \
		.description = (text), \
		.takes_turns = (its_mode) == AGENT_MODE_PARTIAL_INCREMENTAL, \
		.start = start, \
		.tick = tick_extended, \
		.retrieve = retrieve, \
		.thread_ends = thread_ends, \
		.count = count, \
		.source = source, \
	}

EXTENDED(partial, AGENT_MODE_PARTIAL, "partial safepoints, full walks, by the JVM's extension");
EXTENDED(incremental, AGENT_MODE_INCREMENTAL,
	 "full safepoints, incremental traces, by the JVM's extension");
EXTENDED(partial_incremental, AGENT_MODE_PARTIAL_INCREMENTAL,
	 "partial safepoints, incremental traces, by the JVM's extension");
