/* SPDX-License-Identifier: MIT
 *
 * A JVM with the library inside, made of a few functions.
 */
#include "jvm_with_extension.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"

struct extension_jvm jvm;

static jvmtiError JNICALL allocate(jvmtiEnv *env, jlong size, unsigned char **memory)
{
	(void)env;
	*memory = malloc((size_t)size);
	jvm.allocated++;
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL deallocate(jvmtiEnv *env, unsigned char *memory)
{
	(void)env;
	jvm.allocated -= memory != NULL;
	free(memory);
	return JVMTI_ERROR_NONE;
}

static char *text(const char *content)
{
	unsigned char *copy = NULL;

	allocate(NULL, (jlong)strlen(content) + 1, &copy);
	return strcpy((char *)copy, content);
}

static jvmtiError JNICALL request_traces(jvmtiEnv *env, ...)
{
	va_list list;
	struct incstack_jvmti_requested *requested;

	va_start(list, env);
	ck_assert_int_eq(va_arg(list, jint), 0);
	ck_assert_ptr_null(va_arg(list, const jthread *));
	jvm.request = *va_arg(list, const struct incstack_jvmti_request *);
	requested = va_arg(list, struct incstack_jvmti_requested *);
	va_end(list);
	ck_assert_uint_eq(requested->size, sizeof(*requested));
	requested->wanted = jvm.request.n - 1; /* there are fewer threads */
	requested->traces = jvm.taken;
	return jvm.answer;
}

static jvmtiError JNICALL retrieve_traces(jvmtiEnv *env, ...)
{
	va_list list;

	va_start(list, env);
	jvm.asked = va_arg(list, jint);
	ck_assert((va_arg(list, const jthread *) != NULL) == (jvm.asked == 1));
	*va_arg(list, struct incstack_jvmti_traces **) = &jvm.traces;
	va_end(list);
	return jvm.answer;
}

static jvmtiError JNICALL release_traces(jvmtiEnv *env, ...)
{
	va_list list;

	va_start(list, env);
	ck_assert_ptr_eq(va_arg(list, struct incstack_jvmti_traces *), &jvm.traces);
	va_end(list);
	jvm.released++;
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL describe_method(jvmtiEnv *env, ...)
{
	struct incstack_jvmti_method *method;
	va_list list;
	jlong key;
	jint bci;

	va_start(list, env);
	key = va_arg(list, jlong);
	bci = va_arg(list, jint);
	method = va_arg(list, struct incstack_jvmti_method *);
	va_end(list);
	key = (jlong)INCSTACK_JVMTI_METHOD_KEY((uint64_t)key);
	if (key > 2)
		return JVMTI_ERROR_INVALID_METHODID;
	method->class_signature = text("Lp/Main;");
	method->name = text(key == 1 ? "main" : "f");
	method->signature = text("()V");
	method->source_file = key == 1 ? text("Main.java") : NULL;
	method->line = bci / 10;
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_statistics(jvmtiEnv *env, ...)
{
	va_list list;

	va_start(list, env);
	*va_arg(list, struct incstack_jvmti_statistics *) = jvm.statistics;
	va_end(list);
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL set_check(jvmtiEnv *env, ...)
{
	va_list list;

	va_start(list, env);
	jvm.check = va_arg(list, jint);
	va_end(list);
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_functions(jvmtiEnv *env, jint *count,
					jvmtiExtensionFunctionInfo **infos)
{
	const struct {
		const char *id;
		jvmtiExtensionFunction function;
	} all[] = {{INCSTACK_JVMTI_REQUEST_TRACES, request_traces},
		   {INCSTACK_JVMTI_RETRIEVE_TRACES, retrieve_traces},
		   {INCSTACK_JVMTI_RELEASE_TRACES, release_traces},
		   {INCSTACK_JVMTI_DESCRIBE_METHOD, describe_method},
		   {INCSTACK_JVMTI_GET_STATISTICS, get_statistics},
		   {INCSTACK_JVMTI_SET_CHECK, set_check}};
	unsigned char *memory = NULL;

	allocate(env, 6 * (jlong)sizeof(**infos), &memory);
	memset(memory, 0, 6 * sizeof(**infos));
	*infos = (jvmtiExtensionFunctionInfo *)memory;
	*count = jvm.functions;
	for (jint i = 0; i < *count; i++) {
		jvmtiExtensionFunctionInfo *info = &(*infos)[i];

		info->id = text(all[i].id);
		info->func = all[i].function;
		info->short_description = text("");
		allocate(env, sizeof(*info->params), &memory);
		info->params = (jvmtiParamInfo *)memory;
		info->params[0].name = text("x");
		info->param_count = 1;
	}
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_thread_info(jvmtiEnv *env, jthread thread, jvmtiThreadInfo *info)
{
	(void)env;
	if (thread == (jthread)&jvm.asked)
		return JVMTI_ERROR_INVALID_THREAD;
	info->name = text("worker");
	return JVMTI_ERROR_NONE;
}

static void JNICALL delete_local(JNIEnv *jni, jobject object)
{
	(void)jni;
	(void)object;
}

static const struct jvmtiInterface_1_ jvmti_table = {.Allocate = allocate,
						     .Deallocate = deallocate,
						     .GetExtensionFunctions = get_functions,
						     .GetThreadInfo = get_thread_info};
static const struct JNINativeInterface_ jni_table = {.DeleteLocalRef = delete_local};
jvmtiEnv extension_jvmti = &jvmti_table;
JNIEnv extension_jni = &jni_table;
