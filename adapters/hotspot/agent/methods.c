/* SPDX-License-Identifier: MIT
 *
 * The methods of a stock JVM, to which the agent gives numbers.
 */
#include "methods.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

static const char *const special[AGENT_METHOD_FIRST] = {
	[AGENT_METHOD_UNKNOWN] = "[unknown method]",
	[AGENT_METHOD_UNLOADED] = "[method of an unloaded class]",
	[AGENT_METHOD_VIRTUAL] = "[virtual thread]",
	[AGENT_METHOD_NO_MEMORY] = "[method without a name: out of memory]",
};

enum { LEAST_SWEEP = 4096 };

void agent_methods_open(struct agent_methods *methods, jvmtiEnv *jvmti)
{
	*methods = (struct agent_methods){.jvmti = jvmti,
					  .lock = PTHREAD_MUTEX_INITIALIZER,
					  .class_sweep = LEAST_SWEEP,
					  .method_count = AGENT_METHOD_FIRST};
}

void agent_methods_close(struct agent_methods *methods, JNIEnv *jni)
{
	pthread_mutex_lock(&methods->lock);
	for (uint32_t i = 0; i < methods->class_count; i++)
		if (methods->classes[i])
			(*jni)->DeleteWeakGlobalRef(jni, methods->classes[i]);
	for (uint32_t i = AGENT_METHOD_FIRST; i < methods->method_count; i++) {
		free(methods->methods[i].name);
		free(methods->methods[i].file);
		free(methods->methods[i].lines);
	}
	free(methods->classes);
	free(methods->methods);
	methods->classes = NULL;
	methods->methods = NULL;
	methods->class_count = methods->class_room = 0;
	methods->method_count = AGENT_METHOD_FIRST;
	methods->method_room = 0;
	agent_idmap_free(&methods->map);
	pthread_mutex_unlock(&methods->lock);
}

/* Makes room for one more element. Returns false if there is no memory. */
static bool grow(void **array, uint32_t *room, uint32_t count, size_t element)
{
	uint32_t more = *room ? *room * 2 : 1024;
	void *made;

	if (count < *room)
		return true;
	made = realloc(*array, more * element);
	if (!made)
		return false;
	*array = made;
	*room = more;
	return true;
}

/* ---- classes ---- */

/* Registers a class. If there is no memory, the class is left out, and its methods stay unknown. */
static void register_class(struct agent_methods *methods, JNIEnv *jni, jclass class,
			   const jmethodID *ids, jint count)
{
	uint32_t number = methods->class_count;
	jweak weak;

	if (!grow((void **)&methods->classes, &methods->class_room, number,
		  sizeof(*methods->classes)))
		return;
	weak = (*jni)->NewWeakGlobalRef(jni, class);
	if (!weak)
		return;
	methods->classes[number] = weak;
	methods->class_count++;
	for (jint i = 0; i < count; i++)
		if (ids[i])
			(void)agent_idmap_put(&methods->map, (uint64_t)(uintptr_t)ids[i], number,
					      0);
}

void agent_methods_class(struct agent_methods *methods, JNIEnv *jni, jclass class)
{
	jvmtiEnv *jvmti = methods->jvmti;
	jmethodID *ids = NULL;
	jint count = 0;

	if ((*jvmti)->GetClassMethods(jvmti, class, &count, &ids))
		return;
	if (count) {
		pthread_mutex_lock(&methods->lock);
		register_class(methods, jni, class, ids, count);
		pthread_mutex_unlock(&methods->lock);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)ids);
}

void agent_methods_loaded(struct agent_methods *methods, JNIEnv *jni)
{
	jvmtiEnv *jvmti = methods->jvmti;
	jclass *classes = NULL;
	jint count = 0;

	if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes))
		return;
	for (jint i = 0; i < count; i++) {
		jint status = 0;

		if (!(*jvmti)->GetClassStatus(jvmti, classes[i], &status) &&
		    (status & JVMTI_CLASS_STATUS_PREPARED))
			agent_methods_class(methods, jni, classes[i]);
		(*jni)->DeleteLocalRef(jni, classes[i]);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

static bool class_gone(void *context, uint32_t owner)
{
	const struct agent_methods *methods = context;

	return !methods->classes[owner];
}

/* Forgets unloaded classes. Their numbers are not used again, which costs 8 bytes for each. */
void agent_methods_sweep(struct agent_methods *methods, JNIEnv *jni)
{
	uint32_t gone = 0;

	pthread_mutex_lock(&methods->lock);
	if (methods->class_count >= methods->class_sweep) {
		for (uint32_t i = 0; i < methods->class_count; i++)
			if (methods->classes[i] &&
			    (*jni)->IsSameObject(jni, methods->classes[i], NULL)) {
				(*jni)->DeleteWeakGlobalRef(jni, methods->classes[i]);
				methods->classes[i] = NULL;
				gone++;
			}
		if (gone)
			agent_idmap_prune(&methods->map, class_gone, methods);
		methods->class_sweep = methods->class_count + methods->class_count / 4;
	}
	pthread_mutex_unlock(&methods->lock);
}

/* ---- methods ---- */

static char *take_text(jvmtiEnv *jvmti, char *text)
{
	char *copy = text ? strdup(text) : NULL;

	(*jvmti)->Deallocate(jvmti, (unsigned char *)text);
	if (copy)
		agent_text_repair(copy);
	return copy;
}

static void describe_lines(jvmtiEnv *jvmti, jmethodID id, struct agent_method *method)
{
	jvmtiLineNumberEntry *table = NULL;
	jint count = 0;

	if ((*jvmti)->GetLineNumberTable(jvmti, id, &count, &table))
		return;
	method->lines = count ? calloc((size_t)count, sizeof(*method->lines)) : NULL;
	for (jint i = 0; method->lines && i < count; i++)
		method->lines[i] =
			(struct agent_line){(int32_t)table[i].start_location, table[i].line_number};
	method->line_count = method->lines ? (uint32_t)count : 0;
	(*jvmti)->Deallocate(jvmti, (unsigned char *)table);
}

/* Whether a thread in this method carries a virtual thread. Any thread calls pin and unpin. */
static bool is_continuation(const char *name)
{
	static const char class[] = "jdk.internal.vm.Continuation.";
	const char *method = name + sizeof(class) - 1;

	return !strncmp(name, class, sizeof(class) - 1) && strcmp(method, "pin") != 0 &&
	       strcmp(method, "unpin") != 0;
}

/* Whether this is a native method that waits inside the JVM. */
static bool is_idle(const char *name)
{
	return !strcmp(name, "java.lang.ref.Reference.waitForReferencePendingList") ||
	       !strcmp(name, "java.lang.VirtualThread.takeVirtualThreadListToUnblock");
}

/* Describes a method. A local reference holds its class, so its identifier is valid. */
static bool describe(jvmtiEnv *jvmti, jclass class, jmethodID id, struct agent_method *method)
{
	char *signature = NULL, *name = NULL, *file = NULL;

	*method = (struct agent_method){0};
	if (!(*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) &&
	    !(*jvmti)->GetMethodName(jvmti, id, &name, NULL, NULL))
		method->name = agent_method_name(signature, name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
	if (!method->name)
		return false;
	if (!(*jvmti)->GetSourceFileName(jvmti, class, &file))
		method->file = take_text(jvmti, file);
	describe_lines(jvmti, id, method);
	method->continuation = is_continuation(method->name);
	method->idle = is_idle(method->name);
	return true;
}

static uint32_t name_method(struct agent_methods *methods, JNIEnv *jni, uint32_t owner,
			    jmethodID id)
{
	jclass class = (*jni)->NewLocalRef(jni, methods->classes[owner]);
	uint32_t number = AGENT_METHOD_NO_MEMORY;

	if (!class)
		return AGENT_METHOD_UNLOADED;
	if (grow((void **)&methods->methods, &methods->method_room, methods->method_count,
		 sizeof(*methods->methods)) &&
	    describe(methods->jvmti, class, id, &methods->methods[methods->method_count]))
		number = methods->method_count++;
	(*jni)->DeleteLocalRef(jni, class);
	return number;
}

/* Finds the class of a method that is not registered: the method of an old version of its class,
 * which nothing announces, or of a class that is just being prepared. HotSpot refuses an identifier
 * whose class was unloaded. */
static struct agent_idmap_entry *find_out(struct agent_methods *methods, JNIEnv *jni, jmethodID id)
{
	jclass class = NULL;

	if ((*methods->jvmti)->GetMethodDeclaringClass(methods->jvmti, id, &class))
		return NULL;
	register_class(methods, jni, class, &id, 1);
	(*jni)->DeleteLocalRef(jni, class);
	return agent_idmap_find(&methods->map, (uint64_t)(uintptr_t)id);
}

static uint32_t number_of(struct agent_methods *methods, JNIEnv *jni, jmethodID id)
{
	struct agent_idmap_entry *entry = agent_idmap_find(&methods->map, (uint64_t)(uintptr_t)id);

	if (!entry)
		entry = find_out(methods, jni, id);
	if (!entry)
		return AGENT_METHOD_UNKNOWN;
	if (!entry->number) {
		uint32_t number = name_method(methods, jni, entry->owner, id);

		if (number < AGENT_METHOD_FIRST)
			return number;
		entry->number = number;
	}
	return entry->number;
}

bool agent_methods_idle(struct agent_methods *methods, JNIEnv *jni, jmethodID innermost)
{
	uint32_t number;
	bool idle;

	pthread_mutex_lock(&methods->lock);
	number = number_of(methods, jni, innermost);
	idle = number >= AGENT_METHOD_FIRST && methods->methods[number].idle;
	pthread_mutex_unlock(&methods->lock);
	return idle;
}

uint32_t agent_methods_translate(struct agent_methods *methods, JNIEnv *jni,
				 const jvmtiFrameInfo *infos, uint32_t count,
				 struct agent_frame *frames)
{
	uint32_t made = 0;

	pthread_mutex_lock(&methods->lock);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = number_of(methods, jni, infos[i].method);

		if (!i && number >= AGENT_METHOD_FIRST && methods->methods[number].continuation)
			frames[made++] = (struct agent_frame){AGENT_METHOD_VIRTUAL, -1};
		frames[made++] = (struct agent_frame){number, (int32_t)infos[i].location};
	}
	pthread_mutex_unlock(&methods->lock);
	return made;
}

int agent_methods_source(void *context, const struct incstack_profile_frame *frame,
			 struct incstack_profile_source *source)
{
	struct agent_methods *methods = context;

	if (frame->name)
		return 0;
	if (frame->function < AGENT_METHOD_FIRST) {
		source->name = special[frame->function];
		return 0;
	}
	pthread_mutex_lock(&methods->lock);
	if (frame->function < methods->method_count) {
		const struct agent_method *method = &methods->methods[frame->function];

		source->name = method->name;
		source->file = method->file;
		source->line = agent_line_of(method->lines, method->line_count, frame->position);
	}
	pthread_mutex_unlock(&methods->lock);
	return 0;
}
