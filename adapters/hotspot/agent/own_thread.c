/* SPDX-License-Identifier: MIT
 *
 * Starts the agent's own threads.
 */
#include "own_thread.h"

/* Returns new Thread(name), as a global reference; null if there is no memory. */
static jthread make_thread(JNIEnv *jni, const char *its_name)
{
	jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
	jmethodID constructor =
		class ? (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V") : NULL;
	jstring name = constructor ? (*jni)->NewStringUTF(jni, its_name) : NULL;
	jobject thread = name ? (*jni)->NewObject(jni, class, constructor, name) : NULL;
	jthread made = thread ? (*jni)->NewGlobalRef(jni, thread) : NULL;

	if ((*jni)->ExceptionCheck(jni))
		(*jni)->ExceptionClear(jni);
	return made;
}

const char *agent_own_thread_start(jvmtiEnv *jvmti, JNIEnv *jni, const char *name,
				   jvmtiStartFunction run, void *argument, jthread *thread)
{
	*thread = make_thread(jni, name);
	if (!*thread)
		return "cannot make a thread: out of memory";
	if ((*jvmti)->RunAgentThread(jvmti, *thread, run, argument, JVMTI_THREAD_MAX_PRIORITY)) {
		(*jni)->DeleteGlobalRef(jni, *thread);
		*thread = NULL;
		return "no thread can be started";
	}
	return NULL;
}
