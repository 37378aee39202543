/* SPDX-License-Identifier: MIT
 *
 * A session: sampling from its start to its result. It opens the roles, passes each one what it needs, starts the
 * threads, and ends all of them.
 */
#ifndef AGENT_SESSION_H
#define AGENT_SESSION_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include "events.h"
#include "options.h"
#include "output.h"
#include "parts.h"
#include "sampler.h"
#include "shared.h"
#include "technique.h"

/* Sessions follow one another in the same struct. */
struct agent_session {
	uint64_t number; /* from 1 */
	void (*over)(uint64_t number, JNIEnv *jni);
	struct agent_events *events;
	struct agent_shared shared;
	struct agent_technique *technique;
	struct agent_sampler sampler;
	struct agent_output output;
	struct agent_parts parts;
};

/* Called once, before the first session. The events stay the caller's. A thread of the sampler calls `over` when
 * the duration of session `number` has passed. By then, another thread may have ended this session, and may even
 * have started the next. */
void agent_session_init(struct agent_session *session, jvmtiEnv *jvmti, struct agent_events *events,
			void (*over)(uint64_t number, JNIEnv *jni));

/* Starts sampling. Returns null, or why it cannot start. */
const char *agent_session_start(struct agent_session *session, JNIEnv *jni,
				const struct agent_options *options);

/* Has a part written, and returns when that is done. */
void agent_session_ask(struct agent_session *session, enum agent_asked asked);

/* The number of the session, and of its current part. */
uint64_t agent_session_number(const struct agent_session *session);
uint32_t agent_session_part(const struct agent_session *session);

/* Ends sampling, writes the result and frees everything. Returns false if the sampler's thread
 * does not end: then the session can never be used again. */
bool agent_session_finish(struct agent_session *session, JNIEnv *jni);

#endif
