/* SPDX-License-Identifier: MIT
 *
 * Measures what a trace at every allocation costs a real program. It replaces the recorder of
 * `incstack heap` behind the same stub, and changes the technique of tracing from one short window
 * of allocations to the next. The windows form blocks with one window of each technique, in random
 * order. When the program ends, it writes the time of each window. bench/programs/windows.py
 * computes the figures.
 *
 * It traces only the thread that loaded it.
 */
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <libunwind.h>

#include <incstack/native.h>

#include "interpose/preload.h"

enum technique { COUNT, UNW_BACKTRACE, FULL, VALIDATE, PATCH, TECHNIQUES };

enum { DEPTH_MAX = 4096, WINDOWS_MAX = 1 << 20, AHEAD_BYTES = 256 << 10, WARM_UP = 8, BATCH = 32 };

static const char *const names[TECHNIQUES] = {"count", "unw_backtrace", "full", "validate",
					      "patch"};

struct window {
	uint32_t technique;
	uint32_t traces;
	int64_t ns;
};

static struct {
	int busy;
	pid_t pid;
	uintptr_t thread, low, high;
	/* Each technique has its own cache of rules, as libunwind has, and fills it as it runs. */
	struct incstack_runtime *runtimes[TECHNIQUES];
	struct incstack_stack *stacks[TECHNIQUES];

	enum technique order[TECHNIQUES];
	unsigned at;   /* in order */
	uint64_t left; /* allocations of this window, or of its untimed beginning */
	int warm;
	int64_t start;
	uint64_t length, random;
	uint32_t traces;

	struct window *windows;
	uint64_t count;
	uint64_t errors, elsewhere;
	uint64_t traced[TECHNIQUES], objects[TECHNIQUES]; /* traces and objects retrieved */
	const char *file;
	/* The function of libunwind. The stub has another one of this name, for programs that show
	 * their return addresses. */
	int (*unw_backtrace)(void **pcs, int most);
} state;

static void *pcs[DEPTH_MAX];

static uintptr_t self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* The time of the thread. Other threads on the same processor do not count. */
static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int traces_with_us(enum technique t)
{
	return t == FULL || t == VALIDATE || t == PATCH;
}

/* ---- windows ---------------------------------------------------------------------- */

static void shuffle(void)
{
	for (unsigned i = TECHNIQUES - 1; i > 0; i--) {
		state.random = state.random * 6364136223846793005u + 1442695040888963407u;
		unsigned j = (unsigned)(state.random >> 33) % (i + 1);
		enum technique t = state.order[i];
		state.order[i] = state.order[j];
		state.order[j] = t;
	}
}

static void retrieve(enum technique t)
{
	struct incstack_tree *tree;
	if (!traces_with_us(t))
		return;
	if (incstack_stack_retrieve(state.stacks[t], &tree)) {
		state.errors++;
		return;
	}
	state.traced[t] += tree->count;
	state.objects[t] += tree->objects;
	incstack_tree_release(tree);
}

/* Only PATCH writes to the stack, and only during its window. */
static void set_mode(enum technique t, enum incstack_mode mode)
{
	struct incstack_stack *stack = state.stacks[t];
	state.errors +=
		incstack_stack_reserve(stack, AHEAD_BYTES) || incstack_stack_set_mode(stack, mode);
}

/* The first allocations of a window are not timed. They meet what the previous technique left in
 * the caches, and plant the first barriers. */
static void begin_window(void)
{
	enum technique t = state.order[state.at];
	if (t == PATCH)
		set_mode(t, INCSTACK_MODE_PATCH);
	state.warm = 1;
	state.left = WARM_UP;
}

static void begin_timing(void)
{
	retrieve(state.order[state.at]);
	state.warm = 0;
	state.traces = 0;
	state.left = state.length;
	state.start = now();
}

static void end_window(void)
{
	enum technique t = state.order[state.at];
	retrieve(t);
	int64_t ns = now() - state.start;
	if (t == PATCH)
		set_mode(t, INCSTACK_MODE_FULL);
	if (state.count < WINDOWS_MAX)
		state.windows[state.count++] = (struct window){t, state.traces, ns};
	if (++state.at == TECHNIQUES) {
		state.at = 0;
		shuffle();
	}
	begin_window();
}

/* ---- events ------------------------------------------------------------------------ */

static void sample(enum technique t, struct incstack__caller caller)
{
	const struct incstack_top top = {
		.pc = *caller.slot, .sp = (uintptr_t)(caller.slot + 1), .fp = caller.fp};
	if (state.traces % BATCH == 0 && incstack_stack_reserve(state.stacks[t], AHEAD_BYTES))
		state.errors++;
	if (incstack_stack_sample(state.stacks[t], state.traces, 1, &top))
		state.errors++;
}

static void on_alloc(const void *block, size_t bytes, struct incstack__caller caller)
{
	(void)block;
	(void)bytes;
	if (self() != state.thread || state.busy)
		return;
	if ((uintptr_t)caller.slot - state.low >= state.high - state.low) {
		state.elsewhere++;
		return;
	}
	const int saved = errno;
	state.busy = 1;
	if (state.left == 0) {
		if (state.warm)
			begin_timing();
		else
			end_window();
	}
	state.left--;
	enum technique t = state.order[state.at];
	if (t == UNW_BACKTRACE)
		state.errors += state.unw_backtrace(pcs, DEPTH_MAX) <= 0;
	else if (t != COUNT)
		sample(t, caller);
	state.traces++;
	state.busy = 0;
	errno = saved;
}

static void on_free(const void *block)
{
	(void)block;
}

static void on_thread(void)
{
}

static void on_jump(uintptr_t sp)
{
	enum technique t = state.order[state.at];
	if (self() != state.thread || state.busy || t != PATCH ||
	    sp - state.low >= state.high - state.low)
		return;
	state.busy = 1;
	incstack_stack_unwinding_to(state.stacks[t], sp);
	state.busy = 0;
}

static void on_unload(enum incstack__unload what, const void *address)
{
	(void)address;
	for (enum technique t = FULL; what == INCSTACK__UNLOAD_ENDED && t < TECHNIQUES; t++)
		incstack_runtime_code_unloading(state.runtimes[t], NULL, 0, UINTPTR_MAX);
}

static void on_exec(void)
{
}

/* ---- the end ------------------------------------------------------------------------ */

static void write_statistics(FILE *out)
{
	for (enum technique t = FULL; t < TECHNIQUES; t++) {
		struct incstack_stats s = {.size = sizeof(s)};
		incstack_stack_stats(state.stacks[t], &s);
		fprintf(out,
			"#%s traces=%llu objects=%llu returns=%llu truncated=%llu distance=%u\n",
			names[t], (unsigned long long)state.traced[t],
			(unsigned long long)state.objects[t], (unsigned long long)s.returns,
			(unsigned long long)s.truncated, s.distance);
	}
	fprintf(out, "#errors=%llu elsewhere=%llu\n", (unsigned long long)state.errors,
		(unsigned long long)state.elsewhere);
}

static void on_exit_process(void)
{
	if (getpid() != state.pid || !state.file)
		return;
	state.busy = 1;
	if (state.order[state.at] == PATCH)
		set_mode(PATCH, INCSTACK_MODE_FULL);
	FILE *out = fopen(state.file, "w");
	state.file = NULL;
	if (!out)
		return;
	fputs("technique,traces,ns\n", out);
	for (uint64_t i = 0; i < state.count; i++) {
		const struct window *w = &state.windows[i];
		fprintf(out, "%s,%u,%lld\n", names[w->technique], w->traces, (long long)w->ns);
	}
	write_statistics(out);
	fclose(out);
}

/* ---- the start ----------------------------------------------------------------------- */

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 10) : otherwise;
}

static int open_technique(enum technique t)
{
	static const uint32_t modes[TECHNIQUES] = {[FULL] = INCSTACK_MODE_FULL,
						   [VALIDATE] = INCSTACK_MODE_VALIDATE,
						   [PATCH] = INCSTACK_MODE_FULL};
	struct incstack_options options = {
		.size = sizeof(options),
		.mode = modes[t],
		.distance = (uint32_t)number("INCSTACK_WINDOWS_DISTANCE", 0),
	};
	return incstack_runtime_create_native(&options, &state.runtimes[t]) ||
	       incstack_stack_create_native(state.runtimes[t], &state.stacks[t]);
}

/* Makes all windows use one technique, for a look with a profiler. */
static void only(const char *name)
{
	for (enum technique t = 0; t < TECHNIQUES; t++)
		if (strcmp(name, names[t]) == 0)
			for (unsigned i = 0; i < TECHNIQUES; i++)
				state.order[i] = t;
}

__attribute__((visibility("default"))) incstack__recorder_start_fn incstack__recorder_start;

static void on_forbid(enum incstack__forbidden what, const void *filter)
{
	(void)what;
	(void)filter;
}

static int on_close(unsigned low, unsigned high)
{
	(void)low;
	(void)high;
	return -1;
}

static void on_replace(int fd)
{
	(void)fd;
}

static uint64_t position(void)
{
	return 0;
}

static void on_switch(const void *to)
{
	(void)to;
}

static void on_shown(uintptr_t *slot)
{
	(void)slot;
}

static void on_walk(uintptr_t *slot, bool by_caller)
{
	(void)slot;
	(void)by_caller;
}

static void on_lookup(uintptr_t caller, bool certain)
{
	(void)caller;
	(void)certain;
}

static const void *real_address(const void *address)
{
	return address;
}

static void on_new(const void *block, size_t bytes, struct incstack__caller caller, uint64_t since)
{
	(void)since;
	on_alloc(block, bytes, caller);
}

const struct incstack__recorder *
incstack__recorder_start(const char *configuration, const struct incstack__linker_view *before,
			 struct incstack__range stub)
{
	(void)stub;
	static const struct incstack__recorder table = {.on_alloc = on_alloc,
							.on_free = on_free,
							.on_new = on_new,
							.on_close = on_close,
							.on_forbid = on_forbid,
							.on_replace = on_replace,
							.position = position,
							.on_thread = on_thread,
							.on_jump = on_jump,
							.on_thread_end = on_thread,
							.on_switch = on_switch,
							.on_unload = on_unload,
							.on_shown = on_shown,
							.on_walk = on_walk,
							.on_lookup = on_lookup,
							.real_address = real_address,
							.on_exec = on_exec,
							.on_exit = on_exit_process};
	(void)configuration;
	(void)before;
	state.pid = getpid();
	state.thread = self();
	state.file = getenv("INCSTACK_WINDOWS_FILE");
	state.length = number("INCSTACK_WINDOWS_LENGTH", 512);
	state.random = number("INCSTACK_WINDOWS_SEED", 1);
	*(void **)&state.unw_backtrace = dlsym(dlopen("libunwind.so.8", RTLD_NOW), "unw_backtrace");
	state.windows = mmap(NULL, WINDOWS_MAX * sizeof(struct window), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!state.file || !state.unw_backtrace || state.length == 0 ||
	    state.windows == MAP_FAILED || incstack_native_stack_range(&state.low, &state.high))
		return NULL;
	for (enum technique t = 0; t < TECHNIQUES; t++) {
		state.order[t] = t;
		if (traces_with_us(t) && open_technique(t))
			return NULL;
	}
	shuffle();
	if (getenv("INCSTACK_WINDOWS_ONLY"))
		only(getenv("INCSTACK_WINDOWS_ONLY"));
	begin_window();
	return &table;
}
