/* SPDX-License-Identifier: MIT
 *
 * The smallest agent that uses the extension functions: every 10 ms it requests a trace of each
 * processor's thread; at the end it retrieves all traces and prints the innermost methods.
 *   java -agentpath:libinnermost.so Main    (a JVM that build-jvm made)
 */
#include <incstack_jvmti.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static jvmtiExtensionFunction request, retrieve, release, describe;

static void find(jvmtiEnv *jvmti)
{
	jvmtiExtensionFunctionInfo *all = NULL;
	jint count = 0;

	(*jvmti)->GetExtensionFunctions(jvmti, &count, &all);
	for (jint i = 0; i < count; i++) {
		request = strcmp(all[i].id, INCSTACK_JVMTI_REQUEST_TRACES) ? request : all[i].func;
		retrieve =
			strcmp(all[i].id, INCSTACK_JVMTI_RETRIEVE_TRACES) ? retrieve : all[i].func;
		release = strcmp(all[i].id, INCSTACK_JVMTI_RELEASE_TRACES) ? release : all[i].func;
		describe =
			strcmp(all[i].id, INCSTACK_JVMTI_DESCRIBE_METHOD) ? describe : all[i].func;
	}
}

static void JNICALL sample(jvmtiEnv *jvmti, JNIEnv *jni, void *unused)
{
	struct incstack_jvmti_request options = {.size = sizeof(options)};

	(void)jni, (void)unused;
	while (request(jvmti, (jint)0, NULL, &options, NULL) == JVMTI_ERROR_NONE)
		usleep(10000);
}

static void JNICALL on_init(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
	jmethodID make = (*jni)->GetMethodID(jni, class, "<init>", "()V");

	(void)thread;
	find(jvmti);
	if (!request || !retrieve || !release || !describe)
		fprintf(stderr, "innermost: this JVM has no incremental stack traces\n");
	else
		(*jvmti)->RunAgentThread(jvmti, (*jni)->NewObject(jni, class, make), sample, NULL,
					 10);
}

static void JNICALL on_death(jvmtiEnv *jvmti, JNIEnv *jni)
{
	struct incstack_jvmti_traces *traces = NULL;

	(void)jni;
	if (!retrieve || retrieve(jvmti, (jint)0, NULL, &traces))
		return;
	for (size_t i = 0; i < traces->count; i++)
		for (const struct incstack_trace *t = traces->threads[i].tree->traces; t;
		     t = t->next) {
			struct incstack_jvmti_method m = {.size = sizeof(m)};

			describe(jvmti, (jlong)t->top->method, (jint)t->top->bci, &m);
			printf("%s%s:%d\n", m.class_signature, m.name, (int)m.line);
		}
	release(jvmti, traces);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	const jvmtiEventCallbacks callbacks = {.VMInit = on_init, .VMDeath = on_death};
	jvmtiEnv *jvmti = NULL;

	(void)options, (void)reserved;
	(*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11);
	(*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks));
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
	return JNI_OK;
}
