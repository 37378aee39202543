/* SPDX-License-Identifier: MIT
 *
 * Preloaded: gives jemalloc each stack as the adapter walks it, and walks the same stack with jemalloc's own
 * unwinder (libgcc's), in an order that rotates; with INCSTACK_COMPARE_LIBUNWIND, also with libunwind, which waits
 * for ever in the child of a fork that came while another thread was in dl_iterate_phdr. Compares the first two
 * frame by frame and measures the ticks of all. Appends a line to the file INCSTACK_COMPARE when the process ends.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#include "incstack_jemalloc.h"

typedef void hook(void **frames, unsigned *length, unsigned max);

extern incstack_jemalloc_control mallctl __attribute__((weak));

enum { OURS, LIBGCC, LIBUNWIND, UNWINDERS };
enum { FRAMES = 256, INTERRUPTED = 1000000 /* ticks: another thread ran meanwhile */ };

struct stack {
	void *frames[FRAMES];
	unsigned length;
};

static hook *of_adapter, *of_jemalloc;
static int (*of_libunwind)(void **frames, int max);
static _Atomic uint64_t stacks, differing, frames, interrupted, ticks[UNWINDERS];

/* ---- a stack, three times ------------------------------------------------------------------ */

static void walk(int unwinder, struct stack *stack, unsigned max)
{
	stack->length = 0;
	if (unwinder == OURS)
		of_adapter(stack->frames, &stack->length, max);
	else if (unwinder == LIBGCC)
		of_jemalloc(stack->frames, &stack->length, max);
	else if (of_libunwind)
		stack->length = (unsigned)of_libunwind(stack->frames, (int)max);
}

static void tell(const char *name, const struct stack *stack)
{
	fprintf(stderr, "%s, %u:", name, stack->length);
	for (unsigned i = 0; i < stack->length; i++)
		fprintf(stderr, " %p", stack->frames[i]);
	fprintf(stderr, "\n");
}

/* The adapter begins at our own frame, jemalloc's unwinder at itself. Our calls of them differ. */
static void compare(const struct stack *ours, const struct stack *theirs, unsigned max)
{
	const unsigned length = theirs->length - 1;

	atomic_fetch_add(&stacks, 1);
	atomic_fetch_add(&frames, ours->length);
	if ((ours->length == length || (theirs->length == max && ours->length == max)) &&
	    memcmp(ours->frames + 1, theirs->frames + 2, (length - 1) * sizeof(void *)) == 0)
		return;
	if (atomic_fetch_add(&differing, 1) < 3) {
		tell("ours", ours);
		tell("libgcc", theirs);
	}
}

static void backtrace_thrice(void **result, unsigned *length, unsigned max)
{
	static _Atomic unsigned turn;
	struct stack all[UNWINDERS];
	const unsigned first = atomic_fetch_add(&turn, 1);
	uint64_t spent[UNWINDERS];
	int kept = 1;

	for (unsigned i = 0; i < UNWINDERS; i++) {
		const unsigned one = (first + i) % UNWINDERS;
		const uint64_t before = __rdtsc();

		walk((int)one, &all[one], max < FRAMES ? max : FRAMES);
		spent[one] = __rdtsc() - before;
		kept &= spent[one] < INTERRUPTED;
	}
	for (int i = 0; kept && i < UNWINDERS; i++)
		atomic_fetch_add(&ticks[i], spent[i]);
	atomic_fetch_add(&interrupted, !kept);
	compare(&all[OURS], &all[LIBGCC], max < FRAMES ? max : FRAMES);
	memcpy(result, all[OURS].frames, all[OURS].length * sizeof(void *));
	*length = all[OURS].length;
}

/* ---- the beginning and the end ------------------------------------------------------------- */

static hook *current(void)
{
	hook *found = NULL;
	size_t bytes = sizeof(found);

	return mallctl("experimental.hooks.prof_backtrace", &found, &bytes, NULL, 0) ? NULL : found;
}

static void say(void)
{
	char line[512];
	const char *path = getenv("INCSTACK_COMPARE");
	const int file = path && stacks ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
	const struct incstack_jemalloc_counts counts = incstack_jemalloc_count();
	const int size =
		snprintf(line, sizeof(line),
			 "stacks=%llu frames=%llu differ=%llu cut=%llu interrupted=%llu ours=%llu "
			 "libgcc=%llu "
			 "libunwind=%llu\n",
			 (unsigned long long)stacks, (unsigned long long)frames,
			 (unsigned long long)differing, (unsigned long long)counts.cut,
			 (unsigned long long)interrupted, (unsigned long long)ticks[OURS],
			 (unsigned long long)ticks[LIBGCC], (unsigned long long)ticks[LIBUNWIND]);

	if (file >= 0 && write(file, line, (size_t)size) != size)
		perror("compare");
	if (file >= 0)
		close(file);
}

__attribute__((constructor)) static void begin(void)
{
	hook *mine = backtrace_thrice;
	void *library;
	const char *why;

	if (!mallctl)
		return;
	of_jemalloc = current();
	why = incstack_jemalloc_start(NULL);
	if (why) {
		fprintf(stderr, "compare: %s\n", why);
		return;
	}
	of_adapter = current();
	library = getenv("INCSTACK_COMPARE_LIBUNWIND")
			  ? dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)
			  : NULL;
	if (library)
		of_libunwind = (int (*)(void **, int))dlsym(library, "unw_backtrace");
	mallctl("experimental.hooks.prof_backtrace", NULL, NULL, &mine, sizeof(mine));
	atexit(say);
}
