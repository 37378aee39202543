/* SPDX-License-Identifier: MIT
 *
 * A check of the traces, in place of profile.c. At every sample a walk by hand writes down all frames:
 * the function, and the line, which Lua's own look-up finds. When the traces are retrieved, each must be
 * the same, frame by frame, down to the outermost one of the main coroutine. checks.h has the settings.
 */
#include "checks.h"

enum {
	STEPS_MAX = 1 << 22,  /* frames to remember; then the traces are retrieved */
	TRACES_MAX = 1 << 14, /* traces to remember */
};

/* The check of one state. */
struct check {
	struct step *steps;
	size_t step_count, step_room;
	struct expected traces[TRACES_MAX];
	uint64_t trace_count, first_id; /* of those that were not retrieved yet */
	uint64_t compared, frames, mismatches, deepest, coroutines;
	struct polls polls;
	unsigned int until, until_retrieve;
};

/* ---- what is expected ------------------------------------------------------------------ */

static void remember(struct check *check, struct step step)
{
	check->steps = with_room(check->steps, check->step_count, &check->step_room, sizeof(step));
	check->steps[check->step_count++] = step;
}

/* Writes down all frames. Returns how many. */
static size_t walk(struct check *check, const lua_State *L)
{
	struct expected *trace = &check->traces[check->trace_count++];
	trace->first = check->step_count;
	for (; L; L = L->incstack_from) {
		for (const CallInfo *ci = L->ci; ci; ci = ci->previous)
			remember(check, step_of(L, ci));
		if (!L->incstack_from && L != G(L)->mainthread)
			check->mismatches++;
		if (L->incstack_from && isLua(L->incstack_from->ci))
			check->mismatches++; /* only a C function resumes a coroutine */
		check->coroutines += L->incstack_from != NULL;
	}
	trace->count = check->step_count - trace->first;
	if (trace->count > check->deepest)
		check->deepest = trace->count;
	return trace->count;
}

/* Samples of deep stacks are rarer, because the walk by hand takes longer there. */
int incstack_lua_due(struct incstack_lua *lua, uint64_t *id, uint64_t *weight)
{
	struct check *check = lua->user;
	if (check->until--)
		return 0;
	if (!check->until_retrieve-- || check->step_count > STEPS_MAX ||
	    check->trace_count == TRACES_MAX) {
		incstack_lua_collect(lua);
		check->until_retrieve =
			below(&check->polls.random, below(&check->polls.random, 4) ? 64 : 4096);
	}
	*id = check->first_id + check->trace_count;
	*weight = *id + 1;
	check->until = below(&check->polls.random, 2 * check->polls.every - 1) +
		       (unsigned int)(walk(check, lua->running) / 8);
	return 1;
}

/* ---- what the library says ------------------------------------------------------------- */

static int is_right(const struct incstack_lua *lua, const struct incstack_heap_trace *trace,
		    const struct step *steps, size_t count)
{
	const struct incstack_heap_object *object = trace->top;
	if (trace->weight != trace->id + 1)
		return 0;
	for (size_t i = 0; i < count; i++, object = object->parent) {
		if (!object || !is_same(lua, &object->frame, &steps[i]))
			return 0;
		if (!object->parent)
			return i + 1 == count && object->frame.flags & INCSTACK_HEAP_BASE;
	}
	return 0;
}

void incstack_lua_collect(struct incstack_lua *lua)
{
	struct check *check = lua->user;
	const struct incstack_heap_tree *tree;
	if (incstack_heap_stack_retrieve(lua->stack, (uintptr_t)lua->running->ci, &tree) != 0) {
		lua->failures++;
		return;
	}
	for (const struct incstack_heap_trace *trace = tree->traces; trace; trace = trace->next) {
		const struct expected *expected = &check->traces[trace->id - check->first_id];
		check->compared++;
		check->frames += expected->count;
		check->mismatches +=
			!is_right(lua, trace, &check->steps[expected->first], expected->count);
	}
	check->mismatches += tree->count != check->trace_count; /* a trace is missing */
	check->first_id += check->trace_count;
	check->trace_count = check->step_count = 0;
	incstack_heap_tree_release(tree, lua->stack);
}

/* ---- begin and end --------------------------------------------------------------------- */

static void report(const struct check *check, const struct incstack_heap_stats *stats,
		   uint64_t failures)
{
	const struct count counts[] = {{"traces", check->compared},
				       {"frames", check->frames},
				       {"deepest", check->deepest},
				       {"coroutines", check->coroutines},
				       {"returns", stats->returns},
				       {"shared", stats->shared},
				       {"mismatches", check->mismatches},
				       {"truncated", stats->truncated},
				       {"stale", stats->stale},
				       {"lost", stats->lost},
				       {"failures", failures}};
	report_counts(counts, sizeof(counts) / sizeof(counts[0]));
}

int incstack_lua_user_open(struct incstack_lua *lua, struct incstack_heap_options *options)
{
	struct check *check = lua->user = calloc(1, sizeof(*check));
	return check && read_settings(options, &check->polls);
}

void incstack_lua_user_close(struct incstack_lua *lua)
{
	struct check *check = lua->user;
	struct incstack_heap_stats stats = {.size = sizeof(stats)};
	if (check && incstack_heap_stack_stats(lua->stack, &stats) == 0)
		report(check, &stats, lua->failures);
	if (check)
		free(check->steps);
	free(check);
	forget_started(lua);
}

void incstack_lua_start(lua_State *L)
{
	start(L);
}
