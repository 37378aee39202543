/* SPDX-License-Identifier: MIT
 *
 * A JVM that can only start threads.
 */
#include "jvm_with_threads.h"

#include <pthread.h>
#include <stdlib.h>

#include "run_suite.h"
#include "threads.h"

struct thread_jvm jvm;

struct start {
	jvmtiEnv *jvmti;
	jvmtiStartFunction function;
	void *argument;
};

static void *run_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	start.function(start.jvmti, &thread_jni, start.argument);
	return NULL;
}

static jvmtiError JNICALL run_agent_thread(jvmtiEnv *jvmti, jthread thread,
					   jvmtiStartFunction function, const void *argument,
					   jint priority)
{
	struct start *start = malloc(sizeof(*start));
	pthread_t made;

	(void)thread, (void)priority;
	if (atomic_fetch_add(&jvm.started, 1) >= jvm.may_start) {
		free(start);
		return JVMTI_ERROR_OUT_OF_MEMORY;
	}
	*start = (struct start){jvmti, function, (void *)(uintptr_t)argument};
	ck_assert_int_eq(pthread_create(&made, NULL, run_thread, start), 0);
	pthread_detach(made);
	return JVMTI_ERROR_NONE;
}

static jclass JNICALL find_class(JNIEnv *env, const char *name)
{
	(void)env;
	return (jclass)(uintptr_t)name;
}

static jmethodID JNICALL get_method(JNIEnv *env, jclass class, const char *name,
				    const char *signature)
{
	(void)env, (void)class, (void)signature;
	return (jmethodID)(uintptr_t)name;
}

static jstring JNICALL new_string(JNIEnv *env, const char *content)
{
	(void)env;
	return (jstring)(uintptr_t)content;
}

static jobject JNICALL new_object(JNIEnv *env, jclass class, jmethodID constructor, ...)
{
	(void)env, (void)constructor;
	return class;
}

static jobject JNICALL keep(JNIEnv *env, jobject object)
{
	(void)env;
	return object;
}

static void JNICALL drop(JNIEnv *env, jobject object)
{
	(void)env, (void)object;
}

static jboolean JNICALL no_exception(JNIEnv *env)
{
	(void)env;
	return JNI_FALSE;
}

/* As a JVM whose heap is full, if the test has said so. */
static jint JNICALL push_frame(JNIEnv *env, jint capacity)
{
	(void)env, (void)capacity;
	return atomic_load(&jvm.full) ? JNI_ERR : JNI_OK;
}

static jobject JNICALL pop_frame(JNIEnv *env, jobject result)
{
	(void)env;
	return result;
}

static void JNICALL clear_exception(JNIEnv *env)
{
	(void)env;
}

static const struct JNINativeInterface_ jni_table = {.FindClass = find_class,
						     .GetMethodID = get_method,
						     .NewStringUTF = new_string,
						     .NewObject = new_object,
						     .NewGlobalRef = keep,
						     .DeleteGlobalRef = drop,
						     .ExceptionCheck = no_exception,
						     .ExceptionClear = clear_exception,
						     .PushLocalFrame = push_frame,
						     .PopLocalFrame = pop_frame};
JNIEnv thread_jni = &jni_table;
static const struct jvmtiInterface_1_ jvmti_table = {.RunAgentThread = run_agent_thread};
jvmtiEnv thread_jvmti = &jvmti_table;

void agent_threads_remove(struct agent_threads *threads, JNIEnv *jni, jthread thread)
{
	(void)threads, (void)jni, (void)thread;
	atomic_fetch_add(&jvm.removed, 1);
}
