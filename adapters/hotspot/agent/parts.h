/* SPDX-License-Identifier: MIT
 *
 * The parts of a session's profile, one after the other: what is retrieved and counted for a part, and how a part
 * ends, is written, and gives way to the next.
 */
#ifndef AGENT_PARTS_H
#define AGENT_PARTS_H

#include <jvmti.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "output.h"
#include "sampler.h"
#include "shared.h"
#include "technique.h"

struct agent_parts {
	/* The same for all sessions. Held while traces are brought to the collector, and while a profile is
	 * written: for seconds. No thread of the program takes it. */
	pthread_mutex_t retrieving;
	struct agent_shared *shared;
	struct agent_technique *technique;
	struct agent_sampler *sampler;
	struct agent_output *output;
	uint64_t processor_ns; /* of the threads, when the part began */
	uint64_t begun_ns;     /* CLOCK_MONOTONIC */
};

/* Called once. */
void agent_parts_init(struct agent_parts *parts);

/* The first part begins. All roles stay the caller's. */
void agent_parts_begin(struct agent_parts *parts, struct agent_shared *shared,
		       struct agent_technique *technique, struct agent_sampler *sampler,
		       struct agent_output *output);

/* Retrieves the traces of all threads. The technique can retrieve. */
void agent_parts_retrieve(struct agent_parts *parts, JNIEnv *jni);

/* Writes what there is so far. The part goes on. */
void agent_parts_dump(struct agent_parts *parts, JNIEnv *jni);

/* Writes the part. The next one begins, unless this is the last. */
void agent_parts_next(struct agent_parts *parts, JNIEnv *jni, bool last);

#endif
