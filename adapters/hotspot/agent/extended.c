/* SPDX-License-Identifier: MIT
 *
 * The techniques of a JVM with the library inside.
 */
#include "extended.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backlog.h"
#include "extension.h"
#include "handover.h"
#include "text.h"

/* The part of the memory that traces may use that were not retrieved yet. They are copied when they are, so
 * that they use twice as much. */
enum { BACKLOG_SHARE = 8 };

/* The part of the memory that traces of threads that have ended may use until they are retrieved. */
enum { HANDOVER_SHARE = 8 };

enum { NAME_SIZE = 256 };

struct extended {
	struct agent_technique technique;
	struct agent_shared *shared;
	struct agent_extension extension;
	struct agent_handover handover;
	struct agent_backlog backlog;
	_Atomic uint32_t usual;                       /* how many samples the last request wanted */
	struct agent_latency latency;                 /* of the part, as far as it was retrieved */
	struct incstack_jvmti_statistics before, now; /* when the part began, and at `count` */
	char *name, *file;                            /* what `source` found last */
};

static struct extended *extended_of(struct agent_technique *technique)
{
	return (struct extended *)technique;
}

static void close_extended(struct agent_technique *technique, JNIEnv *jni)
{
	struct extended *extended = extended_of(technique);

	(void)jni;
	free(extended->name);
	free(extended->file);
	free(extended);
}

/* Returns null, or why the technique cannot be used. */
static const char *prepare(struct extended *extended)
{
	const struct agent_options *options = &extended->shared->options;
	struct incstack_jvmti_statistics before = {.size = sizeof(before)};

	if (!agent_extension_find(&extended->extension, extended->shared->jvmti) ||
	    agent_statistics(&extended->extension, &before))
		return "the JVM's statistics cannot be read";
	extended->before = extended->now = before;
	agent_handover_open(&extended->handover, options->memory / HANDOVER_SHARE);
	agent_backlog_open(&extended->backlog, options->memory / BACKLOG_SHARE, before.traces);
	if (agent_set_check(&extended->extension, options->check))
		return "the JVM's check cannot be switched";
	return NULL;
}

static struct agent_technique *open_extended(const struct agent_technique_kind *kind,
					     struct agent_shared *shared, const char **why)
{
	struct extended *extended = calloc(1, sizeof(*extended));

	*why = "out of memory";
	if (!extended)
		return NULL;
	extended->technique.kind = kind;
	extended->shared = shared;
	*why = prepare(extended);
	if (!*why)
		return &extended->technique;
	free(extended);
	return NULL;
}

/* ---- request ------------------------------------------------------------------------ */

static uint32_t flags_of(const struct extended *extended)
{
	uint32_t flags = extended->shared->options.waiting ? INCSTACK_JVMTI_WAITING : 0u;

	switch (extended->technique.kind->mode) {
	case AGENT_MODE_PARTIAL:
		return flags | INCSTACK_JVMTI_FULL_WALK;
	case AGENT_MODE_INCREMENTAL:
		return flags | INCSTACK_JVMTI_FULL_SAFEPOINT;
	default:
		return flags;
	}
}

/* Returns whether there are too many traces that were not retrieved. Before, it lets the retriever begin. */
static bool must_wait(struct extended *extended)
{
	if (!agent_backlog_exceeds(&extended->backlog, 0.5))
		return false;
	agent_retriever_hurry(&extended->shared->retriever);
	return agent_backlog_exceeds(&extended->backlog, 1);
}

/* Requests samples. Those that the request has not yielded by the next tick are lost; the JVM
 * counts them. */
static void tick(struct agent_technique *technique, JNIEnv *jni, struct agent_tick *tick)
{
	struct extended *extended = extended_of(technique);
	struct incstack_jvmti_request request = {.size = sizeof(request),
						 .id = (int64_t)tick->due,
						 .due = tick->due,
						 .deadline_ns = 0,
						 .n = extended->shared->samples,
						 .flags = flags_of(extended)};
	struct incstack_jvmti_requested requested = {.size = sizeof(requested)};

	(void)jni;
	if (must_wait(extended)) {
		tick->wanted = atomic_load_explicit(&extended->usual, memory_order_relaxed);
		tick->reason = AGENT_LOSS_BEHIND;
		return;
	}
	if (agent_request(&extended->extension, 0, NULL, &request, &requested)) {
		tick->wanted = extended->shared->samples;
		return;
	}
	tick->wanted = tick->taken = requested.wanted;
	atomic_store_explicit(&extended->usual, requested.wanted, memory_order_relaxed);
	agent_backlog_took(&extended->backlog, requested.traces);
}

/* ---- retrieve ----------------------------------------------------------------------- */

/* Finds the name of a thread. It may have ended since its traces were retrieved. */
static void root_of(struct extended *extended, JNIEnv *jni,
		    const struct incstack_jvmti_thread_traces *one, char name[NAME_SIZE])
{
	jvmtiEnv *jvmti = extended->shared->jvmti;
	jvmtiThreadInfo info = {0};

	snprintf(name, NAME_SIZE, "thread %lld", (long long)one->thread_id);
	if (!one->thread || (*jvmti)->GetThreadInfo(jvmti, one->thread, &info))
		return;
	(*jni)->DeleteLocalRef(jni, info.thread_group);
	(*jni)->DeleteLocalRef(jni, info.context_class_loader);
	if (info.name && *info.name) {
		snprintf(name, NAME_SIZE, "%s", info.name);
		agent_text_repair(name);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info.name);
}

/* How many traces a retrieve has found, and their size. */
struct sum {
	uint64_t count, bytes;
};

static void take(struct extended *extended, const char *root, const struct incstack_tree *tree,
		 struct sum *sum)
{
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		agent_latency_add(&extended->latency, t->weight);
	agent_collector_tree(&extended->shared->collector, root, tree);
	sum->count += tree->count;
	sum->bytes += agent_tree_bytes(tree);
}

static void take_handed(struct extended *extended, struct sum *sum)
{
	struct agent_handed *handed = agent_handover_take(&extended->handover);

	while (handed) {
		struct agent_handed *next = handed->next;

		for (size_t i = 0; i < handed->traces->count; i++)
			take(extended, handed->root, handed->traces->threads[i].tree, sum);
		agent_release(&extended->extension, handed->traces);
		free(handed);
		handed = next;
	}
}

static void take_all(struct extended *extended, JNIEnv *jni, struct sum *sum)
{
	struct incstack_jvmti_traces *traces = NULL;

	if (agent_retrieve(&extended->extension, 0, NULL, &traces))
		return;
	for (size_t i = 0; i < traces->count; i++) {
		char name[NAME_SIZE] = "";

		if (extended->shared->options.threads)
			root_of(extended, jni, &traces->threads[i], name);
		take(extended, name, traces->threads[i].tree, sum);
		if (traces->threads[i].thread)
			(*jni)->DeleteLocalRef(jni, traces->threads[i].thread);
	}
	agent_release(&extended->extension, traces);
}

static void retrieve(struct agent_technique *technique, JNIEnv *jni)
{
	struct extended *extended = extended_of(technique);
	const uint64_t begun = agent_backlog_begin(&extended->backlog);
	struct sum sum = {.count = 0};

	agent_retriever_begun(&extended->shared->retriever);
	take_handed(extended, &sum);
	take_all(extended, jni, &sum);
	agent_backlog_end(&extended->backlog, begun, sum.count, sum.bytes);
}

/* Finds the name while the thread still has one. */
static void hand_over(struct extended *extended, JNIEnv *jni, struct incstack_jvmti_traces *traces)
{
	char name[NAME_SIZE] = "";

	if (traces->count && extended->shared->options.threads)
		root_of(extended, jni, &traces->threads[0], name);
	for (size_t i = 0; i < traces->count; i++)
		if (traces->threads[i].thread)
			(*jni)->DeleteLocalRef(jni, traces->threads[i].thread);
	if (traces->count && agent_handover_put(&extended->handover, traces, name))
		return;
	agent_collector_lose(&extended->shared->collector, AGENT_LOSS_MEMORY,
			     agent_handover_count(traces));
	agent_release(&extended->extension, traces);
}

static void thread_ends(struct agent_technique *technique, JNIEnv *jni, jthread thread)
{
	struct extended *extended = extended_of(technique);
	struct incstack_jvmti_traces *traces = NULL;

	agent_handover_enter(&extended->handover);
	if (!agent_retrieve(&extended->extension, 1, &thread, &traces))
		hand_over(extended, jni, traces);
	agent_handover_leave(&extended->handover);
}

/* ---- counters and names ------------------------------------------------------------- */

/* What the JVM has compared is counted when traces are retrieved. If traces are compared, no thread may be
 * between its retrieve and the handover: then they would count in this part and be in the next one. The
 * statistics ask each thread in turn, so that threads that end wait, but only if traces are compared. */
static jvmtiError read_statistics(struct extended *extended, struct incstack_jvmti_statistics *now)
{
	struct sum sum = {.count = 0};
	jvmtiError error;

	if (extended->shared->options.check)
		agent_handover_shut(&extended->handover);
	error = agent_statistics(&extended->extension, now);
	if (extended->shared->options.check)
		agent_handover_reopen(&extended->handover);
	take_handed(extended, &sum);
	return error;
}

static void count(struct agent_technique *technique, struct agent_figures *figures)
{
	struct extended *extended = extended_of(technique);
	struct incstack_jvmti_statistics now = {.size = sizeof(now)};
	const struct incstack_jvmti_statistics *before = &extended->before;
	uint64_t *lost = figures->counts.lost;
	const jvmtiError error = read_statistics(extended, &now);

	figures->findings.latency = extended->latency;
	if (error)
		return;
	extended->now = now;
	figures->findings.crosschecked = now.crosschecked - before->crosschecked;
	figures->findings.mismatches = now.mismatches - before->mismatches;
	figures->findings.returns = now.returns - before->returns;
	figures->findings.stale = now.stale - before->stale;
	lost[AGENT_LOSS_CLOSED] += now.lost_closed - before->lost_closed;
	lost[AGENT_LOSS_MEMORY] += now.lost_refused - before->lost_refused;
	lost[AGENT_LOSS_ENDED] += now.lost_ended - before->lost_ended;
}

static void next_part(struct agent_technique *technique)
{
	struct extended *extended = extended_of(technique);

	extended->latency = (struct agent_latency){.count = 0};
	extended->before = extended->now;
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
	struct extended *extended = extended_of(context);
	struct incstack_jvmti_method method = {.size = sizeof(method)};

	if (frame->name)
		return 0;
	if (agent_describe(&extended->extension, (jlong)frame->function, frame->position,
			   &method)) {
		found->name = "[unknown method]";
		return 0;
	}
	free(extended->name);
	free(extended->file);
	extended->name = agent_method_name(method.class_signature, method.name);
	extended->file = method.source_file ? strdup(method.source_file) : NULL;
	if (extended->file)
		agent_text_repair(extended->file);
	found->name = extended->name;
	found->file = extended->file;
	found->line = extended->shared->options.lines ? method.line : 0;
	found->kind = kind_of(frame->function);
	free_description(extended->shared->jvmti, &method);
	return found->name ? 0 : INCSTACK_ENOMEM;
}

/* Only in this mode the sampler has several threads. A full safepoint or a full walk may take longer than the
 * interval. One thread then misses times, and the program runs meanwhile. Several threads miss none. */
#define EXTENDED(name, its_mode, text) \
	const struct agent_technique_kind agent_technique_extended_##name = { \
		.mode = (its_mode), \
		.description = (text), \
		.takes_turns = (its_mode) == AGENT_MODE_PARTIAL_INCREMENTAL, \
		.open = open_extended, \
		.close = close_extended, \
		.tick = tick, \
		.retrieve = retrieve, \
		.thread_ends = thread_ends, \
		.count = count, \
		.next_part = next_part, \
		.source = source, \
	}

EXTENDED(partial, AGENT_MODE_PARTIAL, "partial safepoints, full walks, by the JVM's extension");
EXTENDED(incremental, AGENT_MODE_INCREMENTAL,
	 "full safepoints, incremental traces, by the JVM's extension");
EXTENDED(partial_incremental, AGENT_MODE_PARTIAL_INCREMENTAL,
	 "partial safepoints, incremental traces, by the JVM's extension");
