/* SPDX-License-Identifier: MIT
 *
 * The extension functions of a JVM with the library inside, with the types of their
 * parameters.
 */
#ifndef AGENT_EXTENSION_H
#define AGENT_EXTENSION_H

#include <stdbool.h>

#include "incstack_jvmti.h"

struct agent_extension {
	jvmtiEnv *jvmti;
	jvmtiExtensionFunction request, retrieve, release, describe, statistics, check;
};

/* Looks for the functions. Returns whether the JVM has all of them. */
bool agent_extension_find(struct agent_extension *extension, jvmtiEnv *jvmti);

/* As incstack_jvmti.h describes them. */
jvmtiError agent_request(const struct agent_extension *extension, jint thread_count,
			 const jthread *threads, const struct incstack_jvmti_request *request,
			 struct incstack_jvmti_requested *requested);
jvmtiError agent_retrieve(const struct agent_extension *extension, jint thread_count,
			  const jthread *threads, struct incstack_jvmti_traces **traces);
jvmtiError agent_release(const struct agent_extension *extension,
			 struct incstack_jvmti_traces *traces);
jvmtiError agent_describe(const struct agent_extension *extension, jlong method, jint bci,
			  struct incstack_jvmti_method *description);
jvmtiError agent_statistics(const struct agent_extension *extension,
			    struct incstack_jvmti_statistics *statistics);
jvmtiError agent_set_check(const struct agent_extension *extension, jint on);

#endif
