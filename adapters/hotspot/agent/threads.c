/* SPDX-License-Identifier: MIT
 *
 * The platform threads of the JVM that are alive. No function of JVMTI that may wait for a
 * thread is called under the lock, because threads take it when they start and end.
 */
#include "threads.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/split.h"
#include "text.h"

void agent_threads_open(struct agent_threads *threads, jvmtiEnv *jvmti)
{
	*threads = (struct agent_threads){
		.jvmti = jvmti, .lock = PTHREAD_MUTEX_INITIALIZER, .open = true};
}

/* ---- the ring ---- */

static void link_in(struct agent_threads *threads, struct agent_thread *thread)
{
	struct agent_thread *at = threads->count ? *threads->cursors : thread;

	thread->next = at;
	thread->before = at == thread ? thread : at->before;
	thread->before->next = thread;
	at->before = thread;
	if (!threads->count++)
		for (int turn = 0; turn < AGENT_TURN_COUNT; turn++)
			threads->cursors[turn] = thread;
}

static void link_out(struct agent_threads *threads, struct agent_thread *thread)
{
	for (int turn = 0; turn < AGENT_TURN_COUNT; turn++)
		if (threads->cursors[turn] == thread)
			threads->cursors[turn] = thread->next == thread ? NULL : thread->next;
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
		link_out(threads, record);
	}
	pthread_mutex_unlock(&threads->lock);
	if (!record)
		return;
	atomic_fetch_add(&threads->ended_ns, time_since(threads, record));
	agent_threads_drop(threads, jni, record);
}

void agent_threads_close(struct agent_threads *threads, JNIEnv *jni)
{
	struct agent_thread *record;

	pthread_mutex_lock(&threads->lock);
	threads->open = false;
	while ((record = *threads->cursors)) {
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

/* ---- one after the other ---- */

static uint32_t count_of(struct agent_threads *threads)
{
	uint32_t count;

	pthread_mutex_lock(&threads->lock);
	count = threads->count;
	pthread_mutex_unlock(&threads->lock);
	return count;
}

/* Lets go of the thread before, and holds the one whose turn is next; null if there is none. No function of
 * JVMTI is called under the lock: with many threads, one that starts or ends would wait for all of them. */
static struct agent_thread *step(struct agent_threads *threads, JNIEnv *jni, enum agent_turn turn,
				 struct agent_thread *before)
{
	struct agent_thread *next;
	bool last;

	pthread_mutex_lock(&threads->lock);
	last = before && !--before->references;
	next = threads->cursors[turn];
	if (next) {
		next->references++;
		threads->cursors[turn] = next->next;
	}
	pthread_mutex_unlock(&threads->lock);
	if (last)
		free_thread(jni, before);
	return next;
}

/* A thread that ends meanwhile is perhaps missing from this sum. It is in the next one. */
uint64_t agent_threads_processor_time(struct agent_threads *threads, JNIEnv *jni)
{
	uint64_t sum = atomic_load(&threads->ended_ns);
	struct agent_thread *thread = NULL;
	uint32_t count = count_of(threads);

	for (uint32_t i = 0; i < count && (thread = step(threads, jni, AGENT_TURN_TIMED, thread));
	     i++)
		sum += time_since(threads, thread);
	if (thread)
		agent_threads_drop(threads, jni, thread);
	return sum;
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

void agent_threads_seems(struct agent_threads *threads, struct agent_thread *thread,
			 enum agent_seeming seeming)
{
	thread->seemed_ns = time_of(threads, thread);
	thread->seeming = thread->seemed_ns ? seeming : AGENT_SEEMS_RIGHT;
}

/* Returns what the thread seems to be, if it has used no processor time since. */
static enum agent_seeming seeming_of(struct agent_threads *threads, struct agent_thread *thread)
{
	if (thread->seeming && time_of(threads, thread) != thread->seemed_ns)
		thread->seeming = AGENT_SEEMS_RIGHT;
	return thread->seeming;
}

static bool thread_runs(struct agent_threads *threads, struct agent_thread *thread)
{
	jint state = 0;

	return !(*threads->jvmti)->GetThreadState(threads->jvmti, thread->ref, &state) &&
	       agent_state_runs(state) && seeming_of(threads, thread) == AGENT_SEEMS_RIGHT;
}

/* The thread is held for the caller until the caller drops it. */
static void choose(struct agent_threads *threads, struct agent_choice *choice,
		   struct agent_thread *thread)
{
	pthread_mutex_lock(&threads->lock);
	thread->references++;
	pthread_mutex_unlock(&threads->lock);
	choice->chosen[choice->count++] = thread;
}

void agent_threads_choose_running(struct agent_threads *threads, JNIEnv *jni, uint32_t wanted,
				  struct agent_choice *choice)
{
	struct agent_thread *thread = NULL;
	const uint32_t count = count_of(threads);

	choice->count = 0;
	while (choice->looked_at < count && choice->count < wanted &&
	       (thread = step(threads, jni, AGENT_TURN_RUNNING, thread))) {
		choice->looked_at++;
		if (thread_runs(threads, thread))
			choose(threads, choice, thread);
	}
	if (thread)
		agent_threads_drop(threads, jni, thread);
}

/* Sees which threads run. A thread without a Java frame belongs to neither group. */
static void see_groups(struct agent_threads *threads, JNIEnv *jni, struct agent_choice *choice)
{
	struct agent_thread *thread = NULL;
	const uint32_t count = count_of(threads);

	choice->running = choice->waiting = 0;
	for (uint32_t i = 0; i < count && (thread = step(threads, jni, AGENT_TURN_RUNNING, thread));
	     i++) {
		thread->runs = thread_runs(threads, thread);
		choice->running += thread->runs;
		choice->waiting += !thread->runs && thread->seeming != AGENT_SEEMS_EMPTY;
	}
	if (thread)
		agent_threads_drop(threads, jni, thread);
}

/* Chooses up to `wanted` more threads from one group. */
static void choose_from(struct agent_threads *threads, JNIEnv *jni, enum agent_turn turn,
			uint32_t wanted, struct agent_choice *choice)
{
	struct agent_thread *thread = NULL;
	const uint32_t count = count_of(threads);

	for (uint32_t i = 0; i < count && wanted && (thread = step(threads, jni, turn, thread));
	     i++) {
		if (thread->runs != (turn == AGENT_TURN_RUNNING) ||
		    thread->seeming == AGENT_SEEMS_EMPTY)
			continue;
		choose(threads, choice, thread);
		wanted--;
	}
	if (thread)
		agent_threads_drop(threads, jni, thread);
}

/* Counts all threads first, as a partial safepoint does. */
void agent_threads_choose(struct agent_threads *threads, JNIEnv *jni, uint32_t wanted,
			  struct agent_choice *choice)
{
	uint32_t from_running = 0, from_waiting = 0;

	choice->count = 0;
	see_groups(threads, jni, choice);
	incstack__split_for_both(choice->running, choice->waiting, wanted, &from_running,
				 &from_waiting);
	choose_from(threads, jni, AGENT_TURN_RUNNING, from_running, choice);
	choose_from(threads, jni, AGENT_TURN_WAITING, from_waiting, choice);
}
