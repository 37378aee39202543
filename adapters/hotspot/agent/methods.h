/* SPDX-License-Identifier: MIT
 *
 * The methods of a stock JVM, to which the agent gives numbers. A jmethodID is no longer valid when
 * its class is unloaded, and nothing announces that. So each class is registered when it is
 * prepared, with a weak reference. A method is named when it is sampled first, while its class
 * is held by a reference. After that the JVM is not asked again.
 */
#ifndef AGENT_METHODS_H
#define AGENT_METHODS_H

#include <jvmti.h>
#include <pthread.h>
#include <stdbool.h>

#include "collector.h"
#include "idmap.h"
#include "lines.h"

/* Numbers of frames that are not methods. */
enum {
	AGENT_METHOD_UNKNOWN = 1, /* a method of no registered class */
	AGENT_METHOD_UNLOADED,    /* its class was unloaded before it was named */
	AGENT_METHOD_VIRTUAL,     /* the carrier runs a virtual thread */
	AGENT_METHOD_NO_MEMORY,
	AGENT_METHOD_FIRST
};

struct agent_method {
	char *name, *file;
	struct agent_line *lines;
	uint32_t line_count;
	bool continuation; /* it runs virtual threads */
	bool idle;         /* it waits, though JVMTI says that the thread runs */
};

struct agent_methods {
	jvmtiEnv *jvmti;
	pthread_mutex_t lock;
	struct agent_idmap map; /* from jmethodID to class and, if it was sampled, method */
	jweak *classes;         /* null: unloaded, free */
	uint32_t class_count, class_room, class_sweep;
	struct agent_method *methods;
	uint32_t method_count, method_room;
};

void agent_methods_open(struct agent_methods *methods, jvmtiEnv *jvmti);
void agent_methods_close(struct agent_methods *methods, JNIEnv *jni);

/* The first registers a class that is being prepared, the second all prepared classes. */
void agent_methods_class(struct agent_methods *methods, JNIEnv *jni, jclass class);
void agent_methods_loaded(struct agent_methods *methods, JNIEnv *jni);

/* Forgets unloaded classes if there may be many. */
void agent_methods_sweep(struct agent_methods *methods, JNIEnv *jni);

/* Whether the thread with this innermost method only seems to run. */
bool agent_methods_idle(struct agent_methods *methods, JNIEnv *jni, jmethodID innermost);

/* Translates the frames of JVMTI. If the innermost one runs a virtual thread, a frame is added that
 * says so; `frames` has room for count + 1. Returns how many frames there are. */
uint32_t agent_methods_translate(struct agent_methods *methods, JNIEnv *jni,
				 const jvmtiFrameInfo *infos, uint32_t count,
				 struct agent_frame *frames);

/* An incstack_profile_source_fn; the context is the struct agent_methods. */
int agent_methods_source(void *context, const struct incstack_profile_frame *frame,
			 struct incstack_profile_source *source);

#endif
