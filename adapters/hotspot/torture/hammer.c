/* SPDX-License-Identifier: MIT
 *
 * An agent that samples without a pause, for the torture of a JVM with the library inside:
 *
 *   -agentpath:libhammer.so=[full][,safepoint][,wait][,running][,nocheck][,pause=US][,lower=N][,listed][,retrieve=N]
 *
 * It requests samples of all threads in a loop, retrieves them often, names the methods, and
 * ends with one line of counters on the standard error. Without `full` traces are incremental
 * and checked.
 */
#include <jvmti.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <incstack_jvmti.h>

enum { DESCRIBE_EVERY = 97, KEYS = 1 << 16 };

static jvmtiEnv *jvmti;
static jvmtiExtensionFunction request, retrieve, release, describe, statistics, set_check;
static uint32_t flags = INCSTACK_JVMTI_WAITING;
static long pause_us, lower, retrieve_every = 200;
static int checks = 1, listed;
static atomic_int stop, running;
static atomic_ullong frames, traces, errors, described, gone, own;
static atomic_ullong keys[KEYS]; /* methods that were met */

static void fail(const char *what, jvmtiError error)
{
	if (error != JVMTI_ERROR_WRONG_PHASE && atomic_fetch_add(&errors, 1) < 10)
		fprintf(stderr, "hammer: %s failed: %d\n", what, (int)error);
}

static void describe_frame(const struct incstack_frame_object *o)
{
	struct incstack_jvmti_method m = {.size = sizeof(m)};
	jvmtiError error = describe(jvmti, (jlong)o->function, (jint)o->position, &m);
	if (error) {
		fail("DescribeMethod", error);
		return;
	}
	atomic_fetch_add(&described, 1);
	atomic_fetch_add(&gone, m.unloaded);
	if (!m.name || !m.name[0] || m.class_signature[0] != 'L')
		fail("a name", 0);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)m.class_signature);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)m.name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)m.signature);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)m.source_file);
}

static void read_tree(const struct incstack_tree *tree)
{
	uint64_t n = 0, depth = 0;
	for (const struct incstack_trace *t = tree->traces; t; t = t->next, n++)
		for (const struct incstack_frame_object *o = t->top; o; o = o->parent) {
			atomic_store(&keys[INCSTACK_JVMTI_METHOD_KEY(o->function) % KEYS],
				     o->function);
			if (++depth % DESCRIBE_EVERY == 0)
				describe_frame(o);
		}
	atomic_fetch_add(&frames, depth);
	atomic_fetch_add(&traces, n);
}

static void retrieve_some(JNIEnv *jni, jint count, const jthread *threads)
{
	struct incstack_jvmti_traces *all;
	jvmtiError error = retrieve(jvmti, count, threads, &all);
	if (error) {
		fail("RetrieveTraces", error);
		return;
	}
	for (size_t i = 0; i < all->count; i++) {
		read_tree(all->threads[i].tree);
		(*jni)->DeleteLocalRef(jni, all->threads[i].thread);
	}
	release(jvmti, all);
}

/* ---- sets of threads ---------------------------------------------------------------- */

static bool is_listed(JNIEnv *jni, jthread thread, jint count, const jthread *threads)
{
	for (jint i = 0; i < count; i++)
		if ((*jni)->IsSameObject(jni, threads[i], thread))
			return true;
	return false;
}

/* Requests and retrieves traces of every other thread, each listed twice. Some of them may have
 * ended by now. */
static void sample_listed(JNIEnv *jni, struct incstack_jvmti_request *r)
{
	struct incstack_jvmti_traces *all;
	jthread *threads = NULL;
	jint count = 0, half;
	(*jni)->PushLocalFrame(jni, 4096);
	(*jvmti)->GetAllThreads(jvmti, &count, &threads);
	half = count / 2;
	for (jint i = 0; i < half; i++)
		threads[i] = threads[half + i];
	for (int i = 0; i < 20; i++) {
		jvmtiError error = request(jvmti, 2 * half, threads, r, NULL);
		if (error)
			fail("RequestTraces of a list", error);
	}
	if (!retrieve(jvmti, 2 * half, threads, &all)) {
		for (size_t i = 0; i < all->count; i++) {
			if (!is_listed(jni, all->threads[i].thread, half, threads))
				fail("a thread that was not listed", JVMTI_ERROR_INTERNAL);
			read_tree(all->threads[i].tree);
		}
		release(jvmti, all);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)threads);
	(*jni)->PopLocalFrame(jni, NULL);
}

/* A thread that samples itself, see Scenario.tick. */
JNIEXPORT void JNICALL Java_Sampled_now(JNIEnv *jni, jclass class)
{
	static atomic_llong id;
	struct incstack_jvmti_request r = {.size = sizeof(r), .n = 1};
	struct incstack_jvmti_requested done = {.size = sizeof(done)};
	jthread self = NULL;
	(void)class;
	r.id = -atomic_fetch_add(&id, 1);
	(*jvmti)->GetCurrentThread(jvmti, &self);
	jvmtiError error = request(jvmti, (jint)1, &self, &r, &done);
	if (error)
		fail("RequestTraces of the calling thread", error);
	else if (done.wanted != 1 || done.taken != 1)
		fail("the sample of the calling thread", JVMTI_ERROR_INTERNAL);
	atomic_fetch_add(&own, 1);
	(*jni)->DeleteLocalRef(jni, self);
}

/* ---- the thread --------------------------------------------------------------------- */

static void JNICALL hammer(jvmtiEnv *env, JNIEnv *jni, void *argument)
{
	(void)env;
	(void)argument;
	for (int64_t i = 0; !atomic_load(&stop); i++) {
		struct incstack_jvmti_request r = {
			.size = sizeof(r), .id = i, .n = 64, .flags = flags};
		jvmtiError error = request(jvmti, 0, NULL, &r, NULL);
		if (error)
			fail("RequestTraces", error);
		if (listed)
			sample_listed(jni, &r);
		if (i % retrieve_every == 0)
			retrieve_some(jni, 0, NULL);
		if (pause_us) {
			const struct timespec t = {0, pause_us * 1000};
			nanosleep(&t, NULL);
		}
	}
	retrieve_some(jni, 0, NULL);
	atomic_store(&running, 0);
}

static void JNICALL thread_end(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	(void)env;
	retrieve_some(jni, 1, &thread);
}

static void find_functions(void)
{
	const struct {
		const char *id;
		jvmtiExtensionFunction *function;
	} wanted[] = {{INCSTACK_JVMTI_REQUEST_TRACES, &request},
		      {INCSTACK_JVMTI_RETRIEVE_TRACES, &retrieve},
		      {INCSTACK_JVMTI_RELEASE_TRACES, &release},
		      {INCSTACK_JVMTI_DESCRIBE_METHOD, &describe},
		      {INCSTACK_JVMTI_GET_STATISTICS, &statistics},
		      {INCSTACK_JVMTI_SET_CHECK, &set_check}};
	jvmtiExtensionFunctionInfo *infos;
	jint count;
	(*jvmti)->GetExtensionFunctions(jvmti, &count, &infos);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		for (jint k = 0; k < count; k++)
			if (!strcmp(infos[k].id, wanted[i].id))
				*wanted[i].function = infos[k].func;
}

static void expect(const char *what, jvmtiError error, jvmtiError wanted)
{
	if (error != wanted)
		fail(what, error ? error : JVMTI_ERROR_INTERNAL);
}

/* Wrong arguments are refused. */
static void check_arguments(void)
{
	struct incstack_jvmti_request r = {.size = sizeof(r), .n = 1, .flags = 1u << 30};
	struct incstack_jvmti_method m = {.size = sizeof(m)};
	struct incstack_jvmti_traces *all;
	const jthread none[] = {NULL};
	expect("no request", request(jvmti, 0, NULL, NULL, NULL), JVMTI_ERROR_NULL_POINTER);
	expect("flags", request(jvmti, 0, NULL, &r, NULL), JVMTI_ERROR_ILLEGAL_ARGUMENT);
	r.flags = 0;
	expect("count", request(jvmti, -1, NULL, &r, NULL), JVMTI_ERROR_ILLEGAL_ARGUMENT);
	expect("no threads", request(jvmti, 1, NULL, &r, NULL), JVMTI_ERROR_ILLEGAL_ARGUMENT);
	expect("no thread", request(jvmti, 1, none, &r, NULL), JVMTI_ERROR_INVALID_THREAD);
	r.size = 4;
	expect("size", request(jvmti, 0, NULL, &r, NULL), JVMTI_ERROR_ILLEGAL_ARGUMENT);
	expect("no traces", retrieve(jvmti, 0, NULL, NULL), JVMTI_ERROR_NULL_POINTER);
	expect("retrieve", retrieve(jvmti, 1, none, &all), JVMTI_ERROR_INVALID_THREAD);
	expect("release", release(jvmti, NULL), JVMTI_ERROR_NONE);
	expect("key 0", describe(jvmti, (jlong)0, 0, &m), JVMTI_ERROR_INVALID_METHODID);
	expect("key", describe(jvmti, (jlong)1 << 54, 0, &m), JVMTI_ERROR_INVALID_METHODID);
	expect("no name", describe(jvmti, (jlong)1, 0, NULL), JVMTI_ERROR_NULL_POINTER);
	expect("statistics", statistics(jvmti, NULL), JVMTI_ERROR_NULL_POINTER);
	expect("check", set_check(jvmti, 2), JVMTI_ERROR_ILLEGAL_ARGUMENT);
}

static void JNICALL vm_init(jvmtiEnv *env, JNIEnv *jni, jthread current)
{
	(void)env;
	(void)current;
	find_functions();
	if (!request || !set_check) {
		fprintf(stderr, "hammer: this JVM does not have the library inside\n");
		exit(3);
	}
	check_arguments();
	jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
	jmethodID init = (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V");
	jthread thread = (*jni)->NewObject(jni, class, init, (*jni)->NewStringUTF(jni, "hammer"));
	set_check(jvmti, (jint)checks);
	atomic_store(&running, 1);
	(*jvmti)->RunAgentThread(jvmti, thread, hammer, NULL, JVMTI_THREAD_NORM_PRIORITY);
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + (int)lower);
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_THREAD_END, NULL);
}

/* Names the methods once more: many of their classes are gone by now. */
static void describe_again(void)
{
	for (size_t i = 0; i < KEYS; i++) {
		const struct incstack_frame_object o = {.function = keys[i], .position = -1};
		if (o.function)
			describe_frame(&o);
	}
}

static void JNICALL vm_death(jvmtiEnv *env, JNIEnv *jni)
{
	(void)env;
	(void)jni;
	atomic_store(&stop, 1);
	while (atomic_load(&running)) {
		const struct timespec t = {0, 1000000};
		nanosleep(&t, NULL);
	}
	describe_again();
	struct incstack_jvmti_statistics s = {.size = sizeof(s)};
	jvmtiError error = statistics(jvmti, &s);
	if (error)
		fail("GetStatistics", error);
	fprintf(stderr,
		"hammer: requests=%llu wanted=%llu lost_closed=%llu traces=%llu retrieved=%llu "
		"crosschecked=%llu "
		"mismatches=%llu "
		"skipped=%llu returns=%llu stale=%llu truncated=%llu refused=%llu ended=%llu "
		"empty=%llu frames=%llu walked=%llu methods=%llu described=%llu gone=%llu "
		"own=%llu errors=%llu\n",
		(unsigned long long)s.requests, (unsigned long long)s.wanted,
		(unsigned long long)s.lost_closed, (unsigned long long)s.traces,
		(unsigned long long)traces, (unsigned long long)s.crosschecked,
		(unsigned long long)s.mismatches, (unsigned long long)s.skipped,
		(unsigned long long)s.returns, (unsigned long long)s.stale,
		(unsigned long long)s.truncated, (unsigned long long)s.lost_refused,
		(unsigned long long)s.lost_ended, (unsigned long long)s.empty,
		(unsigned long long)frames, (unsigned long long)s.walked,
		(unsigned long long)s.methods, (unsigned long long)described,
		(unsigned long long)gone, (unsigned long long)own, (unsigned long long)errors);
}

static int parse(const char *options)
{
	char copy[200] = "", *rest = NULL;
	snprintf(copy, sizeof(copy), "%s", options ? options : "");
	for (char *o = strtok_r(copy, ",", &rest); o; o = strtok_r(NULL, ",", &rest)) {
		if (!strcmp(o, "full"))
			flags |= INCSTACK_JVMTI_FULL_WALK;
		else if (!strcmp(o, "safepoint"))
			flags |= INCSTACK_JVMTI_FULL_SAFEPOINT;
		else if (!strcmp(o, "wait"))
			flags |= INCSTACK_JVMTI_WAIT;
		else if (!strcmp(o, "running"))
			flags &= ~(uint32_t)INCSTACK_JVMTI_WAITING;
		else if (!strcmp(o, "listed"))
			listed = 1;
		else if (!strcmp(o, "nocheck"))
			checks = 0;
		else if (sscanf(o, "pause=%ld", &pause_us) != 1 &&
			 sscanf(o, "lower=%ld", &lower) != 1 &&
			 (sscanf(o, "retrieve=%ld", &retrieve_every) != 1 || retrieve_every < 1))
			return -1;
	}
	return 0;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	(void)reserved;
	const jvmtiEventCallbacks callbacks = {
		.VMInit = vm_init, .VMDeath = vm_death, .ThreadEnd = thread_end};
	if (parse(options)) {
		fprintf(stderr, "hammer: unknown option in `%s`\n", options);
		return JNI_ERR;
	}
	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK)
		return JNI_ERR;
	(*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks));
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
	return JNI_OK;
}
