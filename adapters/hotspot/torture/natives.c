/* SPDX-License-Identifier: MIT
 *
 * The native methods of Natives, Debugged and Redefined, loaded by the Java programs. The last
 * two need it as an agent, too: a debugger's capabilities can be had only before the JVM runs.
 */
#include <jvmti.h>
#include <stdlib.h>
#include <string.h>

static jvmtiEnv *jvmti;
static jboolean can_pop, can_force, can_redefine;

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	(void)options;
	(void)reserved;
	jvmtiCapabilities c = {0}, possible = {0};
	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK)
		return JNI_ERR;
	(*jvmti)->GetPotentialCapabilities(jvmti, &possible);
	c.can_suspend = possible.can_suspend;
	c.can_pop_frame = possible.can_pop_frame;
	c.can_force_early_return = possible.can_force_early_return;
	c.can_redefine_classes = possible.can_redefine_classes;
	(*jvmti)->AddCapabilities(jvmti, &c);
	(*jvmti)->GetCapabilities(jvmti, &c);
	can_pop = c.can_pop_frame && c.can_suspend;
	can_force = c.can_force_early_return && c.can_suspend;
	can_redefine = c.can_redefine_classes;
	return JNI_OK;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
	(void)vm;
	(void)reserved;
	return JNI_VERSION_10;
}

static jint call_back(JNIEnv *env, const char *name, jint depth)
{
	jclass class = (*env)->FindClass(env, "Natives");
	jmethodID back = class ? (*env)->GetStaticMethodID(env, class, name, "(I)I") : NULL;
	jint r = back ? (*env)->CallStaticIntMethod(env, class, back, depth) : -1;
	(*env)->DeleteLocalRef(env, class);
	return r;
}

JNIEXPORT jint JNICALL Java_Natives_call(JNIEnv *env, jclass class, jint depth)
{
	(void)class;
	return call_back(env, "back", depth);
}

JNIEXPORT jint JNICALL Java_Natives_callLocked(JNIEnv *env, jclass class, jint depth)
{
	(void)class;
	return call_back(env, "back", depth);
}

JNIEXPORT jint JNICALL Java_Natives_callVirtual(JNIEnv *env, jobject this, jint depth)
{
	(void)this;
	return call_back(env, "back", depth);
}

JNIEXPORT jint JNICALL Java_Natives_callCatching(JNIEnv *env, jclass class, jint depth)
{
	(void)class;
	call_back(env, "thrower", depth);
	if (!(*env)->ExceptionCheck(env))
		return 0;
	(*env)->ExceptionClear(env);
	return 1;
}

JNIEXPORT jint JNICALL Java_Natives_nothing(JNIEnv *env, jclass class, jint x)
{
	(void)env;
	(void)class;
	return x;
}

JNIEXPORT jint JNICALL Java_Natives_nothingLocked(JNIEnv *env, jclass class, jint x)
{
	(void)env;
	(void)class;
	return x;
}

/* Whether the two youngest frames of the thread are Java methods named so; null: any. */
static jboolean on_top(jthread thread, const char *name, const char *caller)
{
	jvmtiFrameInfo frames[2];
	jint count = 0;
	if ((*jvmti)->GetStackTrace(jvmti, thread, 0, 2, frames, &count) || count < 2)
		return JNI_FALSE;
	jboolean is_so = JNI_TRUE;
	for (int i = 0; i < 2; i++) {
		const char *wanted = i ? caller : name;
		char *found = NULL;
		if ((*jvmti)->GetMethodName(jvmti, frames[i].method, &found, NULL, NULL))
			return JNI_FALSE;
		is_so = is_so && !strcmp(found, wanted);
		(*jvmti)->Deallocate(jvmti, (unsigned char *)found);
	}
	return is_so;
}

/* Popping `victim` or `deep` calls them again, with the same result. */
JNIEXPORT jboolean JNICALL Java_Debugged_popFrame(JNIEnv *env, jclass class, jthread thread)
{
	(void)env;
	(void)class;
	if (!can_pop || (*jvmti)->SuspendThread(jvmti, thread))
		return JNI_FALSE;
	jboolean done = on_top(thread, "victim", "deep") && !(*jvmti)->PopFrame(jvmti, thread);
	(*jvmti)->ResumeThread(jvmti, thread);
	return done;
}

JNIEXPORT jboolean JNICALL Java_Debugged_forceReturn(JNIEnv *env, jclass class, jthread thread)
{
	(void)env;
	(void)class;
	if (!can_force || (*jvmti)->SuspendThread(jvmti, thread))
		return JNI_FALSE;
	jboolean done = on_top(thread, "victim", "deep") &&
			!(*jvmti)->ForceEarlyReturnInt(jvmti, thread, 7);
	(*jvmti)->ResumeThread(jvmti, thread);
	return done;
}

/* Replaces the class by another version of it. Returns whether it was done. */
JNIEXPORT jboolean JNICALL Java_Redefined_redefine(JNIEnv *env, jclass class, jclass old,
						   jbyteArray code)
{
	(void)class;
	jbyte *bytes = (*env)->GetByteArrayElements(env, code, NULL);
	const jvmtiClassDefinition definition = {old, (*env)->GetArrayLength(env, code),
						 (const unsigned char *)bytes};
	jboolean done = can_redefine && bytes && !(*jvmti)->RedefineClasses(jvmti, 1, &definition);
	if (bytes)
		(*env)->ReleaseByteArrayElements(env, code, bytes, JNI_ABORT);
	return done;
}
