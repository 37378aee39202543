/* SPDX-License-Identifier: MIT
 *
 * The entry points of the agent: loading, the events of the JVM, and commands. Whatever happens
 * here, the JVM continues.
 */
#include <jvmti.h>
#include <pthread.h>
#include <string.h>

#include "copies.h"
#include "events.h"
#include "say.h"
#include "session.h"

enum state {
	UNUSED = 0, /* no session was ever started */
	WAITING,    /* for the JVM to be initialized */
	RUNNING,
	FINISHED,
};

static struct {
	pthread_mutex_t lock;      /* protects the state, and the start and end of a session */
	_Atomic(enum state) state; /* read by other copies without the lock */
	bool dead; /* the JVM ends, or the sampler cannot be stopped: no session begins any more */
	struct agent_options options;
	jvmtiEnv *jvmti;
	struct agent_events events;
	struct agent_session session;
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- commands, under the lock ------------------------------------------------------- */

/* Says why something cannot be done. */
static bool refuse(const char *why)
{
	agent_say("%s", why);
	return false;
}

/* Called by other copies of the agent: see copies.h. */
__attribute__((visibility("default"))) agent_copy_samples_fn incstack_java_samples;
int incstack_java_samples(void)
{
	const enum state state = agent.state;

	return state == WAITING || state == RUNNING;
}

/* Returns whether no other copy of the agent samples; if one does, says so. In a JVM with the library, each
 * of two copies would retrieve traces that the other one asked for. */
static bool is_alone(void)
{
	char other[AGENT_FILE_MAX];

	if (!agent_copy_that_samples(incstack_java_samples, other, sizeof(other)))
		return true;
	agent_say("another copy of the agent samples this JVM already: %s; this one samples "
		  "nothing",
		  other);
	return false;
}

static bool start(JNIEnv *jni, const struct agent_options *options)
{
	const char *why = agent_session_start(&agent.session, jni, options);

	if (why)
		agent_say("%s; nothing is sampled", why);
	agent.state = why ? UNUSED : RUNNING;
	return !why;
}

static void finish(JNIEnv *jni)
{
	if (agent.state != RUNNING)
		return;
	agent.state = FINISHED;
	if (!agent_session_finish(&agent.session, jni))
		agent.dead = true;
}

static void say_status(void)
{
	if (agent.state == RUNNING)
		agent_say("sampling, part %u", (unsigned)agent_session_part(&agent.session));
	else
		agent_say("not sampling");
}

/* Returns whether it was done. */
static bool obey(JNIEnv *jni, const struct agent_options *options)
{
	if (options->command == AGENT_START)
		return agent.state == RUNNING ? refuse("sampling already; stop first, or use the "
						       "commands dump and next")
					      : is_alone() && start(jni, options);
	if (options->command == AGENT_STATUS)
		say_status();
	else if (agent.state != RUNNING)
		return refuse("not sampling; start first");
	else if (options->command == AGENT_STOP)
		finish(jni);
	else
		agent_session_ask(&agent.session, options->command == AGENT_NEXT
							  ? AGENT_ASKED_NEXT
							  : AGENT_ASKED_DUMP);
	return true;
}

/* Another thread may have ended this session already, and may even have started the next. */
static void duration_over(uint64_t number, JNIEnv *jni)
{
	pthread_mutex_lock(&agent.lock);
	if (agent_session_number(&agent.session) == number)
		finish(jni);
	pthread_mutex_unlock(&agent.lock);
}

/* ---- events ------------------------------------------------------------------------- */

static void JNICALL on_init(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)jvmti;
	(void)thread;
	pthread_mutex_lock(&agent.lock);
	if (agent.state == WAITING)
		(void)start(jni, &agent.options);
	pthread_mutex_unlock(&agent.lock);
}

static void JNICALL on_death(jvmtiEnv *jvmti, JNIEnv *jni)
{
	(void)jvmti;
	pthread_mutex_lock(&agent.lock);
	agent.dead = true;
	finish(jni);
	pthread_mutex_unlock(&agent.lock);
}

static void JNICALL on_thread_start(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)jvmti;
	agent_events_thread_starts(&agent.events, jni, thread);
}

static void JNICALL on_thread_end(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)jvmti;
	agent_events_thread_ends(&agent.events, jni, thread);
}

static void JNICALL on_class(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class)
{
	(void)jvmti;
	(void)thread;
	agent_events_class_prepared(&agent.events, jni, class);
}

/* ---- loading ------------------------------------------------------------------------ */

/* Adds capabilities. If the JVM refuses one, only what needs it is missing. */
static void add_capabilities(jvmtiEnv *jvmti)
{
	jvmtiCapabilities each[3];

	memset(each, 0, sizeof(each));
	each[0].can_get_line_numbers = 1;
	each[1].can_get_source_file_name = 1;
	each[2].can_get_thread_cpu_time = 1;
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		(void)(*jvmti)->AddCapabilities(jvmti, &each[i]);
}

/* Creates the JVMTI environment, once. Returns whether there is one. */
static bool attach(JavaVM *vm)
{
	static const jvmtiEventCallbacks callbacks = {.VMInit = on_init,
						      .VMDeath = on_death,
						      .ThreadStart = on_thread_start,
						      .ThreadEnd = on_thread_end,
						      .ClassPrepare = on_class};
	const jvmtiEvent events[] = {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH};
	jvmtiEnv *jvmti = NULL;

	if (agent.jvmti)
		return true;
	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
		agent_say("this JVM is older than version 11; nothing is sampled");
		return false;
	}
	add_capabilities(jvmti);
	if ((*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)))
		return false;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL))
			return false;
	agent.jvmti = jvmti;
	agent_events_init(&agent.events, jvmti);
	agent_session_init(&agent.session, jvmti, &agent.events, duration_over);
	return true;
}

static bool read_options(const char *text, struct agent_options *options)
{
	char error[AGENT_ERROR_MAX];
	struct agent_locale locale;
	bool valid;

	agent_locale_enter(&locale);
	valid = agent_options_read(text, options, error);
	agent_locale_leave(&locale);
	if (!valid)
		agent_say(agent.state == RUNNING ? "%s; sampling goes on as before"
						 : "%s; nothing is sampled",
			  error);
	return valid;
}

/* Never returns an error, because that would end the JVM. */
__attribute__((visibility("default"))) JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *text,
									   void *reserved)
{
	static struct agent_options options;

	(void)reserved;
	if (!read_options(text, &options))
		return JNI_OK;
	if (agent.state == WAITING)
		agent_say("the agent is given twice; only the options of the first one are used");
	else if (options.command != AGENT_START)
		agent_say("the JVM has just started: there is nothing to do for a command but "
			  "start");
	else if (is_alone() && attach(vm)) {
		agent.options = options;
		agent.state = WAITING;
	}
	return JNI_OK;
}

static bool attached(JavaVM *vm, const struct agent_options *options)
{
	jvmtiPhase phase;
	JNIEnv *jni = NULL;

	if (!attach(vm) || (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10) != JNI_OK)
		return false;
	if (agent.dead || (*agent.jvmti)->GetPhase(agent.jvmti, &phase) ||
	    phase != JVMTI_PHASE_LIVE)
		return refuse("the JVM is starting or ending; nothing is done");
	return obey(jni, options);
}

/* The one who attaches sees only whether it was done: the reason is on the program's standard
 * error. An error does not end the JVM here. */
__attribute__((visibility("default"))) JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *text,
									     void *reserved)
{
	static struct agent_options options; /* under the lock */
	bool done;

	(void)reserved;
	pthread_mutex_lock(&agent.lock);
	done = read_options(text, &options) && attached(vm, &options);
	pthread_mutex_unlock(&agent.lock);
	return done ? JNI_OK : JNI_ERR;
}
