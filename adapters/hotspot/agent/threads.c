/* SPDX-License-Identifier: MIT
 *
 * The platform threads of the JVM that are alive. No function of JVMTI that may wait for a
 * thread is called under the lock, because threads take it when they start and end.
 */
#include "threads.h"

#include <stdlib.h>
#include <string.h>

#include <incstack/safepoint.h>

#include "text.h"

void agent_threads_open(struct agent_threads *threads, jvmtiEnv *jvmti)
{
	*threads = (struct agent_threads){
		.jvmti = jvmti, .lock = PTHREAD_MUTEX_INITIALIZER, .open = true};
}

/* ---- the ring ---- */

static void link_in(struct agent_threads *threads, struct agent_thread *thread)
{
	struct agent_thread *at = threads->cursor ? threads->cursor : thread;

	thread->next = at;
	thread->before = at == thread ? thread : at->before;
	thread->before->next = thread;
	at->before = thread;
	threads->cursor = at;
	threads->count++;
}

static void link_out(struct agent_threads *threads, struct agent_thread *thread)
{
	if (threads->cursor == thread)
		threads->cursor = thread->next == thread ? NULL : thread->next;
	thread->before->next = thread->next;
	thread->next->before = thread->before;
	threads->count--;
}

static void free_thread(JNIEnv *jni, struct agent_thread *thread)
{
	(*jni)->DeleteGlobalRef(jni, thread->ref);
	agent_last_walk_free(&thread->last);
	free(thread->name);
	free(thread);
}

/* ---- processor time ---- */

/* 0 if the JVM cannot tell. */
static uint64_t time_of(const struct agent_threads *threads, const struct agent_thread *thread)
{
	jlong ns = 0;

	if ((*threads->jvmti)->GetThreadCpuTime(threads->jvmti, thread->ref, &ns) || ns < 0)
		return 0;
	return (uint64_t)ns;
}

static uint64_t time_since(const struct agent_threads *threads, const struct agent_thread *thread)
{
	uint64_t now = time_of(threads, thread);

	return now > thread->began_ns ? now - thread->began_ns : 0;
}

uint64_t agent_threads_processor_time(struct agent_threads *threads)
{
	uint64_t sum;

	pthread_mutex_lock(&threads->lock);
	sum = threads->ended_ns;
	for (uint32_t i = threads->count; i; i--) {
		sum += time_since(threads, threads->cursor);
		threads->cursor = threads->cursor->next;
	}
	pthread_mutex_unlock(&threads->lock);
	return sum;
}

/* ---- life ---- */

static struct agent_thread *record_of(struct agent_threads *threads, jthread thread)
{
	void *record = NULL;

	if ((*threads->jvmti)->GetThreadLocalStorage(threads->jvmti, thread, &record))
		return NULL;
	return record;
}

/* Adds a thread, unless it is about to end: then it has no storage any more. */
static bool add(struct agent_threads *threads, struct agent_thread *made)
{
	if (!threads->open || record_of(threads, made->ref) ||
	    (*threads->jvmti)->SetThreadLocalStorage(threads->jvmti, made->ref, made))
		return false;
	made->began_ns = time_of(threads, made);
	link_in(threads, made);
	return true;
}

void agent_threads_add(struct agent_threads *threads, JNIEnv *jni, jthread thread)
{
	struct agent_thread *made = calloc(1, sizeof(*made));
	bool added = false;

	if (made)
		made->ref = (*jni)->NewGlobalRef(jni, thread);
	pthread_mutex_lock(&threads->lock);
	if (made && made->ref) {
		made->references = 1;
		added = add(threads, made);
	} else {
		threads->refused++;
	}
	pthread_mutex_unlock(&threads->lock);
	if (made && !added)
		free_thread(jni, made);
}

void agent_threads_add_all(struct agent_threads *threads, JNIEnv *jni)
{
	jvmtiEnv *jvmti = threads->jvmti;
	jthread *all = NULL;
	jint count = 0;

	if ((*jvmti)->GetAllThreads(jvmti, &count, &all))
		return;
	for (jint i = 0; i < count; i++) {
		agent_threads_add(threads, jni, all[i]);
		(*jni)->DeleteLocalRef(jni, all[i]);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)all);
}

void agent_threads_remove(struct agent_threads *threads, JNIEnv *jni, jthread thread)
{
	struct agent_thread *record;

	pthread_mutex_lock(&threads->lock);
	record = threads->open ? record_of(threads, thread) : NULL;
	if (record) {
		(*threads->jvmti)->SetThreadLocalStorage(threads->jvmti, thread, NULL);
		threads->ended_ns += time_since(threads, record);
		link_out(threads, record);
	}
	pthread_mutex_unlock(&threads->lock);
	if (record)
		agent_threads_drop(threads, jni, record);
}

void agent_threads_close(struct agent_threads *threads, JNIEnv *jni)
{
	struct agent_thread *record;

	pthread_mutex_lock(&threads->lock);
	threads->open = false;
	while ((record = threads->cursor)) {
		link_out(threads, record);
		(*threads->jvmti)->SetThreadLocalStorage(threads->jvmti, record->ref, NULL);
		free_thread(jni, record);
	}
	pthread_mutex_unlock(&threads->lock);
}

struct agent_thread *agent_threads_find(struct agent_threads *threads, jthread thread)
{
	struct agent_thread *record;

	pthread_mutex_lock(&threads->lock);
	record = threads->open ? record_of(threads, thread) : NULL;
	if (record)
		record->references++;
	pthread_mutex_unlock(&threads->lock);
	return record;
}

void agent_threads_drop(struct agent_threads *threads, JNIEnv *jni, struct agent_thread *thread)
{
	bool last;

	pthread_mutex_lock(&threads->lock);
	last = !--thread->references;
	pthread_mutex_unlock(&threads->lock);
	if (last)
		free_thread(jni, thread);
}

/* ---- names ---- */

const char *agent_thread_name(struct agent_threads *threads, JNIEnv *jni,
			      struct agent_thread *thread)
{
	jvmtiEnv *jvmti = threads->jvmti;
	jvmtiThreadInfo info = {0};

	if (thread->name)
		return thread->name;
	if ((*jvmti)->GetThreadInfo(jvmti, thread->ref, &info))
		return "[thread without a name]";
	(*jni)->DeleteLocalRef(jni, info.thread_group);
	(*jni)->DeleteLocalRef(jni, info.context_class_loader);
	thread->name = info.name && *info.name ? strdup(info.name) : NULL;
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info.name);
	if (!thread->name)
		return "[thread without a name]";
	agent_text_repair(thread->name);
	return thread->name;
}

/* ---- choice ---- */

/* Whether the thread carries a virtual thread: JVMTI reports that it waits, but for nothing. */
static bool carries(jint state)
{
	const jint reasons = JVMTI_THREAD_STATE_PARKED | JVMTI_THREAD_STATE_SLEEPING |
			     JVMTI_THREAD_STATE_IN_OBJECT_WAIT |
			     JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER;

	return (state & JVMTI_THREAD_STATE_WAITING) && !(state & reasons);
}

bool agent_state_runs(jint state)
{
	if (carries(state))
		return true;
	return (state & JVMTI_THREAD_STATE_RUNNABLE) && !(state & JVMTI_THREAD_STATE_IN_NATIVE) &&
	       !(state & JVMTI_THREAD_STATE_SUSPENDED);
}

static bool thread_runs(struct agent_threads *threads, const struct agent_thread *thread)
{
	jint state = 0;

	return !(*threads->jvmti)->GetThreadState(threads->jvmti, thread->ref, &state) &&
	       agent_state_runs(state);
}

static void choose(struct agent_choice *choice, struct agent_thread *thread)
{
	thread->references++;
	choice->chosen[choice->count++] = thread;
}

static void choose_running(struct agent_threads *threads, uint32_t wanted,
			   struct agent_choice *choice)
{
	for (uint32_t i = threads->count; i && choice->count < wanted; i--) {
		struct agent_thread *thread = threads->cursor;

		threads->cursor = thread->next;
		if (!thread_runs(threads, thread)) {
			choice->waiting++;
			continue;
		}
		choice->running++;
		choose(choice, thread);
	}
}

/* Counts all threads first, as a partial safepoint does. Between the two rounds a thread may start
 * or stop waiting. If one group then has too few threads, the other group fills up. */
static void choose_both(struct agent_threads *threads, uint32_t wanted, struct agent_choice *choice)
{
	uint32_t from_running = 0, from_waiting = 0;
	struct agent_thread *thread = threads->cursor;

	for (uint32_t i = threads->count; i; i--, thread = thread->next)
		thread_runs(threads, thread) ? choice->running++ : choice->waiting++;
	incstack_safepoint_split(choice->running, choice->waiting, wanted, &from_running,
				 &from_waiting);
	for (uint32_t i = threads->count; i && from_running + from_waiting; i--) {
		uint32_t *share;

		thread = threads->cursor;
		threads->cursor = thread->next;
		share = thread_runs(threads, thread) ? &from_running : &from_waiting;
		if (!*share)
			continue;
		--*share;
		choose(choice, thread);
	}
}

void agent_threads_choose(struct agent_threads *threads, uint32_t wanted, bool waiting,
			  struct agent_choice *choice)
{
	choice->count = choice->running = choice->waiting = 0;
	pthread_mutex_lock(&threads->lock);
	if (waiting)
		choose_both(threads, wanted, choice);
	else
		choose_running(threads, wanted, choice);
	pthread_mutex_unlock(&threads->lock);
}
