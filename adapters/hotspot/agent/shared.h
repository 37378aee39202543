/* SPDX-License-Identifier: MIT
 *
 * What the roles of a session use together: the technique, the sampler, and the parts of the profile.
 */
#ifndef AGENT_SHARED_H
#define AGENT_SHARED_H

#include <jvmti.h>
#include <stdint.h>

#include "collector.h"
#include "options.h"
#include "retriever.h"
#include "threads.h"

/* The roles only read the first four members, and call the functions of the others. */
struct agent_shared {
	jvmtiEnv *jvmti;
	struct agent_options options;
	uint32_t samples;  /* of each tick */
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	struct agent_threads threads;
	struct agent_collector collector;
	struct agent_retriever retriever; /* runs if the technique retrieves */
};

#endif
