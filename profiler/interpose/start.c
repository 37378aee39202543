/* SPDX-License-Identifier: MIT
 *
 * Starts the recorder when the stub is loaded, ends it when the process ends, and finds the real
 * functions.
 */
#include <stdatomic.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "stub.h"

void *incstack__stub_find(void *_Atomic *cache, const char *name)
{
	void *next = (void *)incstack__stub_next_function(name);

	atomic_store_explicit(cache, next, memory_order_relaxed);
	return next;
}

void *incstack__stub_next(void *_Atomic *cache, const char *name)
{
	void *next = incstack__stub_find(cache, name);

	if (!next)
		__builtin_trap();
	return next;
}

/* Makes the path of the recorder, which is in the same directory as this object. */
static int recorder_path(char *path, size_t size)
{
	static const char name[] = INCSTACK__RECORDER_FILE;
	const char *slash;
	size_t directory;
	Dl_info info;

	if (dladdr(&incstack__stub_recorder, &info) == 0 || !info.dli_fname)
		return -1;
	slash = strrchr(info.dli_fname, '/');
	directory = slash ? (size_t)(slash - info.dli_fname) + 1 : 0;
	if (directory + sizeof(name) > size)
		return -1;
	memcpy(path, info.dli_fname, directory);
	memcpy(path + directory, name, sizeof(name));
	return 0;
}

static void finish(void)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_exit();
}

static const struct incstack__recorder *open_recorder(const char *configuration)
{
	incstack__recorder_start_fn *start = NULL;
	const struct incstack__linker_view *before;
	char path[PATH_MAX];
	void *handle;
	void *symbol;

	if (recorder_path(path, sizeof(path)) != 0)
		return NULL;
	before = incstack__stub_view_linker();
	/* NODELETE: the target may still return through the recorder's thunks while it exits. */
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	symbol = handle ? dlsym(handle, INCSTACK__RECORDER_SYMBOL) : NULL;
	if (!symbol) {
		incstack__stub_unloadable(configuration);
		return NULL;
	}
	memcpy(&start, &symbol, sizeof(start));
	return start(configuration, before, incstack__range_own());
}

/* Forgets the error of a call that failed, which the program would take for its own. The second call
 * frees the error's text after it has removed the error. */
static void forget_error(void)
{
	dlerror();
	dlerror();
}

__attribute__((constructor)) static void stub_load(void)
{
	const char *configuration = getenv(INCSTACK__HEAP_VARIABLE);
	const struct incstack__recorder *recorder;

	if (!configuration || *configuration == '\0')
		return;
	recorder = open_recorder(configuration);
	if (!recorder)
		forget_error();
	atomic_store_explicit(&incstack__stub_recorder, recorder, memory_order_release);
	/* It is registered first and hence runs last. */
	if (recorder)
		at_quick_exit(finish);
}

__attribute__((destructor)) static void stub_unload(void)
{
	finish();
}
