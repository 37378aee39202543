/* SPDX-License-Identifier: MIT
 *
 * The extension functions of a JVM with the library inside.
 */
#include "extension.h"

#include <string.h>

static void take(struct agent_extension *extension, const jvmtiExtensionFunctionInfo *info)
{
	const struct {
		const char *id;
		jvmtiExtensionFunction *place;
	} known[] = {
		{INCSTACK_JVMTI_REQUEST_TRACES, &extension->request},
		{INCSTACK_JVMTI_RETRIEVE_TRACES, &extension->retrieve},
		{INCSTACK_JVMTI_RELEASE_TRACES, &extension->release},
		{INCSTACK_JVMTI_DESCRIBE_METHOD, &extension->describe},
		{INCSTACK_JVMTI_GET_STATISTICS, &extension->statistics},
		{INCSTACK_JVMTI_SET_CHECK, &extension->check},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(info->id, known[i].id))
			*known[i].place = info->func;
}

static void free_info(jvmtiEnv *jvmti, const jvmtiExtensionFunctionInfo *info)
{
	for (jint i = 0; i < info->param_count; i++)
		(*jvmti)->Deallocate(jvmti, (unsigned char *)info->params[i].name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info->params);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info->errors);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info->short_description);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info->id);
}

bool agent_extension_find(struct agent_extension *extension, jvmtiEnv *jvmti)
{
	jvmtiExtensionFunctionInfo *infos = NULL;
	jint count = 0;

	*extension = (struct agent_extension){.jvmti = jvmti};
	if ((*jvmti)->GetExtensionFunctions(jvmti, &count, &infos))
		return false;
	for (jint i = 0; i < count; i++) {
		take(extension, &infos[i]);
		free_info(jvmti, &infos[i]);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)infos);
	return extension->request && extension->retrieve && extension->release &&
	       extension->describe && extension->statistics && extension->check;
}

jvmtiError agent_request(const struct agent_extension *extension, jint thread_count,
			 const jthread *threads, const struct incstack_jvmti_request *request,
			 struct incstack_jvmti_requested *requested)
{
	return extension->request(extension->jvmti, thread_count, threads, request, requested);
}

jvmtiError agent_retrieve(const struct agent_extension *extension, jint thread_count,
			  const jthread *threads, struct incstack_jvmti_traces **traces)
{
	return extension->retrieve(extension->jvmti, thread_count, threads, traces);
}

jvmtiError agent_release(const struct agent_extension *extension,
			 struct incstack_jvmti_traces *traces)
{
	return extension->release(extension->jvmti, traces);
}

jvmtiError agent_describe(const struct agent_extension *extension, jlong method, jint bci,
			  struct incstack_jvmti_method *description)
{
	return extension->describe(extension->jvmti, method, bci, description);
}

jvmtiError agent_statistics(const struct agent_extension *extension,
			    struct incstack_jvmti_statistics *statistics)
{
	return extension->statistics(extension->jvmti, statistics);
}

jvmtiError agent_set_check(const struct agent_extension *extension, jint on)
{
	return extension->check(extension->jvmti, on);
}
