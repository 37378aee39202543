/* SPDX-License-Identifier: MIT
 *
 * A check of the traces that show Lua's frames and the machine's, in place of profile_mixed.c. At each sample
 * libunwind walks the machine's stack, and a walk by hand Lua's frames. The two are put together by the
 * names of the machine's functions, not by addresses: luaV_execute runs the next frames of Lua down to a fresh
 * one, luaD_precall the next C function, lua_resume what is left of a coroutine. When the traces are
 * retrieved, each must be the same, frame by frame.
 *
 * checks.h has the settings. The global function `host_call` is a C function of a host: it calls its
 * first argument, from the innermost of three C functions.
 */
#include <string.h>

#include <incstack/native.h>

#include "checks.h"
#include "symbols.h"

#include "lauxlib.h"

enum {
	FRAMES_MAX = 1 << 18, /* frames to remember; then the traces are retrieved */
	TRACES_MAX = 1 << 10, /* traces to remember */
	MACHINE_MAX = 1 << 14,
};

/* One frame of either stack. */
struct seen {
	struct incstack_frame machine; /* sp is 0 if it is a frame of Lua */
	struct step step;
	int runs; /* a machine frame that runs the frames before it */
};

/* The check of one state. */
struct check {
	struct seen *frames;
	size_t frame_count, frame_room;
	struct expected traces[TRACES_MAX];
	uint64_t trace_count, first_id; /* of those that were not retrieved yet */
	uint64_t compared, compared_frames, machine_frames, runs, mismatches, coroutines;
	struct polls polls;
	unsigned int until, until_retrieve;
	struct incstack_frame walked[MACHINE_MAX];
};

/* ---- what is expected ------------------------------------------------------------------ */

static void remember(struct check *check, struct seen seen)
{
	check->frames =
		with_room(check->frames, check->frame_count, &check->frame_room, sizeof(seen));
	check->frames[check->frame_count++] = seen;
}

/* The next frame of Lua. */
struct place {
	const lua_State *L;
	const CallInfo *ci;
};

static void take(struct check *check, struct place *at)
{
	if (!at->ci)
		return;
	remember(check, (struct seen){.step = step_of(at->L, at->ci)});
	at->ci = at->ci->previous;
	if (!at->ci) {
		check->coroutines += at->L->incstack_from != NULL;
		at->L = at->L->incstack_from;
		at->ci = at->L ? at->L->ci : NULL;
	}
}

static void take_until_fresh(struct check *check, struct place *at)
{
	int is_fresh = 0;
	while (at->ci && !is_fresh) {
		check->mismatches += !isLua(at->ci);
		is_fresh = at->ci->callstatus & CIST_FRESH;
		take(check, at);
	}
}

static void take_coroutine(struct check *check, struct place *at)
{
	const lua_State *L = at->L;
	while (at->ci && at->L == L)
		take(check, at);
}

/* The base of a coroutine that is being closed has no machine frame of its own. */
static void take_c(struct check *check, struct place *at)
{
	while (at->ci && !at->ci->previous && at->L->incstack_from)
		take(check, at);
	check->mismatches += !at->ci || isLua(at->ci);
	take(check, at);
}

/* The name without the suffixes of parts that the compiler has split off. */
static int is(const char *name, const char *function)
{
	const size_t length = strlen(function);
	return name && strncmp(name, function, length) == 0 &&
	       (!name[length] || name[length] == '.');
}

/* Whether luaD_precall, which has called `callee`, runs a C function: it may still be making room for one. */
static int has_called(const char *callee)
{
	return !callee || (strncmp(callee, "luaC_", 5) != 0 && !is(callee, "luaD_growstack") &&
			   !is(callee, "luaD_tryfuncTM"));
}

static void take_frames_of(struct check *check, struct place *at, const char *name,
			   const char *callee)
{
	if (is(name, "luaV_execute"))
		take_until_fresh(check, at);
	else if ((is(name, "luaD_precall") || is(name, "luaD_pretailcall") ||
		  is(name, "precallC")) &&
		 has_called(callee))
		take_c(check, at);
	else if (is(name, "precover") || (is(name, "lua_resume") && !is(callee, "precover")))
		take_coroutine(check, at);
}

/* Writes down all frames. Returns how many. */
static size_t walk(struct check *check, const lua_State *L)
{
	struct expected *trace = &check->traces[check->trace_count++];
	struct place at = {L, L->ci};
	const char *callee = NULL;
	const int n = incstack_native_walk(check->walked, MACHINE_MAX);
	trace->first = check->frame_count;
	for (int i = 0; i < n; i++) {
		const size_t before = check->frame_count;
		const char *name = symbols_name(check->walked[i].pc - 1);
		take_frames_of(check, &at, name, callee);
		remember(check, (struct seen){.machine = check->walked[i],
					      .runs = check->frame_count != before});
		callee = name;
	}
	while (at.ci)
		take(check, &at);
	check->mismatches += n <= 0 || n == MACHINE_MAX;
	trace->count = check->frame_count - trace->first;
	return trace->count;
}

/* The sample is taken here, so the caller takes none. */
int incstack_lua_due(struct incstack_lua *lua, uint64_t *id, uint64_t *weight)
{
	struct check *check = lua->user;
	(void)id;
	(void)weight;
	if (check->until--)
		return 0;
	if (!check->until_retrieve-- || check->frame_count > FRAMES_MAX ||
	    check->trace_count == TRACES_MAX) {
		incstack_lua_collect(lua);
		check->until_retrieve =
			below(&check->polls.random, below(&check->polls.random, 4) ? 64 : 1024);
	}
	const uint64_t number = check->first_id + check->trace_count;
	check->until = below(&check->polls.random, 2 * check->polls.every - 1) +
		       (unsigned int)(walk(check, lua->running) / 8);
	lua->failures += incstack_lua_mixed_sample(lua, number, number + 1) != 0;
	return 0;
}

/* ---- what the library says ------------------------------------------------------------- */

/* Of the youngest machine frame, libunwind's position is another one: it walked a moment earlier. */
static int is_right_frame(const struct incstack_lua *lua, const struct incstack_mixed_frames *f,
			  const struct seen *seen, int is_top)
{
	if (f->flags != (seen->runs ? INCSTACK_MIXED_RUNS : 0u))
		return 0;
	if (!seen->machine.sp)
		return f->heap && is_same(lua, &f->heap->frame, &seen->step);
	return f->machine && f->machine->address == seen->machine.sp &&
	       (is_top || f->machine->function == seen->machine.pc);
}

/* A loop whose frames are not shown would be loose. */
static int expect(void *unused, const struct incstack_frame_object *machine)
{
	(void)unused;
	return is(symbols_name((uintptr_t)machine->function - 1), "luaV_execute")
		       ? INCSTACK_MIXED_ALWAYS
		       : INCSTACK_MIXED_MAYBE;
}

static int is_right(struct incstack_lua *lua, const struct incstack_mixed_trace *trace,
		    const struct expected *expected)
{
	struct check *check = lua->user;
	struct incstack_mixed_frames f;
	if (trace->weight != trace->id + 1 ||
	    incstack_mixed_frames_begin(&f, trace, expect, NULL) != 0)
		return 0;
	for (size_t i = 0; i < expected->count; i++) {
		const struct seen *seen = &check->frames[expected->first + i];
		if (incstack_mixed_frames_next(&f) != 1 || !is_right_frame(lua, &f, seen, i == 0))
			return 0;
		check->machine_frames += f.machine != NULL;
		check->runs += seen->runs;
	}
	return incstack_mixed_frames_next(&f) == 0 && !f.loose && !f.truncated;
}

void incstack_lua_collect(struct incstack_lua *lua)
{
	struct check *check = lua->user;
	struct incstack_mixed_tree tree;
	struct incstack_mixed_trace trace = {0};
	uint64_t count = 0;
	if (incstack_lua_mixed_retrieve(lua, &tree) != 0) {
		lua->failures++;
		return;
	}
	while (incstack_mixed_tree_next(&tree, &trace) > 0) {
		const struct expected *expected = &check->traces[trace.id - check->first_id];
		count++;
		check->compared_frames += expected->count;
		check->mismatches += !is_right(lua, &trace, expected);
	}
	incstack_mixed_tree_release(&tree);
	check->compared += count;
	check->mismatches += count != check->trace_count; /* a trace is missing */
	check->first_id += check->trace_count;
	check->trace_count = check->frame_count = 0;
}

/* ---- begin and end --------------------------------------------------------------------- */

static void report(const struct incstack_lua *lua, const struct incstack_heap_stats *stats)
{
	const struct check *check = lua->user;
	const struct incstack_stats machine = incstack_lua_mixed_stats(lua);
	const struct count counts[] = {{"traces", check->compared},
				       {"frames", check->compared_frames},
				       {"machine_frames", check->machine_frames},
				       {"runs", check->runs},
				       {"coroutines", check->coroutines},
				       {"returns", stats->returns},
				       {"machine_returns", machine.returns},
				       {"machine_unwound", machine.unwound},
				       {"machine_shared", machine.shared},
				       {"mismatches", check->mismatches},
				       {"truncated", stats->truncated + machine.truncated},
				       {"stale", stats->stale + machine.stale},
				       {"lost", stats->lost + machine.lost_limit +
							machine.lost_busy + machine.lost_unwind},
				       {"failures", lua->failures}};
	report_counts(counts, sizeof(counts) / sizeof(counts[0]));
}

int incstack_lua_user_open(struct incstack_lua *lua, struct incstack_heap_options *options)
{
	struct check *check = lua->user = calloc(1, sizeof(*check));
	return check && symbols_open() && read_settings(options, &check->polls) &&
	       incstack_lua_mixed_open(lua, options);
}

void incstack_lua_user_close(struct incstack_lua *lua)
{
	struct check *check = lua->user;
	struct incstack_heap_stats stats = {.size = sizeof(stats)};
	if (lua->mixed && incstack_heap_stack_stats(lua->stack, &stats) == 0)
		report(lua, &stats);
	incstack_lua_mixed_close(lua);
	if (check)
		free(check->frames);
	free(check);
	forget_started(lua);
}

/* ---- a host's C functions -------------------------------------------------------------- */

#define NOINLINE __attribute__((noinline))

static NOINLINE int innermost(lua_State *L)
{
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

static NOINLINE int inner(lua_State *L)
{
	const int results = innermost(L);
	luaL_checkstack(L, 10, "results");
	return results;
}

static int host_call(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	const int results = inner(L);
	return results > 0 ? results : 0;
}

void incstack_lua_start(lua_State *L)
{
	lua_register(L, "host_call", host_call);
	start(L);
}
