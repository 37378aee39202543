/* SPDX-License-Identifier: MIT
 *
 * How the unwinder gets into jemalloc: by its mallctl, on a call, or by itself if the library is preloaded.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "incstack_jemalloc.h"

typedef void backtrace_hook(void **frames, unsigned *length, unsigned max);

/* Where the malloc of the process has it, with the prefixes that are in use. */
extern incstack_jemalloc_control mallctl __attribute__((weak));
extern incstack_jemalloc_control je_mallctl __attribute__((weak));
extern incstack_jemalloc_control _rjem_mallctl __attribute__((weak));

/* Why the library is not the unwinder. */
enum refusal {
	STARTED,
	OTHER_MALLOC,
	NO_PROFILING,
	NOT_SWITCHED_ON,
	NO_HOOK,
	BEHIND_LIBC,
	NO_MEMORY,
	REFUSALS
};

static const char *const reasons[REFUSALS] = {
	[OTHER_MALLOC] = "this program's malloc is not jemalloc; preload libjemalloc.so.2, too",
	[NO_PROFILING] =
		"this jemalloc cannot profile; use one that was configured with --enable-prof",
	[NOT_SWITCHED_ON] =
		"jemalloc does not profile; start the program with MALLOC_CONF=prof:true",
	[NO_HOOK] =
		"this jemalloc takes no other unwinder and keeps its own; use version 5.3 or later",
	[BEHIND_LIBC] = "the library comes after libc, so it does not hear of dlclose; preload it, "
			"or link the program with it",
	[NO_MEMORY] = "there is no memory for unwind rules, so jemalloc keeps its own unwinder",
};

static bool is_started;

static incstack_jemalloc_control *find_control(void)
{
	if (mallctl)
		return mallctl;
	return je_mallctl ? je_mallctl : _rjem_mallctl;
}

/* Reads a truth of jemalloc's. Returns false also if jemalloc does not know it. */
static bool is_set(incstack_jemalloc_control *control, const char *name)
{
	bool value = false;
	size_t bytes = sizeof(value);

	return control(name, &value, &bytes, NULL, 0) == 0 && value;
}

static enum refusal start(incstack_jemalloc_control *control)
{
	backtrace_hook *hook = incstack__jemalloc_backtrace;

	if (!control)
		return OTHER_MALLOC;
	if (!is_set(control, "config.prof"))
		return NO_PROFILING;
	if (!is_set(control, "opt.prof"))
		return NOT_SWITCHED_ON;
	if (!incstack__jemalloc_hears_unloads())
		return BEHIND_LIBC;
	if (incstack__jemalloc_prepare())
		return NO_MEMORY;
	if (control("experimental.hooks.prof_backtrace", NULL, NULL, &hook, sizeof(hook)))
		return NO_HOOK;
	return STARTED;
}

const char *incstack_jemalloc_start(incstack_jemalloc_control *control)
{
	const enum refusal refusal =
		is_started ? STARTED : start(control ? control : find_control());

	is_started = refusal == STARTED;
	return reasons[refusal];
}

/* ---- preloaded --------------------------------------------------------------------------- */

/* Whether this process or one that it comes from has said the same already. */
static bool was_said(const char *why)
{
	static const char name[] = "INCSTACK_JEMALLOC_SAID";
	const char *said = getenv(name);
	char all[1024];

	if (said && strstr(said, why))
		return true;
	(void)snprintf(all, sizeof(all), "%s%s. ", said ? said : "", why);
	setenv(name, all, 1);
	return false;
}

__attribute__((constructor)) static void preloaded(void)
{
	const char *preload = getenv("LD_PRELOAD");
	const char *why;

	if (!preload || !strstr(preload, "libincstack_jemalloc"))
		return;
	why = incstack_jemalloc_start(NULL);
	if (why && !was_said(why))
		(void)fprintf(stderr, "incstack-jemalloc: %s\n", why);
}
