/* SPDX-License-Identifier: MIT
 *
 * Starts the agent's own threads, which the JVM knows as threads of Java.
 */
#ifndef AGENT_OWN_THREAD_H
#define AGENT_OWN_THREAD_H

#include <jvmti.h>

/* Returns null, or why the thread cannot be started. *thread is a global reference then, or null. */
const char *agent_own_thread_start(jvmtiEnv *jvmti, JNIEnv *jni, const char *name,
				   jvmtiStartFunction run, void *argument, jthread *thread);

#endif
