/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * The JVMTI extension functions: they check their arguments and enter the VM. What they do is
 * in incStackRequest.cpp, incStackRetrieve.cpp and incStackMethods.cpp.
 */
#include "precompiled.hpp"
#include "incstack/incStack.hpp"
#include "incstack/incStackMethods.hpp"
#include "incstack/incStackRequest.hpp"
#include "prims/jvmtiEnvBase.hpp"
#include "runtime/interfaceSupport.inline.hpp"

/* Returns the calling thread, or null with the reason in *error. */
static JavaThread *caller(jvmtiError *error)
{
	Thread *thread = Thread::current_or_null();
	*error = JVMTI_ERROR_NONE;
	if (JvmtiEnvBase::get_phase() != JVMTI_PHASE_LIVE)
		*error = JVMTI_ERROR_WRONG_PHASE;
	else if (thread == NULL || !thread->is_Java_thread())
		*error = JVMTI_ERROR_UNATTACHED_THREAD;
	else if (!IncStackFrames::open())
		*error = JVMTI_ERROR_OUT_OF_MEMORY;
	return *error == JVMTI_ERROR_NONE ? thread->as_Java_thread() : NULL;
}

static bool is_set(jint count, const jthread *threads)
{
	return count == 0 || (count > 0 && threads != NULL);
}

static const uint32_t RequestFlags = INCSTACK_JVMTI_WAITING | INCSTACK_JVMTI_FULL_SAFEPOINT |
				     INCSTACK_JVMTI_FULL_WALK | INCSTACK_JVMTI_WAIT;

/* Copies as much of a structure as both sides know. Its first field is its size. */
static void copy_out(void *to, const void *from, size_t known)
{
	size_t size = *(size_t *)to;
	memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size),
	       MIN2(size, known) - sizeof(size));
}

static jvmtiError JNICALL RequestTraces(jvmtiEnv *env, ...)
{
	va_list ap;
	va_start(ap, env);
	jint count = va_arg(ap, jint);
	const jthread *threads = va_arg(ap, const jthread *);
	const struct incstack_jvmti_request *request =
		va_arg(ap, const struct incstack_jvmti_request *);
	struct incstack_jvmti_requested *requested = va_arg(ap, struct incstack_jvmti_requested *);
	va_end(ap);
	jvmtiError error;
	JavaThread *current = caller(&error);
	if (current == NULL)
		return error;
	if (request == NULL)
		return JVMTI_ERROR_NULL_POINTER;
	if (!is_set(count, threads) || request->size < sizeof(*request) ||
	    request->flags & ~RequestFlags ||
	    (requested != NULL && requested->size < sizeof(size_t)))
		return JVMTI_ERROR_ILLEGAL_ARGUMENT;
	struct incstack_jvmti_requested result = {};
	ThreadInVMfromNative in_vm(current);
	IncStackThreads set(current, count, threads);
	if (set.error() != JVMTI_ERROR_NONE)
		return set.error();
	error = IncStackRequests::start(current, set, request, &result);
	if (error == JVMTI_ERROR_NONE && requested != NULL)
		copy_out(requested, &result, sizeof(result));
	return error;
}

static jvmtiError JNICALL RetrieveTraces(jvmtiEnv *env, ...)
{
	va_list ap;
	va_start(ap, env);
	jint count = va_arg(ap, jint);
	const jthread *threads = va_arg(ap, const jthread *);
	struct incstack_jvmti_traces **traces = va_arg(ap, struct incstack_jvmti_traces **);
	va_end(ap);
	jvmtiError error;
	JavaThread *current = caller(&error);
	if (current == NULL)
		return error;
	if (traces == NULL)
		return JVMTI_ERROR_NULL_POINTER;
	if (!is_set(count, threads))
		return JVMTI_ERROR_ILLEGAL_ARGUMENT;
	ThreadInVMfromNative in_vm(current);
	IncStackThreads set(current, count, threads);
	if (set.error() != JVMTI_ERROR_NONE)
		return set.error();
	return IncStackRequests::retrieve(current, set, traces);
}

static jvmtiError JNICALL ReleaseTraces(jvmtiEnv *env, ...)
{
	va_list ap;
	va_start(ap, env);
	struct incstack_jvmti_traces *traces = va_arg(ap, struct incstack_jvmti_traces *);
	va_end(ap);
	return IncStackRequests::release(traces);
}

static jvmtiError JNICALL DescribeMethod(jvmtiEnv *env, ...)
{
	va_list ap;
	va_start(ap, env);
	jlong method = va_arg(ap, jlong);
	jint bci = va_arg(ap, jint);
	struct incstack_jvmti_method *description = va_arg(ap, struct incstack_jvmti_method *);
	va_end(ap);
	jvmtiError error;
	JavaThread *current = caller(&error);
	if (current == NULL)
		return error;
	if (description == NULL)
		return JVMTI_ERROR_NULL_POINTER;
	if (description->size < sizeof(*description))
		return JVMTI_ERROR_ILLEGAL_ARGUMENT;
	ThreadInVMfromNative in_vm(current);
	return IncStackMethods::describe(JvmtiEnv::JvmtiEnv_from_jvmti_env(env),
					 INCSTACK_JVMTI_METHOD_KEY((uint64_t)method), bci,
					 description);
}

static jvmtiError JNICALL GetStatistics(jvmtiEnv *env, ...)
{
	va_list ap;
	va_start(ap, env);
	struct incstack_jvmti_statistics *statistics =
		va_arg(ap, struct incstack_jvmti_statistics *);
	va_end(ap);
	jvmtiError error;
	JavaThread *current = caller(&error);
	if (current == NULL)
		return error;
	if (statistics == NULL)
		return JVMTI_ERROR_NULL_POINTER;
	if (statistics->size < sizeof(size_t))
		return JVMTI_ERROR_ILLEGAL_ARGUMENT;
	struct incstack_jvmti_statistics result = {};
	ThreadInVMfromNative in_vm(current);
	IncStackRequests::statistics(current, &result);
	copy_out(statistics, &result, sizeof(result));
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL SetCheck(jvmtiEnv *env, ...)
{
	va_list ap;
	va_start(ap, env);
	jint on = va_arg(ap, jint);
	va_end(ap);
	if (on != 0 && on != 1)
		return JVMTI_ERROR_ILLEGAL_ARGUMENT;
	IncStackRequests::set_check(on == 1);
	return JVMTI_ERROR_NONE;
}

/* ---- registration --------------------------------------------------------------------------- */

#define PARAM(name, kind, type) \
	{ \
		(char *)name, JVMTI_KIND_##kind, JVMTI_TYPE_##type, JNI_FALSE \
	}
#define PARAM_OR_NULL(name, kind, type) \
	{ \
		(char *)name, JVMTI_KIND_##kind, JVMTI_TYPE_##type, JNI_TRUE \
	}

static jvmtiParamInfo RequestParams[] = {
	PARAM("thread_count", IN, JINT), PARAM_OR_NULL("threads", IN_BUF, JTHREAD),
	PARAM("request", IN_PTR, CVOID), PARAM_OR_NULL("requested", OUT, CVOID)};
static jvmtiParamInfo RetrieveParams[] = {PARAM("thread_count", IN, JINT),
					  PARAM_OR_NULL("threads", IN_BUF, JTHREAD),
					  PARAM("traces", OUT, CVOID)};
static jvmtiParamInfo ReleaseParams[] = {PARAM_OR_NULL("traces", IN_PTR, CVOID)};
static jvmtiParamInfo DescribeParams[] = {PARAM("method", IN, JLONG), PARAM("bci", IN, JINT),
					  PARAM("description", OUT, CVOID)};
static jvmtiParamInfo StatisticsParams[] = {PARAM("statistics", OUT, CVOID)};
static jvmtiParamInfo CheckParams[] = {PARAM("on", IN, JINT)};

#define FUNCTION(function, id, text, params) \
	{ \
		function, (char *)id, (char *)text, sizeof(params) / sizeof(params[0]), params, 0, \
			NULL \
	}

static jvmtiExtensionFunctionInfo Functions[] = {
	FUNCTION(RequestTraces, INCSTACK_JVMTI_REQUEST_TRACES, "Requests samples of threads",
		 RequestParams),
	FUNCTION(RetrieveTraces, INCSTACK_JVMTI_RETRIEVE_TRACES, "Retrieves the traces of threads",
		 RetrieveParams),
	FUNCTION(ReleaseTraces, INCSTACK_JVMTI_RELEASE_TRACES, "Frees retrieved traces",
		 ReleaseParams),
	FUNCTION(DescribeMethod, INCSTACK_JVMTI_DESCRIBE_METHOD, "Names the method of a key",
		 DescribeParams),
	FUNCTION(GetStatistics, INCSTACK_JVMTI_GET_STATISTICS, "Counts samples and returns",
		 StatisticsParams),
	FUNCTION(SetCheck, INCSTACK_JVMTI_SET_CHECK, "Compares traces with full walks",
		 CheckParams),
};

void IncStack::register_functions(GrowableArray<jvmtiExtensionFunctionInfo *> *functions)
{
	for (size_t i = 0; i < sizeof(Functions) / sizeof(Functions[0]); i++)
		functions->append(&Functions[i]);
}
