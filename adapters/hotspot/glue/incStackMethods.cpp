/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * Names of methods for agents, also of methods that no longer exist: when a class is unloaded or a
 * method is freed, the names of the methods with a key are kept.
 */
#include "precompiled.hpp"
#include "incstack/incStack.hpp"
#include "incstack/incStackMethods.hpp"
#include "incstack/incStackThread.hpp"
#include "memory/resourceArea.hpp"
#include "oops/instanceKlass.hpp"
#include "oops/method.inline.hpp"
#include "runtime/os.hpp"

/* Held while names are read, so that no method is freed meanwhile. No thread stops at a safepoint
 * while it holds this lock, so a collector may wait for it. */
static pthread_mutex_t Lock = PTHREAD_MUTEX_INITIALIZER;

static struct incstack__method_names *names_of(Method *method)
{
	ResourceMark rm;
	InstanceKlass *holder = method->method_holder();
	const Symbol *source = holder->source_file_name();
	return incstack__method_names_copy(holder->signature_name(), method->name()->as_C_string(),
					   method->signature()->as_C_string(),
					   source == NULL ? NULL : source->as_C_string());
}

static void gone(Method *method)
{
	uint32_t key = incstack__method_find(IncStackFrames::methods, (uintptr_t)method);
	if (key == 0)
		return;
	pthread_mutex_lock(&Lock);
	incstack__method_gone(IncStackFrames::methods, key, names_of(method));
	pthread_mutex_unlock(&Lock);
}

void IncStack::class_unloading(InstanceKlass *klass)
{
	if (IncStackFrames::methods == NULL)
		return;
	for (InstanceKlass *k = klass; k != NULL; k = k->previous_versions())
		for (int i = 0; k->methods() != NULL && i < k->methods()->length(); i++)
			gone(k->methods()->at(i));
}

void IncStack::method_freed(Method *method)
{
	if (IncStackFrames::methods != NULL && method->constMethod() != NULL)
		gone(method);
}

static char *copy(JvmtiEnv *env, const char *text, jvmtiError *error)
{
	unsigned char *memory = NULL;
	if (text == NULL || *error != JVMTI_ERROR_NONE)
		return NULL;
	*error = env->Allocate((jlong)strlen(text) + 1, &memory);
	return *error == JVMTI_ERROR_NONE ? strcpy((char *)memory, text) : NULL;
}

static jvmtiError fill(JvmtiEnv *env, const struct incstack__method_names *n,
		       struct incstack_jvmti_method *description)
{
	jvmtiError error = JVMTI_ERROR_NONE;
	description->class_signature = copy(env, n->class_signature, &error);
	description->name = copy(env, n->name, &error);
	description->signature = copy(env, n->signature, &error);
	description->source_file = copy(env, n->source_file, &error);
	if (error == JVMTI_ERROR_NONE)
		return error;
	env->Deallocate((unsigned char *)description->class_signature);
	env->Deallocate((unsigned char *)description->name);
	env->Deallocate((unsigned char *)description->signature);
	return error;
}

jvmtiError IncStackMethods::describe(JvmtiEnv *env, uint64_t key, jint bci,
				     struct incstack_jvmti_method *description)
{
	const struct incstack__method_names *kept;
	struct incstack__method_names *made = NULL;
	if (IncStackFrames::methods == NULL || key > UINT32_MAX)
		return JVMTI_ERROR_INVALID_METHODID;
	struct incstack_jvmti_method d = {};
	pthread_mutex_lock(&Lock);
	Method *method =
		(Method *)incstack__method_of(IncStackFrames::methods, (uint32_t)key, &kept);
	d.line = method == NULL || method->is_native() || bci < 0
			 ? -1
			 : method->line_number_from_bci(bci);
	d.unloaded = method == NULL || method->is_obsolete();
	if (method != NULL)
		kept = made = names_of(method);
	pthread_mutex_unlock(&Lock);
	jvmtiError error =
		method != NULL ? JVMTI_ERROR_OUT_OF_MEMORY : JVMTI_ERROR_INVALID_METHODID;
	if (kept != NULL)
		error = fill(env, kept, &d);
	::free(made);
	d.size = description->size;
	if (error == JVMTI_ERROR_NONE)
		memcpy(description, &d, MIN2(description->size, sizeof(d)));
	return error;
}
