/* SPDX-License-Identifier: MIT
 *
 * The parts of a session's profile.
 */
#include "parts.h"

#include "clock.h"
#include "result.h"
#include "say.h"

void agent_parts_init(struct agent_parts *parts)
{
	pthread_mutex_init(&parts->retrieving, NULL);
}

void agent_parts_begin(struct agent_parts *parts, struct agent_shared *shared,
		       struct agent_technique *technique, struct agent_sampler *sampler,
		       struct agent_output *output)
{
	parts->shared = shared;
	parts->technique = technique;
	parts->sampler = sampler;
	parts->output = output;
	parts->processor_ns = 0;
	parts->begun_ns = shared->start_ns;
}

/* ---- retrieving --------------------------------------------------------------------- */

/* Called under the lock. */
static void retrieve(struct agent_parts *parts, JNIEnv *jni)
{
	if (parts->technique->kind->retrieve)
		parts->technique->kind->retrieve(parts->technique, jni);
}

void agent_parts_retrieve(struct agent_parts *parts, JNIEnv *jni)
{
	pthread_mutex_lock(&parts->retrieving);
	retrieve(parts, jni);
	pthread_mutex_unlock(&parts->retrieving);
}

/* ---- writing ------------------------------------------------------------------------ */

static void write_part(struct agent_parts *parts, const struct incstack_profile *profile,
		       const struct agent_figures *figures)
{
	const struct agent_content content = {.profile = profile,
					      .source = parts->technique->kind->source,
					      .source_context = parts->technique,
					      .mode = parts->technique->kind->mode,
					      .counts = &figures->counts,
					      .begun_ns = parts->begun_ns};
	char name[AGENT_FILE_MAX] = "";

	if (agent_output_write(parts->output, &content, name))
		agent_say_result(profile, figures, name);
	if (parts->shared->options.stats)
		agent_say_stats(content.mode, figures);
}

/* Counts what has happened since the part began. Called while no traces are brought to the collector, or some
 * would be counted in two parts. */
static void count(struct agent_parts *parts, JNIEnv *jni, struct agent_figures *figures)
{
	uint64_t now;

	parts->technique->kind->count(parts->technique, figures);
	agent_sampler_count(parts->sampler, &figures->ticks);
	now = agent_threads_processor_time(&parts->shared->threads, jni);
	figures->processor_ns = now > parts->processor_ns ? now - parts->processor_ns : 0;
}

/* Takes the profile of the part, and its counters; those of the next part start at 0. Returns null if
 * there is no memory for the next part; then this one continues. */
static struct incstack_profile *take_part(struct agent_parts *parts, JNIEnv *jni, bool last,
					  struct agent_figures *figures)
{
	struct agent_counts counts;
	struct incstack_profile *profile;

	count(parts, jni, figures);
	profile = agent_collector_take(&parts->shared->collector, last, &counts);
	if (!profile)
		return NULL;
	agent_counts_add(&figures->counts, &counts);
	agent_sampler_next_part(parts->sampler, &figures->ticks);
	parts->technique->kind->next_part(parts->technique);
	parts->processor_ns += figures->processor_ns;
	return profile;
}

/* Writes the part that was taken. The next one begins. */
static void finish_part(struct agent_parts *parts, struct incstack_profile *profile,
			const struct agent_figures *figures)
{
	if (!profile) {
		agent_say("no new part can begin: out of memory");
		return;
	}
	write_part(parts, profile, figures);
	incstack_profile_destroy(profile);
	agent_output_next(parts->output);
	parts->begun_ns = agent_now();
}

struct reading {
	struct agent_parts *parts;
	struct agent_figures figures;
};

static int read_profile(void *context, const struct incstack_profile *profile,
			const struct agent_counts *counts)
{
	struct reading *reading = context;

	agent_counts_add(&reading->figures.counts, counts);
	write_part(reading->parts, profile, &reading->figures);
	return 0;
}

/* Retrieves what is left, and takes the part. */
static struct incstack_profile *end_part(struct agent_parts *parts, JNIEnv *jni, bool last,
					 struct agent_figures *figures)
{
	struct incstack_profile *profile;

	pthread_mutex_lock(&parts->retrieving);
	retrieve(parts, jni);
	profile = take_part(parts, jni, last, figures);
	pthread_mutex_unlock(&parts->retrieving);
	return profile;
}

void agent_parts_dump(struct agent_parts *parts, JNIEnv *jni)
{
	struct reading reading = {.parts = parts};
	struct agent_locale locale;

	agent_locale_enter(&locale);
	pthread_mutex_lock(&parts->retrieving);
	retrieve(parts, jni);
	count(parts, jni, &reading.figures);
	(void)agent_collector_read(&parts->shared->collector, read_profile, &reading);
	pthread_mutex_unlock(&parts->retrieving);
	agent_locale_leave(&locale);
}

void agent_parts_next(struct agent_parts *parts, JNIEnv *jni, bool last)
{
	struct agent_figures figures = {.processor_ns = 0};
	struct agent_locale locale;

	agent_locale_enter(&locale);
	finish_part(parts, end_part(parts, jni, last, &figures), &figures);
	agent_locale_leave(&locale);
}
