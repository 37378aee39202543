/* SPDX-License-Identifier: MIT
 *
 * The events of threads and classes.
 */
#include "events.h"

#include <stddef.h>

void agent_events_init(struct agent_events *events, jvmtiEnv *jvmti)
{
	events->jvmti = jvmti;
	pthread_rwlock_init(&events->gate, NULL);
}

/* Opens or closes the gate. Returns when no event is in progress. */
static void set_gate(struct agent_events *events, bool on)
{
	pthread_rwlock_wrlock(&events->gate);
	events->on = on;
	pthread_rwlock_unlock(&events->gate);
}

static void set_notification(const struct agent_events *events, jvmtiEventMode mode)
{
	const jvmtiEvent all[] = {JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END,
				  JVMTI_EVENT_CLASS_PREPARE};
	const size_t count = events->technique->kind->class_prepared ? 3 : 2;

	for (size_t i = 0; i < count; i++)
		(void)(*events->jvmti)->SetEventNotificationMode(events->jvmti, mode, all[i], NULL);
}

void agent_events_start(struct agent_events *events, struct agent_threads *threads,
			struct agent_technique *technique)
{
	events->threads = threads;
	events->technique = technique;
	set_gate(events, true);
	set_notification(events, JVMTI_ENABLE);
}

void agent_events_stop(struct agent_events *events)
{
	set_notification(events, JVMTI_DISABLE);
	set_gate(events, false);
}

void agent_events_thread_starts(struct agent_events *events, JNIEnv *jni, jthread thread)
{
	pthread_rwlock_rdlock(&events->gate);
	if (events->on)
		agent_threads_add(events->threads, jni, thread);
	pthread_rwlock_unlock(&events->gate);
}

void agent_events_thread_ends(struct agent_events *events, JNIEnv *jni, jthread thread)
{
	pthread_rwlock_rdlock(&events->gate);
	if (events->on) {
		struct agent_technique *technique = events->technique;

		agent_threads_remove(events->threads, jni, thread);
		if (technique->kind->thread_ends)
			technique->kind->thread_ends(technique, jni, thread);
	}
	pthread_rwlock_unlock(&events->gate);
}

void agent_events_class_prepared(struct agent_events *events, JNIEnv *jni, jclass class)
{
	pthread_rwlock_rdlock(&events->gate);
	if (events->on) {
		struct agent_technique *technique = events->technique;

		if (technique->kind->class_prepared)
			technique->kind->class_prepared(technique, jni, class);
	}
	pthread_rwlock_unlock(&events->gate);
}
