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

static const char *start(struct agent_session *session)
{
	struct incstack_jvmti_statistics before = {.size = sizeof(before)};

	if (agent_statistics(&session->extension, &before))
		return "the JVM's statistics cannot be read";
	session->before = session->now = before;
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
	if (agent_request(&session->extension, 0, NULL, &request, &requested)) {
		tick->wanted = session->samples;
		return;
	}
	tick->wanted = tick->taken = requested.wanted;
}

/* ---- retrieve ----------------------------------------------------------------------- */

/* Finds the name of a thread that may have ended since. */
static void root_of(struct agent_session *session, JNIEnv *jni,
		    const struct incstack_jvmti_thread_traces *one, char name[256])
{
	jvmtiThreadInfo info = {0};

	snprintf(name, 256, "thread %lld", (long long)one->thread_id);
	if (!one->thread || (*session->jvmti)->GetThreadInfo(session->jvmti, one->thread, &info))
		return;
	(*jni)->DeleteLocalRef(jni, info.thread_group);
	(*jni)->DeleteLocalRef(jni, info.context_class_loader);
	if (info.name && *info.name) {
		snprintf(name, 256, "%s", info.name);
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
	agent_latency_merge(&session->counted.latency, &sum);
	pthread_mutex_unlock(&session->lock);
}

static void take(struct agent_session *session, JNIEnv *jni,
		 const struct incstack_jvmti_thread_traces *one)
{
	char name[256] = "";

	if (session->options.threads)
		root_of(session, jni, one, name);
	note_latencies(session, one->tree);
	agent_collector_tree(&session->collector, name, one->tree);
	if (one->thread)
		(*jni)->DeleteLocalRef(jni, one->thread);
}

static void retrieve(struct agent_session *session, JNIEnv *jni, jthread thread)
{
	struct incstack_jvmti_traces *traces = NULL;

	if (agent_retrieve(&session->extension, thread ? 1 : 0, thread ? &thread : NULL, &traces))
		return;
	for (size_t i = 0; i < traces->count; i++)
		take(session, jni, &traces->threads[i]);
	agent_release(&session->extension, traces);
}

/* ---- counters and names ------------------------------------------------------------- */

static void count(struct agent_session *session, struct agent_figures *figures)
{
	struct incstack_jvmti_statistics now = {.size = sizeof(now)};
	const struct incstack_jvmti_statistics *before = &session->before;

	if (agent_statistics(&session->extension, &now))
		return;
	session->now = now;
	figures->crosschecked = now.crosschecked - before->crosschecked;
	figures->mismatches = now.mismatches - before->mismatches;
	figures->returns = now.returns - before->returns;
	figures->stale = now.stale - before->stale;
	figures->counts.lost += now.lost_closed - before->lost_closed + now.lost_refused -
				before->lost_refused + now.lost_ended - before->lost_ended;
}

static void free_description(jvmtiEnv *jvmti, const struct incstack_jvmti_method *method)
{
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method->class_signature);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method->name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method->signature);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method->source_file);
}

static int source(void *context, const struct incstack_profile_frame *frame,
		  struct incstack_profile_source *found)
{
	struct agent_session *session = context;
	struct incstack_jvmti_method method = {.size = sizeof(method)};

	if (frame->name)
		return 0;
	if (agent_describe(&session->extension, (jlong)frame->method, frame->bci, &method)) {
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
		.count = count, \
		.source = source, \
	}

EXTENDED(partial, AGENT_MODE_PARTIAL, "partial safepoints, full walks, by the JVM's extension");
EXTENDED(incremental, AGENT_MODE_INCREMENTAL,
	 "full safepoints, incremental traces, by the JVM's extension");
EXTENDED(partial_incremental, AGENT_MODE_PARTIAL_INCREMENTAL,
	 "partial safepoints, incremental traces, by the JVM's extension");
