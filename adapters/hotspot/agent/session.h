/* SPDX-License-Identifier: MIT
 *
 * A session: sampling from its start to its result. A technique takes the samples.
 */
#ifndef AGENT_SESSION_H
#define AGENT_SESSION_H

#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backlog.h"
#include "collector.h"
#include "extension.h"
#include "figures.h"
#include "grid.h"
#include "handover.h"
#include "methods.h"
#include "options.h"
#include "output.h"
#include "retriever.h"
#include "threads.h"
#include "ticker.h"

struct agent_session;

/* What a tick did. */
struct agent_tick {
	uint64_t due;    /* CLOCK_MONOTONIC, ns */
	uint32_t wanted; /* samples that it should have given */
	uint32_t taken;
	enum agent_loss reason; /* why the others were not taken */
};

struct agent_technique {
	enum agent_mode mode;
	const char *description; /* for the line that is printed at the start */
	bool takes_turns;        /* several threads may take ticks, also at once */
	/* Returns null, or why it cannot be used. */
	const char *(*start)(struct agent_session *session);
	void (*tick)(struct agent_session *session, JNIEnv *jni, struct agent_tick *tick);
	/* Brings the traces of all threads to the collector. May be null; then traces come there at
	 * once, and the next function is null, too. */
	void (*retrieve)(struct agent_session *session, JNIEnv *jni);
	/* Called on a thread that is about to end: keeps its traces for the next retrieve. Does not wait
	 * for threads that retrieve or write. */
	void (*thread_ends)(struct agent_session *session, JNIEnv *jni, jthread thread);
	/* Adds the counts since the part began. */
	void (*count)(struct agent_session *session, struct agent_figures *figures);
	incstack_profile_source_fn *source; /* the context is the session */
};

/* One of the sampler's threads; they take turns. The first of them leads: it also does what other
 * threads ask for. */
struct agent_sampler {
	struct agent_session *session;
	jthread thread; /* global */
	struct agent_ticker ticker;
	uint64_t turn; /* the next time of the grid that is this thread's */
};

/* What the leader is asked to do between two ticks. */
enum agent_asked { AGENT_ASKED_NOTHING = 0, AGENT_ASKED_DUMP, AGENT_ASKED_NEXT };

struct agent_session {
	/* The same for all sessions, which follow one another. */
	JavaVM *vm;
	jvmtiEnv *jvmti;
	uint64_t number;
	pthread_mutex_t lock; /* of `stopping` to `turns`, and of `ticks` and `findings` */
	pthread_cond_t changed;
	/* Held while traces are brought to the collector, and while a profile is written: for seconds.
	 * No thread of the program takes it. */
	pthread_mutex_t retrieving;
	struct agent_retriever retriever; /* runs if the technique retrieves */

	struct agent_options options; /* the first of those that a session begins with */
	const struct agent_technique *technique;
	struct agent_extension extension;
	struct agent_output output;
	struct agent_collector collector;
	struct agent_methods methods; /* used if the traces are JVMTI's */
	struct agent_threads threads;
	struct agent_handover handover; /* these are used if the technique retrieves */
	struct agent_backlog backlog;
	_Atomic uint32_t usual; /* how many samples the last request wanted */

	/* The sampler's threads. */
	bool stopping, ended;
	enum agent_asked asked;
	unsigned followers; /* sampler's threads that run, without the leader */
	unsigned turns;     /* how many threads take turns; 0 until all are started */
	struct agent_sampler samplers[AGENT_TICKER_THREADS_MOST];
	struct agent_grid grid;

	/* If the technique does not retrieve, only the leader uses it while it runs. */
	struct agent_ticks ticks;
	struct agent_findings findings;
	/* Only the leader uses these while it runs. */
	uint32_t samples; /* of each tick */
	jvmtiFrameInfo *infos;
	struct agent_frame *frames;
	struct agent_thread **chosen;

	/* For the techniques of the extension. */
	struct incstack_jvmti_statistics before, now; /* when the part began, and at `count` */
	char *name, *file;                            /* what `source` found last */

	uint64_t processor_ns;      /* of the threads, when the part began */
	uint64_t start_ns, part_ns; /* CLOCK_MONOTONIC; of the part */
};

/* Returns the technique for a mode in this JVM, or null if there is none; then *why says what to
 * do. */
const struct agent_technique *agent_technique_for(enum agent_mode mode, bool extended,
						  const char **why);

/* Called once, before the first session. */
void agent_session_init(struct agent_session *session, JavaVM *vm, jvmtiEnv *jvmti);

/* Starts sampling. Returns null, or why it cannot start. */
const char *agent_session_start(struct agent_session *session, JNIEnv *jni,
				const struct agent_options *options);

/* Ends sampling, writes the result and frees everything. Returns false if the sampler's thread
 * does not end: then the session can never be used again. */
bool agent_session_finish(struct agent_session *session, JNIEnv *jni);

/* Called on the leader. Writes what there is so far. Then, if `next`, begins the next
 * part. */
void agent_session_dump(struct agent_session *session, JNIEnv *jni, bool next);

/* The sampler's threads. Stop returns false if they do not end until `limit` (CLOCK_MONOTONIC, ns); ask returns when the leader
 * has done it, or has ended. */
const char *agent_sampler_start(struct agent_session *session, JNIEnv *jni);
bool agent_sampler_stop(struct agent_session *session, uint64_t limit);
void agent_sampler_ask(struct agent_session *session, enum agent_asked asked);

/* In agent.c. The leader calls the first when the duration of session `number` has
 * passed; it does not use the session any more. The second switches the events of threads and
 * classes on and off; off, it returns when none of them is in progress. */
void agent_duration_over(uint64_t number, JNIEnv *jni);
void agent_listen(bool on);

extern const struct agent_technique agent_technique_jvmti, agent_technique_partial;
extern const struct agent_technique agent_technique_extended_partial,
	agent_technique_extended_incremental, agent_technique_extended_partial_incremental;

#endif
