/* SPDX-License-Identifier: MIT
 * A small agent: requests traces every 10 ms, and prints the innermost methods of each
 * thread when it ends. */
#include <incstack_jvmti.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static jvmtiExtensionFunction request, retrieve, release, describe;

static void JNICALL sample(jvmtiEnv *jvmti, JNIEnv *jni, void *unused)
{
	struct incstack_jvmti_request options = {.size = sizeof(options)};
	(void)jni, (void)unused;
	while (!request(jvmti, (jint)0, NULL, &options, NULL))
		usleep(10000);
}

static void JNICALL on_init(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	jclass class = (*jni)->GetObjectClass(jni, thread);
	jmethodID make = (*jni)->GetMethodID(jni, class, "<init>", "()V");
	(*jvmti)->RunAgentThread(jvmti, (*jni)->NewObject(jni, class, make), sample, NULL, 10);
}

static void print_innermost(jvmtiEnv *jvmti, const struct incstack_trace *trace)
{
	struct incstack_jvmti_method m = {.size = sizeof(m)};
	if (!describe(jvmti, (jlong)trace->top->function, (jint)trace->top->position, &m))
		printf("%s%s:%d\n", m.class_signature, m.name, (int)m.line);
}

static void JNICALL on_end(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	struct incstack_jvmti_traces *all = NULL;
	(void)jni;
	if (retrieve(jvmti, (jint)1, &thread, &all))
		return;
	for (size_t i = 0; i < all->count; i++)
		for (const struct incstack_trace *t = all->threads[i].tree->traces; t; t = t->next)
			print_innermost(jvmti, t);
	release(jvmti, all);
}

static jvmtiExtensionFunction find(jvmtiEnv *jvmti, const char *id)
{
	jvmtiExtensionFunctionInfo *all = NULL;
	jint i = 0, count = 0;
	(*jvmti)->GetExtensionFunctions(jvmti, &count, &all);
	while (i < count && strcmp(all[i].id, id) != 0)
		i++;
	return i < count ? all[i].func : NULL;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	const jvmtiEventCallbacks callbacks = {.VMInit = on_init, .ThreadEnd = on_end};
	jvmtiEnv *jvmti = NULL;
	(void)options, (void)reserved;
	(*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11);
	request = find(jvmti, INCSTACK_JVMTI_REQUEST_TRACES);
	retrieve = find(jvmti, INCSTACK_JVMTI_RETRIEVE_TRACES);
	release = find(jvmti, INCSTACK_JVMTI_RELEASE_TRACES);
	describe = find(jvmti, INCSTACK_JVMTI_DESCRIBE_METHOD);
	if (!request)
		fprintf(stderr, "innermost: this JVM has no incremental stack traces\n");
	else
		(*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks));
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_THREAD_END, NULL);
	return JNI_OK;
}
