/* SPDX-License-Identifier: MIT
 *
 * A session: sampling from its start to its result.
 */
#include "session.h"

#include <sched.h>
#include <stdio.h>

#include "clock.h"
#include "say.h"
#include "techniques.h"

/* How long a session waits for its threads to end. */
#define STOP_NS (10 * AGENT_NS_PER_S)

void agent_session_init(struct agent_session *session, jvmtiEnv *jvmti, struct agent_events *events,
			void (*over)(uint64_t number, JNIEnv *jni))
{
	struct agent_shared *shared = &session->shared;

	session->events = events;
	session->over = over;
	shared->jvmti = jvmti;
	agent_retriever_init(&shared->retriever, jvmti, &shared->threads);
	agent_sampler_init(&session->sampler);
	agent_parts_init(&session->parts);
}

/* ---- what the threads of the session call ------------------------------------------- */

static void retrieve(void *context, JNIEnv *jni)
{
	struct agent_session *session = context;

	agent_parts_retrieve(&session->parts, jni);
}

static void dump(void *context, JNIEnv *jni, bool next)
{
	struct agent_session *session = context;

	if (next)
		agent_parts_next(&session->parts, jni, false);
	else
		agent_parts_dump(&session->parts, jni);
}

static void over(void *context, JNIEnv *jni, uint64_t number)
{
	const struct agent_session *session = context;

	session->over(number, jni);
}

/* ---- start -------------------------------------------------------------------------- */

/* Returns the number of processors that the process may use. */
static uint32_t processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 1)
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

static void begin(struct agent_session *session, const struct agent_options *options)
{
	struct agent_shared *shared = &session->shared;

	session->number++;
	session->technique = NULL;
	shared->options = *options;
	shared->samples = options->samples ? options->samples : processors();
	if (options->waiting && shared->samples < 2)
		shared->samples = 2; /* one that runs, and one that waits */
	shared->start_ns = agent_now();
	agent_output_open(&session->output, &shared->options);
}

/* Returns null, or why the session cannot start; then nothing is open. */
static const char *open_roles(struct agent_session *session, JNIEnv *jni,
			      const struct agent_technique_kind *kind)
{
	struct agent_shared *shared = &session->shared;
	const char *why = "out of memory";

	agent_threads_open(&shared->threads, shared->jvmti);
	if (agent_collector_open(&shared->collector, shared->options.memory))
		session->technique = kind->open(kind, shared, &why);
	if (session->technique) {
		agent_parts_begin(&session->parts, shared, session->technique, &session->sampler,
				  &session->output);
		return NULL;
	}
	agent_collector_close(&shared->collector);
	agent_threads_close(&shared->threads, jni);
	return why;
}

/* The threads of the session have ended, and its events are switched off. */
static void close_roles(struct agent_session *session, JNIEnv *jni)
{
	struct agent_shared *shared = &session->shared;

	session->technique->kind->close(session->technique, jni);
	agent_threads_close(&shared->threads, jni);
	agent_collector_close(&shared->collector);
	agent_sampler_close(&session->sampler, jni);
	agent_retriever_close(&shared->retriever, jni);
}

/* Learns which classes and threads exist. Their events are switched on first. Otherwise one could
 * be missed that appears in between. */
static void learn(struct agent_session *session, JNIEnv *jni)
{
	struct agent_technique *technique = session->technique;

	agent_events_start(session->events, &session->shared.threads, technique);
	agent_threads_add_all(&session->shared.threads, jni);
	if (technique->kind->classes_loaded)
		technique->kind->classes_loaded(technique, jni);
}

/* Returns null, or why there is no thread that samples. A retriever that cannot be started is not missed: traces
 * are retrieved when the profile is written, too. */
static const char *start_threads(struct agent_session *session, JNIEnv *jni)
{
	const struct agent_sampler_calls calls = {
		.dump = dump, .over = over, .context = session, .number = session->number};
	const char *failed = agent_sampler_start(&session->sampler, jni, &session->shared,
						 session->technique, &calls);

	if (!failed && session->technique->kind->retrieve)
		agent_retriever_start(&session->shared.retriever, jni, retrieve, session);
	return failed;
}

static void say_start(const struct agent_session *session, const char *file)
{
	const struct agent_technique_kind *kind = session->technique->kind;
	char interval[32];

	agent_say("sampling every %s, mode %s (%s), to %s",
		  agent_time_text(session->shared.options.interval_ns, interval),
		  agent_mode_name(kind->mode), kind->description, file);
}

const char *agent_session_start(struct agent_session *session, JNIEnv *jni,
				const struct agent_options *options)
{
	static char text[AGENT_FILE_MAX + 100];
	char file[AGENT_FILE_MAX] = "";
	const struct agent_technique_kind *kind;
	const char *failed;

	begin(session, options);
	kind = agent_technique_for(options->mode, session->shared.jvmti, &failed);
	if (!kind)
		return failed;
	failed = agent_output_probe(&session->output, file);
	if (failed) {
		snprintf(text, sizeof(text), "cannot write %s: %s", file, failed);
		return text;
	}
	failed = open_roles(session, jni, kind);
	if (failed)
		return failed;
	learn(session, jni);
	failed = start_threads(session, jni);
	if (failed) {
		agent_events_stop(session->events);
		close_roles(session, jni);
		return failed;
	}
	say_start(session, file);
	return NULL;
}

/* ---- until the end ------------------------------------------------------------------ */

void agent_session_ask(struct agent_session *session, enum agent_asked asked)
{
	agent_sampler_ask(&session->sampler, asked);
}

uint64_t agent_session_number(const struct agent_session *session)
{
	return session->number;
}

uint32_t agent_session_part(const struct agent_session *session)
{
	return agent_output_part(&session->output);
}

/* Returns whether all threads of the session have ended. */
static bool stop_threads(struct agent_session *session)
{
	const uint64_t limit = agent_now() + STOP_NS;
	const bool sampler_ended = agent_sampler_stop(&session->sampler, limit);

	return agent_retriever_stop(&session->shared.retriever, limit) && sampler_ended;
}

/* No event is in progress when the last traces are retrieved, so that no thread has traces that it has not
 * handed over. */
bool agent_session_finish(struct agent_session *session, JNIEnv *jni)
{
	if (!stop_threads(session)) {
		agent_say("the sampler does not end; no profile is written");
		return false;
	}
	agent_events_stop(session->events);
	agent_parts_next(&session->parts, jni, true);
	close_roles(session, jni);
	return true;
}
