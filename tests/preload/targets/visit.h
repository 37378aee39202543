/* SPDX-License-Identifier: MIT
 *
 * Visits one of two plugins that are loaded at the same place, and closes it like libc closes its
 * own modules: by a dlclose that cannot be interposed.
 */
#ifndef VISIT_H
#define VISIT_H

#include <dlfcn.h>
#include <stdio.h>

#include "nest.h"

typedef void visit(void (*callee)(void));
typedef int close_module(void *handle);

static const char *directory;
static close_module *close_hidden;
static visit *visiting;
static int same_place;
static void (*in_visit)(void) = allocate;

static void visit_once(void)
{
	visiting(in_visit);
}

/* 0 if it went well. */
static int visit_plugin(const char *plugin, int which, close_module *close)
{
	visit *const before = visiting;
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/%s_%c.so", directory, plugin, 'a' + which);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		return 1;
	*(void **)&visiting = dlsym(handle, which ? "visit_b" : "visit_a");
	if (visiting == NULL)
		return 2;
	same_place += visiting == before;
	nest(3, visit_once);
	nest(1, visit_once);
	return close(handle) == 0 ? 0 : 3;
}

/* libc's own, whatever is preloaded. */
static inline int find_close(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	if (libc != NULL)
		*(void **)&close_hidden = dlsym(libc, "dlclose");
	return close_hidden == NULL;
}

#endif
