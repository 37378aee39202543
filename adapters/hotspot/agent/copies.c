/* SPDX-License-Identifier: MIT
 *
 * Finds other copies of the agent among the libraries that are loaded.
 */
#include "copies.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct libraries {
	char **names;
	size_t count, room;
};

/* Called while the linker holds a lock that dlopen needs, too, so here names are only copied. */
static int add_library(struct dl_phdr_info *info, size_t size, void *context)
{
	struct libraries *libraries = context;
	char **more;

	(void)size;
	if (!info->dlpi_name || !*info->dlpi_name)
		return 0;
	if (libraries->count == libraries->room) {
		const size_t room = libraries->room ? libraries->room * 2 : 64;

		more = realloc(libraries->names, room * sizeof(*more));
		if (!more)
			return 1;
		libraries->names = more;
		libraries->room = room;
	}
	libraries->names[libraries->count] = strdup(info->dlpi_name);
	if (libraries->names[libraries->count])
		libraries->count++;
	return 0;
}

static bool samples(const char *name, agent_copy_samples_fn *own)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	agent_copy_samples_fn *its = NULL;
	bool found;

	if (!library)
		return false;
	*(void **)&its = dlsym(library, AGENT_COPY_SAMPLES);
	found = its && its != own && its();
	dlclose(library);
	return found;
}

bool agent_copy_that_samples(agent_copy_samples_fn *own, char *path, size_t size)
{
	struct libraries libraries = {0};
	bool found = false;

	dl_iterate_phdr(add_library, &libraries);
	for (size_t i = 0; i < libraries.count; i++) {
		if (!found && samples(libraries.names[i], own)) {
			snprintf(path, size, "%s", libraries.names[i]);
			found = true;
		}
		free(libraries.names[i]);
	}
	free(libraries.names);
	return found;
}
