/* SPDX-License-Identifier: MIT
 *
 * A session: sampling from its start to its result.
 */
#include "session.h"

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "result.h"
#include "say.h"
#include "techniques.h"

/* How long a session waits for its threads to end. */
#define STOP_NS (10 * AGENT_NS_PER_S)

/* ---- start -------------------------------------------------------------------------- */

/* Returns the number of processors that the process may use. */
static uint32_t processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 1)
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

void agent_session_init(struct agent_session *session, jvmtiEnv *jvmti,
			void (*over)(uint64_t number, JNIEnv *jni))
{
	pthread_mutex_init(&session->retrieving, NULL);
	agent_sampler_init(&session->sampler);
	agent_retriever_init(&session->shared.retriever, jvmti, &session->shared.threads);
	session->over = over;
	session->shared.jvmti = jvmti;
}

static void set_events(struct agent_session *session, bool on)
{
	const jvmtiEvent events[] = {JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END,
				     JVMTI_EVENT_CLASS_PREPARE};
	size_t count = session->technique->kind->class_prepared ? 3 : 2;

	for (size_t i = 0; i < count; i++)
		(void)(*session->shared.jvmti)
			->SetEventNotificationMode(session->shared.jvmti,
						   on ? JVMTI_ENABLE : JVMTI_DISABLE, events[i],
						   NULL);
}

/* Learns which classes and threads exist. Their events are switched on first. Otherwise one could
 * be missed that appears in between. */
static void learn(struct agent_session *session, JNIEnv *jni)
{
	agent_listen(true);
	set_events(session, true);
	agent_threads_add_all(&session->shared.threads, jni);
	if (session->technique->kind->classes_loaded)
		session->technique->kind->classes_loaded(session->technique, jni);
}

/* Returns when no event of threads and classes is in progress. */
static void stop_events(struct agent_session *session)
{
	set_events(session, false);
	agent_listen(false);
}

static void free_session(struct agent_session *session, JNIEnv *jni)
{
	stop_events(session);
	session->technique->kind->close(session->technique, jni);
	agent_threads_close(&session->shared.threads, jni);
	agent_collector_close(&session->shared.collector);
	agent_sampler_close(&session->sampler, jni);
	agent_retriever_close(&session->shared.retriever, jni);
}

static void begin(struct agent_session *session, const struct agent_options *options)
{
	memset(&session->technique, 0,
	       sizeof(*session) - offsetof(struct agent_session, technique));
	session->shared.options = *options;
	session->number++;
	session->shared.samples = options->samples ? options->samples : processors();
	if (options->waiting && session->shared.samples < 2)
		session->shared.samples = 2; /* one that runs, and one that waits */
	session->shared.start_ns = session->part_ns = agent_now();
	agent_output_open(&session->output, &session->shared.options);
}

static void retrieve(void *context, JNIEnv *jni)
{
	struct agent_session *session = context;

	pthread_mutex_lock(&session->retrieving);
	session->technique->kind->retrieve(session->technique, jni);
	pthread_mutex_unlock(&session->retrieving);
}

/* ---- result ------------------------------------------------------------------------- */

static void write_part(struct agent_session *session, const struct incstack_profile *profile,
		       const struct agent_figures *figures)
{
	const struct agent_content content = {.profile = profile,
					      .source = session->technique->kind->source,
					      .source_context = session->technique,
					      .mode = session->technique->kind->mode,
					      .counts = &figures->counts,
					      .begun_ns = session->part_ns};
	char name[AGENT_FILE_MAX] = "";

	if (agent_output_write(&session->output, &content, name))
		agent_say_result(profile, figures, name);
	if (session->shared.options.stats)
		agent_say_stats(content.mode, figures);
}

/* Counts what has happened since the part began. Called while no traces are brought to the collector, or some
 * would be counted in two parts. */
static void count(struct agent_session *session, JNIEnv *jni, struct agent_figures *figures)
{
	uint64_t now;

	session->technique->kind->count(session->technique, figures);
	agent_sampler_count(&session->sampler, &figures->ticks);
	now = agent_threads_processor_time(&session->shared.threads, jni);
	figures->processor_ns = now > session->processor_ns ? now - session->processor_ns : 0;
}

/* Takes the profile of the part, and its counters; those of the next part start at 0. Returns null if
 * there is no memory for the next part; then this one continues. */
static struct incstack_profile *take_part(struct agent_session *session, JNIEnv *jni, bool last,
					  struct agent_figures *figures)
{
	struct agent_counts counts;
	struct incstack_profile *profile;

	count(session, jni, figures);
	profile = agent_collector_take(&session->shared.collector, last, &counts);
	if (!profile)
		return NULL;
	agent_counts_add(&figures->counts, &counts);
	agent_sampler_next_part(&session->sampler, &figures->ticks);
	session->technique->kind->next_part(session->technique);
	session->processor_ns += figures->processor_ns;
	return profile;
}

/* Writes the part that was taken. The next one begins. */
static void finish_part(struct agent_session *session, struct incstack_profile *profile,
			const struct agent_figures *figures)
{
	if (!profile) {
		agent_say("no new part can begin: out of memory");
		return;
	}
	write_part(session, profile, figures);
	incstack_profile_destroy(profile);
	agent_output_next(&session->output);
	session->part_ns = agent_now();
}

struct reading {
	struct agent_session *session;
	struct agent_figures figures;
};

static int read_profile(void *context, const struct incstack_profile *profile,
			const struct agent_counts *counts)
{
	struct reading *reading = context;

	agent_counts_add(&reading->figures.counts, counts);
	write_part(reading->session, profile, &reading->figures);
	return 0;
}

/* Retrieves what is left, and takes the part. */
static struct incstack_profile *end_part(struct agent_session *session, JNIEnv *jni, bool last,
					 struct agent_figures *figures)
{
	struct incstack_profile *profile;

	pthread_mutex_lock(&session->retrieving);
	if (session->technique->kind->retrieve)
		session->technique->kind->retrieve(session->technique, jni);
	profile = take_part(session, jni, last, figures);
	pthread_mutex_unlock(&session->retrieving);
	return profile;
}

static void read_part(struct agent_session *session, JNIEnv *jni)
{
	struct reading reading = {.session = session};

	pthread_mutex_lock(&session->retrieving);
	if (session->technique->kind->retrieve)
		session->technique->kind->retrieve(session->technique, jni);
	count(session, jni, &reading.figures);
	(void)agent_collector_read(&session->shared.collector, read_profile, &reading);
	pthread_mutex_unlock(&session->retrieving);
}

static void dump(void *context, JNIEnv *jni, bool next)
{
	struct agent_session *session = context;
	struct agent_locale locale;

	agent_locale_enter(&locale);
	if (next) {
		struct agent_figures figures = {0};
		struct incstack_profile *profile = end_part(session, jni, false, &figures);

		finish_part(session, profile, &figures);
	} else {
		read_part(session, jni);
	}
	agent_locale_leave(&locale);
}

static void over(void *context, JNIEnv *jni, uint64_t number)
{
	const struct agent_session *session = context;

	session->over(number, jni);
}

/* ---- start and end ------------------------------------------------------------------ */

static void say_start(const struct agent_session *session, const char *file)
{
	char interval[32];

	agent_say("sampling every %s, mode %s (%s), to %s",
		  agent_time_text(session->shared.options.interval_ns, interval),
		  agent_mode_name(session->technique->kind->mode),
		  session->technique->kind->description, file);
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
	if (session->technique)
		return NULL;
	agent_collector_close(&shared->collector);
	agent_threads_close(&shared->threads, jni);
	return why;
}

const char *agent_session_start(struct agent_session *session, JNIEnv *jni,
				const struct agent_options *options)
{
	static char text[AGENT_FILE_MAX + 100];
	char file[AGENT_FILE_MAX] = "";
	const struct agent_technique_kind *kind;
	const struct agent_sampler_calls calls = {
		.dump = dump, .over = over, .context = session, .number = session->number + 1};
	const char *why, *failed;

	begin(session, options);
	kind = agent_technique_for(options->mode, session->shared.jvmti, &why);
	if (!kind)
		return why;
	failed = agent_output_probe(&session->output, file);
	if (failed) {
		snprintf(text, sizeof(text), "cannot write %s: %s", file, failed);
		return text;
	}
	failed = open_roles(session, jni, kind);
	if (failed)
		return failed;
	learn(session, jni);
	failed = agent_sampler_start(&session->sampler, jni, &session->shared, session->technique,
				     &calls);
	if (failed) {
		free_session(session, jni);
		return failed;
	}
	if (session->technique->kind->retrieve)
		agent_retriever_start(&session->shared.retriever, jni, retrieve, session);
	say_start(session, file);
	return NULL;
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
	struct agent_figures figures = {0};
	struct agent_locale locale;

	if (!stop_threads(session)) {
		agent_say("the sampler does not end; no profile is written");
		return false;
	}
	stop_events(session);
	agent_locale_enter(&locale);
	finish_part(session, end_part(session, jni, true, &figures), &figures);
	agent_locale_leave(&locale);
	free_session(session, jni);
	return true;
}

void agent_session_ask(struct agent_session *session, enum agent_asked asked)
{
	agent_sampler_ask(&session->sampler, asked);
}
