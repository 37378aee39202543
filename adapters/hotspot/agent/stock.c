/* SPDX-License-Identifier: MIT
 *
 * The techniques that every JVM offers. Both walk whole stacks with functions of JVMTI.
 *   jvmti     GetAllStackTraces: all threads are stopped in a safepoint at each tick
 *   partial   GetStackTrace: some running threads are stopped at each tick, one after the
 *             other, each by a handshake of its own
 */
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"

static const char *start(struct agent_session *session)
{
	size_t room = session->options.depth + 2u;

	session->infos = calloc(room, sizeof(*session->infos));
	session->frames = calloc(room, sizeof(*session->frames));
	session->chosen = calloc(session->samples, sizeof(struct agent_thread *));
	return session->infos && session->frames && session->chosen ? NULL : "out of memory";
}

/* ---- check: a second walk of a thread that did not run in between ------------------- */

static jlong processor_time(const struct agent_session *session, jthread thread)
{
	jlong ns = -1;

	if (!session->options.check ||
	    (*session->jvmti)->GetThreadCpuTime(session->jvmti, thread, &ns))
		return -1;
	return ns;
}

/* Compares a walk with another one, made by another function. If the thread used no processor time
 * between the start of the first walk and the end of the second, it did not run, and the two must
 * be equal. */
static void check(struct agent_session *session, jthread thread, jlong before,
		  const jvmtiFrameInfo *frames, jint count)
{
	jvmtiEnv *jvmti = session->jvmti;
	jvmtiStackInfo *again = NULL;

	if (before < 0 || (*jvmti)->GetThreadListStackTraces(
				  jvmti, 1, &thread, (jint)session->options.depth + 1, &again))
		return;
	if (processor_time(session, thread) == before) {
		session->findings.crosschecked++;
		if (again->frame_count != count ||
		    memcmp(again->frame_buffer, frames, (size_t)count * sizeof(*frames)) != 0)
			session->findings.mismatches++;
	}
	/* again->thread may be `thread` itself, so it is left to the tick's local frame. */
	(*jvmti)->Deallocate(jvmti, (unsigned char *)again);
}

/* ---- one trace ---------------------------------------------------------------------- */

/* Adds a trace. The walk asked for one frame more than `depth`; if it is there, the trace is
 * truncated. */
static void add(struct agent_session *session, JNIEnv *jni, struct agent_thread *thread,
		const jvmtiFrameInfo *infos, jint count)
{
	uint32_t depth = session->options.depth;
	bool truncated = (uint32_t)count > depth;
	uint32_t kept = truncated ? depth : (uint32_t)count;
	uint32_t made =
		agent_methods_translate(&session->methods, jni, infos, kept, session->frames);

	session->findings.virtual_samples += made > kept;
	agent_collector_walk(
		&session->collector,
		session->options.threads ? agent_thread_name(&session->threads, jni, thread) : NULL,
		session->frames, made, truncated, &thread->last);
}

/* ---- partial ------------------------------------------------------------------------ */

/* A thread that JVMTI says runs may have no Java frame, or wait inside the JVM. */
static enum agent_seeming seeming_of(struct agent_session *session, JNIEnv *jni,
				     const jvmtiFrameInfo *infos, jint count)
{
	if (!count)
		return AGENT_SEEMS_EMPTY;
	return agent_methods_idle(&session->methods, jni, infos[0].method) ? AGENT_SEEMS_IDLE
									   : AGENT_SEEMS_RIGHT;
}

static bool is_sample(const struct agent_session *session, enum agent_seeming seeming)
{
	return seeming == AGENT_SEEMS_RIGHT ||
	       (seeming == AGENT_SEEMS_IDLE && session->options.waiting);
}

/* Samples a thread. If it has ended since it was chosen, or only seemed to run, no sample is needed. */
static void sample(struct agent_session *session, JNIEnv *jni, struct agent_thread *thread,
		   struct agent_tick *tick)
{
	enum agent_seeming seeming = AGENT_SEEMS_RIGHT;
	jlong before = processor_time(session, thread->ref);
	jint count = 0;
	jvmtiError error =
		(*session->jvmti)
			->GetStackTrace(session->jvmti, thread->ref, 0,
					(jint)session->options.depth + 1, session->infos, &count);

	if (!error)
		seeming = seeming_of(session, jni, session->infos, count);
	if (seeming != AGENT_SEEMS_RIGHT)
		agent_threads_seems(&session->threads, thread, seeming);
	if (error == JVMTI_ERROR_THREAD_NOT_ALIVE || !is_sample(session, seeming)) {
		tick->wanted--;
		return;
	}
	if (error)
		return;
	tick->taken++;
	agent_latency_add(&session->findings.latency, agent_now() - tick->due);
	check(session, thread->ref, before, session->infos, count);
	add(session, jni, thread, session->infos, count);
}

static void sample_chosen(struct agent_session *session, JNIEnv *jni,
			  const struct agent_choice *choice, struct agent_tick *tick)
{
	tick->wanted += choice->count;
	for (uint32_t i = 0; i < choice->count; i++) {
		sample(session, jni, choice->chosen[i], tick);
		agent_threads_drop(&session->threads, jni, choice->chosen[i]);
	}
}

/* Another thread takes the turn of one that gave no sample. */
static void tick_partial(struct agent_session *session, JNIEnv *jni, struct agent_tick *tick)
{
	struct agent_choice choice = {.chosen = session->chosen};

	if (session->options.waiting) {
		agent_threads_choose(&session->threads, jni, session->samples, &choice);
		sample_chosen(session, jni, &choice, tick);
		return;
	}
	do {
		agent_threads_choose_running(&session->threads, jni,
					     session->samples - tick->wanted, &choice);
		sample_chosen(session, jni, &choice, tick);
	} while (choice.count && tick->wanted < session->samples);
}

/* ---- jvmti -------------------------------------------------------------------------- */

static bool is_wanted(struct agent_session *session, JNIEnv *jni, const jvmtiStackInfo *info)
{
	return (session->options.waiting || agent_state_runs(info->state)) &&
	       is_sample(session, seeming_of(session, jni, info->frame_buffer, info->frame_count));
}

static void add_all(struct agent_session *session, JNIEnv *jni, const jvmtiStackInfo *infos,
		    jint count, struct agent_tick *tick)
{
	for (jint i = 0; i < count; i++) {
		struct agent_thread *thread = NULL;

		if (is_wanted(session, jni, &infos[i]))
			thread = agent_threads_find(&session->threads, infos[i].thread);
		if (thread) {
			tick->taken++;
			add(session, jni, thread, infos[i].frame_buffer, infos[i].frame_count);
			agent_threads_drop(&session->threads, jni, thread);
		}
	}
	tick->wanted = tick->taken;
}

/* Chooses the thread that is walked again after all were walked: the next one in the ring. */
static struct agent_thread *choose_checked(struct agent_session *session, JNIEnv *jni,
					   jlong *before)
{
	struct agent_choice choice = {.chosen = session->chosen};

	if (!session->options.check)
		return NULL;
	agent_threads_choose(&session->threads, jni, 1, &choice);
	if (!choice.count)
		return NULL;
	*before = processor_time(session, choice.chosen[0]->ref);
	return choice.chosen[0];
}

static void check_one(struct agent_session *session, JNIEnv *jni, struct agent_thread *thread,
		      jlong before, const jvmtiStackInfo *infos, jint count)
{
	for (jint i = 0; i < count; i++)
		if ((*jni)->IsSameObject(jni, infos[i].thread, thread->ref))
			check(session, thread->ref, before, infos[i].frame_buffer,
			      infos[i].frame_count);
	agent_threads_drop(&session->threads, jni, thread);
}

static void tick_all(struct agent_session *session, JNIEnv *jni, struct agent_tick *tick)
{
	jvmtiEnv *jvmti = session->jvmti;
	jvmtiStackInfo *infos = NULL;
	jint count = 0;
	jlong before = -1;
	struct agent_thread *checked = choose_checked(session, jni, &before);
	jvmtiError error = (*jvmti)->GetAllStackTraces(jvmti, (jint)session->options.depth + 1,
						       &infos, &count);
	uint64_t latency = agent_now() - tick->due;

	if (error) {
		tick->wanted = session->samples;
		count = 0;
	}
	if (checked)
		check_one(session, jni, checked, before, infos, count);
	if (error)
		return;
	add_all(session, jni, infos, count, tick);
	for (uint32_t i = 0; i < tick->taken; i++)
		agent_latency_add(&session->findings.latency, latency);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)infos);
}

/* ---- both --------------------------------------------------------------------------- */

static void count(struct agent_session *session, struct agent_figures *figures)
{
	figures->findings.crosschecked = session->findings.crosschecked;
	figures->findings.mismatches = session->findings.mismatches;
}

static int source(void *context, const struct incstack_profile_frame *frame,
		  struct incstack_profile_source *found)
{
	struct agent_session *session = context;
	int error = agent_methods_source(&session->methods, frame, found);

	if (!session->options.lines)
		found->line = 0;
	return error;
}

const struct agent_technique agent_technique_jvmti = {
	.mode = AGENT_MODE_JVMTI,
	.description = "full safepoints, full walks by GetAllStackTraces",
	.start = start,
	.tick = tick_all,
	.count = count,
	.source = source,
};

const struct agent_technique agent_technique_partial = {
	.mode = AGENT_MODE_PARTIAL,
	.description = "handshakes with single threads, full walks by GetStackTrace",
	.start = start,
	.tick = tick_partial,
	.count = count,
	.source = source,
};
