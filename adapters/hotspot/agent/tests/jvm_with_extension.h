/* SPDX-License-Identifier: MIT
 *
 * A JVM with the library inside, made of a few functions: it notes what it is asked, and answers what the test
 * has set.
 */
#ifndef JVM_WITH_EXTENSION_H
#define JVM_WITH_EXTENSION_H

#include "incstack_jvmti.h"

struct extension_jvm {
	int functions; /* how many of the extension functions it has */
	long allocated;
	struct incstack_jvmti_request request;
	uint64_t taken; /* traces since the JVM began */
	jvmtiError answer;
	jint check, asked;
	struct incstack_jvmti_statistics statistics;
	struct incstack_jvmti_traces traces;
	int released;
};

extern struct extension_jvm jvm;
extern jvmtiEnv extension_jvmti;
extern JNIEnv extension_jni;

#endif
