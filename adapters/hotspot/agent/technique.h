/* SPDX-License-Identifier: MIT
 *
 * A technique takes the samples. What all techniques have in common: an interface, which stock.c and extended.c
 * implement.
 */
#ifndef AGENT_TECHNIQUE_H
#define AGENT_TECHNIQUE_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include <incstack/profile.h>

#include "figures.h"
#include "options.h"
#include "shared.h"

/* What a tick did. */
struct agent_tick {
	uint64_t due;    /* CLOCK_MONOTONIC, ns */
	uint32_t wanted; /* samples that it should have given */
	uint32_t taken;
	enum agent_loss reason; /* why the others were not taken */
};

/* An open technique. Its own state follows. */
struct agent_technique {
	const struct agent_technique_kind *kind;
};

struct agent_technique_kind {
	enum agent_mode mode;
	const char *description; /* for the line that is printed at the start */
	bool takes_turns;        /* several threads may take ticks, also at once */

	/* Returns null if it cannot be used; then *why says why. */
	struct agent_technique *(*open)(const struct agent_technique_kind *kind,
					struct agent_shared *shared, const char **why);
	void (*close)(struct agent_technique *technique, JNIEnv *jni);
	void (*tick)(struct agent_technique *technique, JNIEnv *jni, struct agent_tick *tick);

	/* Brings the traces of all threads to the collector. May be null; then traces come there at
	 * once, and the next function is null, too. */
	void (*retrieve)(struct agent_technique *technique, JNIEnv *jni);
	/* Called on a thread that is about to end: keeps its traces for the next retrieve. Does not wait
	 * for threads that retrieve or write. */
	void (*thread_ends)(struct agent_technique *technique, JNIEnv *jni, jthread thread);

	/* Registers a class that is being prepared, and all prepared classes. May be null; then the technique needs
	 * no classes, and the other two functions are null, too. */
	void (*class_prepared)(struct agent_technique *technique, JNIEnv *jni, jclass class);
	void (*classes_loaded)(struct agent_technique *technique, JNIEnv *jni);
	/* Forgets unloaded classes. Called once a second, by a thread that takes ticks. */
	void (*sweep)(struct agent_technique *technique, JNIEnv *jni);

	/* Adds the counts since the part began, and begins the next part with what was counted last. Called
	 * neither during a retrieve nor, if the technique does not retrieve, during a tick. */
	void (*count)(struct agent_technique *technique, struct agent_figures *figures);
	void (*next_part)(struct agent_technique *technique);

	incstack_profile_source_fn *source; /* the context is the technique */
};

#endif
