/* SPDX-License-Identifier: MIT
 *
 * The techniques that every JVM offers; see stock.h.
 */
#include "stock.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "methods.h"

/* One thread takes all ticks. Only this thread uses the members from `findings` on, while it runs. */
struct stock {
	struct agent_technique technique;
	struct agent_shared *shared;
	struct agent_methods methods;
	struct agent_findings findings; /* of the part */
	jvmtiFrameInfo *infos;          /* of one trace */
	struct agent_frame *frames;
	struct agent_thread **chosen; /* for one tick */
};

static struct stock *stock_of(struct agent_technique *technique)
{
	return (struct stock *)technique;
}

static void close_stock(struct agent_technique *technique, JNIEnv *jni)
{
	struct stock *stock = stock_of(technique);

	agent_methods_close(&stock->methods, jni);
	free(stock->infos);
	free(stock->frames);
	free(stock->chosen);
	free(stock);
}

static bool make_room(struct stock *stock)
{
	const size_t room = stock->shared->options.depth + 2u;

	stock->infos = calloc(room, sizeof(*stock->infos));
	stock->frames = calloc(room, sizeof(*stock->frames));
	stock->chosen = calloc(stock->shared->samples, sizeof(struct agent_thread *));
	return stock->infos && stock->frames && stock->chosen;
}

static struct agent_technique *open_stock(const struct agent_technique_kind *kind,
					  struct agent_shared *shared, const char **why)
{
	struct stock *stock = calloc(1, sizeof(*stock));

	*why = "out of memory";
	if (!stock)
		return NULL;
	stock->technique.kind = kind;
	stock->shared = shared;
	agent_methods_open(&stock->methods, shared->jvmti);
	if (make_room(stock))
		return &stock->technique;
	close_stock(&stock->technique, NULL); /* no class is registered yet */
	return NULL;
}

/* ---- check: a second walk of a thread that did not run in between ------------------- */

static jlong processor_time(const struct stock *stock, jthread thread)
{
	jlong ns = -1;

	if (!stock->shared->options.check ||
	    (*stock->shared->jvmti)->GetThreadCpuTime(stock->shared->jvmti, thread, &ns))
		return -1;
	return ns;
}

/* Compares a walk with another one, made by another function. If the thread used no processor time
 * between the start of the first walk and the end of the second, it did not run, and the two must
 * be equal. */
static void check(struct stock *stock, jthread thread, jlong before, const jvmtiFrameInfo *frames,
		  jint count)
{
	jvmtiEnv *jvmti = stock->shared->jvmti;
	jvmtiStackInfo *again = NULL;

	if (before < 0 ||
	    (*jvmti)->GetThreadListStackTraces(jvmti, 1, &thread,
					       (jint)stock->shared->options.depth + 1, &again))
		return;
	if (processor_time(stock, thread) == before) {
		stock->findings.crosschecked++;
		if (again->frame_count != count ||
		    memcmp(again->frame_buffer, frames, (size_t)count * sizeof(*frames)) != 0)
			stock->findings.mismatches++;
	}
	/* again->thread may be `thread` itself, so it is left to the tick's local frame. */
	(*jvmti)->Deallocate(jvmti, (unsigned char *)again);
}

/* ---- one trace ---------------------------------------------------------------------- */

/* Adds a trace. The walk asked for one frame more than `depth`; if it is there, the trace is
 * truncated. */
static void add(struct stock *stock, JNIEnv *jni, struct agent_thread *thread,
		const jvmtiFrameInfo *infos, jint count)
{
	uint32_t depth = stock->shared->options.depth;
	bool truncated = (uint32_t)count > depth;
	uint32_t kept = truncated ? depth : (uint32_t)count;
	uint32_t made = agent_methods_translate(&stock->methods, jni, infos, kept, stock->frames);

	stock->findings.virtual_samples += made > kept;
	agent_collector_walk(&stock->shared->collector,
			     stock->shared->options.threads
				     ? agent_thread_name(&stock->shared->threads, jni, thread)
				     : NULL,
			     stock->frames, made, truncated, &thread->last);
}

/* ---- partial ------------------------------------------------------------------------ */

/* A thread that JVMTI says runs may have no Java frame, or wait inside the JVM. */
static enum agent_seeming seeming_of(struct stock *stock, JNIEnv *jni, const jvmtiFrameInfo *infos,
				     jint count)
{
	if (!count)
		return AGENT_SEEMS_EMPTY;
	return agent_methods_idle(&stock->methods, jni, infos[0].method) ? AGENT_SEEMS_IDLE
									 : AGENT_SEEMS_RIGHT;
}

static bool is_sample(const struct stock *stock, enum agent_seeming seeming)
{
	return seeming == AGENT_SEEMS_RIGHT ||
	       (seeming == AGENT_SEEMS_IDLE && stock->shared->options.waiting);
}

/* Samples a thread. If it has ended since it was chosen, or only seemed to run, no sample is needed. */
static void sample(struct stock *stock, JNIEnv *jni, struct agent_thread *thread,
		   struct agent_tick *tick)
{
	enum agent_seeming seeming = AGENT_SEEMS_RIGHT;
	jlong before = processor_time(stock, thread->ref);
	jint count = 0;
	jvmtiError error = (*stock->shared->jvmti)
				   ->GetStackTrace(stock->shared->jvmti, thread->ref, 0,
						   (jint)stock->shared->options.depth + 1,
						   stock->infos, &count);

	if (!error)
		seeming = seeming_of(stock, jni, stock->infos, count);
	if (seeming != AGENT_SEEMS_RIGHT)
		agent_threads_seems(&stock->shared->threads, thread, seeming);
	if (error == JVMTI_ERROR_THREAD_NOT_ALIVE || !is_sample(stock, seeming)) {
		tick->wanted--;
		return;
	}
	if (error)
		return;
	tick->taken++;
	agent_latency_add(&stock->findings.latency, agent_now() - tick->due);
	check(stock, thread->ref, before, stock->infos, count);
	add(stock, jni, thread, stock->infos, count);
}

static void sample_chosen(struct stock *stock, JNIEnv *jni, const struct agent_choice *choice,
			  struct agent_tick *tick)
{
	tick->wanted += choice->count;
	for (uint32_t i = 0; i < choice->count; i++) {
		sample(stock, jni, choice->chosen[i], tick);
		agent_threads_drop(&stock->shared->threads, jni, choice->chosen[i]);
	}
}

/* Another thread takes the turn of one that gave no sample. */
static void sample_some(struct stock *stock, JNIEnv *jni, struct agent_tick *tick)
{
	struct agent_choice choice = {.chosen = stock->chosen};

	if (stock->shared->options.waiting) {
		agent_threads_choose(&stock->shared->threads, jni, stock->shared->samples, &choice);
		sample_chosen(stock, jni, &choice, tick);
		return;
	}
	do {
		agent_threads_choose_running(&stock->shared->threads, jni,
					     stock->shared->samples - tick->wanted, &choice);
		sample_chosen(stock, jni, &choice, tick);
	} while (choice.count && tick->wanted < stock->shared->samples);
}

/* ---- jvmti -------------------------------------------------------------------------- */

static bool is_wanted(struct stock *stock, JNIEnv *jni, const jvmtiStackInfo *info)
{
	return (stock->shared->options.waiting || agent_state_runs(info->state)) &&
	       is_sample(stock, seeming_of(stock, jni, info->frame_buffer, info->frame_count));
}

static void add_all(struct stock *stock, JNIEnv *jni, const jvmtiStackInfo *infos, jint count,
		    struct agent_tick *tick)
{
	for (jint i = 0; i < count; i++) {
		struct agent_thread *thread = NULL;

		if (is_wanted(stock, jni, &infos[i]))
			thread = agent_threads_find(&stock->shared->threads, infos[i].thread);
		if (thread) {
			tick->taken++;
			add(stock, jni, thread, infos[i].frame_buffer, infos[i].frame_count);
			agent_threads_drop(&stock->shared->threads, jni, thread);
		}
	}
	tick->wanted = tick->taken;
}

/* Chooses the thread that is walked again after all were walked: the next one in the ring. */
static struct agent_thread *choose_checked(struct stock *stock, JNIEnv *jni, jlong *before)
{
	struct agent_choice choice = {.chosen = stock->chosen};

	if (!stock->shared->options.check)
		return NULL;
	agent_threads_choose(&stock->shared->threads, jni, 1, &choice);
	if (!choice.count)
		return NULL;
	*before = processor_time(stock, choice.chosen[0]->ref);
	return choice.chosen[0];
}

static void check_one(struct stock *stock, JNIEnv *jni, struct agent_thread *thread, jlong before,
		      const jvmtiStackInfo *infos, jint count)
{
	for (jint i = 0; i < count; i++)
		if ((*jni)->IsSameObject(jni, infos[i].thread, thread->ref))
			check(stock, thread->ref, before, infos[i].frame_buffer,
			      infos[i].frame_count);
	agent_threads_drop(&stock->shared->threads, jni, thread);
}

static void sample_all(struct stock *stock, JNIEnv *jni, struct agent_tick *tick)
{
	jvmtiEnv *jvmti = stock->shared->jvmti;
	jvmtiStackInfo *infos = NULL;
	jint count = 0;
	jlong before = -1;
	struct agent_thread *checked = choose_checked(stock, jni, &before);
	jvmtiError error = (*jvmti)->GetAllStackTraces(
		jvmti, (jint)stock->shared->options.depth + 1, &infos, &count);
	uint64_t latency = agent_now() - tick->due;

	if (error) {
		tick->wanted = stock->shared->samples;
		count = 0;
	}
	if (checked)
		check_one(stock, jni, checked, before, infos, count);
	if (error)
		return;
	add_all(stock, jni, infos, count, tick);
	for (uint32_t i = 0; i < tick->taken; i++)
		agent_latency_add(&stock->findings.latency, latency);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)infos);
}

/* ---- both --------------------------------------------------------------------------- */

/* Samples. The local references that are made meanwhile are freed at the end of the tick. */
static void sample_in_frame(struct agent_technique *technique, JNIEnv *jni, struct agent_tick *tick,
			    void (*sample_threads)(struct stock *stock, JNIEnv *jni,
						   struct agent_tick *tick))
{
	struct stock *stock = stock_of(technique);

	if ((*jni)->PushLocalFrame(jni, 64)) { /* the heap is full: no sample */
		(*jni)->ExceptionClear(jni);
		tick->wanted = stock->shared->samples;
		tick->reason = AGENT_LOSS_MEMORY;
		return;
	}
	sample_threads(stock, jni, tick);
	(*jni)->PopLocalFrame(jni, NULL);
}

static void tick_jvmti(struct agent_technique *technique, JNIEnv *jni, struct agent_tick *tick)
{
	sample_in_frame(technique, jni, tick, sample_all);
}

static void tick_partial(struct agent_technique *technique, JNIEnv *jni, struct agent_tick *tick)
{
	sample_in_frame(technique, jni, tick, sample_some);
}

static void class_prepared(struct agent_technique *technique, JNIEnv *jni, jclass class)
{
	agent_methods_class(&stock_of(technique)->methods, jni, class);
}

static void classes_loaded(struct agent_technique *technique, JNIEnv *jni)
{
	agent_methods_loaded(&stock_of(technique)->methods, jni);
}

static void sweep(struct agent_technique *technique, JNIEnv *jni)
{
	agent_methods_sweep(&stock_of(technique)->methods, jni);
}

static void count(struct agent_technique *technique, struct agent_figures *figures)
{
	figures->findings = stock_of(technique)->findings;
}

static void next_part(struct agent_technique *technique)
{
	stock_of(technique)->findings = (struct agent_findings){.crosschecked = 0};
}

static int source(void *context, const struct incstack_profile_frame *frame,
		  struct incstack_profile_source *found)
{
	struct stock *stock = stock_of(context);
	int error = agent_methods_source(&stock->methods, frame, found);

	if (!stock->shared->options.lines)
		found->line = 0;
	return error;
}

#define STOCK(name, its_mode, text) \
	const struct agent_technique_kind agent_technique_##name = { \
		.mode = (its_mode), \
		.description = (text), \
		.open = open_stock, \
		.close = close_stock, \
		.tick = tick_##name, \
		.class_prepared = class_prepared, \
		.classes_loaded = classes_loaded, \
		.sweep = sweep, \
		.count = count, \
		.next_part = next_part, \
		.source = source, \
	}

STOCK(jvmti, AGENT_MODE_JVMTI, "full safepoints, full walks by GetAllStackTraces");
STOCK(partial, AGENT_MODE_PARTIAL, "handshakes with single threads, full walks by GetStackTrace");
