/* SPDX-License-Identifier: MIT
 *
 * A JVM that can only start threads, and counts which of them the agent leaves out of its samples.
 */
#ifndef JVM_WITH_THREADS_H
#define JVM_WITH_THREADS_H

#include <jvmti.h>
#include <stdatomic.h>

struct thread_jvm {
	unsigned may_start;           /* threads of the agent */
	atomic_uint started, removed; /* removed: by agent_threads_remove, which is here, too */
	atomic_bool full;             /* no local frame can be pushed */
};

extern struct thread_jvm jvm;
extern jvmtiEnv thread_jvmti;
extern JNIEnv thread_jni;

#endif
