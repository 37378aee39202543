/* SPDX-License-Identifier: MIT
 *
 * Layered validation of native traces. Each layer is checked against the one below it:
 *
 *   0. the truth: a shadow stack that the hooks of -finstrument-functions keep
 *   1. full walks at polls, by libunwind, against the truth
 *   2. incremental traces at polls, against the full walks at the same polls
 *   3. traces of signals at any instruction, against the truth and against the next poll
 *
 * The hooks run after the first instructions of a function and before its last ones. So the shadow never
 * has a frame that is not there, and may lack the youngest one. A trace of a signal may then show that one
 * frame in addition, and above it nothing but the hooks. Between a throw or longjmp and the arrival any number
 * of the youngest may be gone, but no others; and one that the shadow has given up may still be there.
 *
 * Each layer says how many it has compared; zero fails. layers_faulty N has deliberate bug N.
 */
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <incstack/native.h>
#include <incstack/signal.h>

#include "layers/layers.h"
#include "../unit/taken.h"

#define HOOK extern "C" __attribute__((section("layered_hooks"), no_instrument_function))
#define FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

enum { DEPTH = 200, FRAMES = 600, POLLS = 512, SIGNALS = 1024, HANDLED = 4000, QUEUE = 16 };
enum { FROM_HANDLER = 1 << 30, ROOM = 1 << 20 };
enum { BUG_WALK_SHORT = 1 }; /* the full walk ends at the first frame of a library */

extern "C" const char __start_layered_hooks[], __stop_layered_hooks[];
int toyvm_fault; /* the number of the bug: this one, or one of src/trace/fault.h */

/* ---- layer 0: the truth ------------------------------------------------------------------ */

struct entry {
	uintptr_t function, site; /* what was called, and where that returns to */
};

struct shadow {
	volatile int depth, certain;
	entry at[DEPTH];
};

static shadow now;
static volatile int low; /* the least depth since the last poll */

HOOK void __cyg_profile_func_enter(void *function, void *site);
HOOK void __cyg_profile_func_enter(void *function, void *site)
{
	if (now.depth == DEPTH)
		abort();
	now.at[now.depth].function = reinterpret_cast<uintptr_t>(function);
	now.at[now.depth].site = reinterpret_cast<uintptr_t>(site);
	FENCE();
	now.depth = now.depth + 1;
}

HOOK void __cyg_profile_func_exit(void *function, void *site);
HOOK void __cyg_profile_func_exit(void *function, void *)
{
	/* gcc calls it for frames that an exception pops, clang does not. */
	if (now.at[now.depth - 1].function != reinterpret_cast<uintptr_t>(function))
		return;
	now.depth = now.depth - 1;
	if (low > now.depth)
		low = now.depth;
}

static void lower(int depth)
{
	if (low > depth)
		low = depth;
}

int layers_depth()
{
	return now.depth;
}

void layers_leave(int left)
{
	lower(left);
	FENCE();
	now.certain = left;
}

void layers_arrive(int left)
{
	lower(left);
	now.depth = left;
	FENCE();
	now.certain = DEPTH;
}

uint32_t layers_chance(uint32_t n)
{
	static uint32_t seed = 1;
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* ---- what was seen ------------------------------------------------------------------------- */

struct seen {
	uintptr_t pc, sp;
	bool exact;
};
typedef std::vector<seen> chain; /* youngest first */

struct poll {
	shadow truth;
	int low, count; /* the least depth since the poll before */
	incstack_frame walk[FRAMES];
	chain trace;
};

struct asked {
	shadow truth;
	int poll; /* the next one */
	chain trace;
	bool truncated;
};

static struct layer {
	const char *name;
	uint64_t compared, mismatches;
} layers[] = {{"full walks at polls", 0, 0},
	      {"incremental at polls", 0, 0},
	      {"signals against the truth", 0, 0},
	      {"signals against polls", 0, 0}};

static struct incstack_runtime *runtime;
static struct incstack_stack *stack;
static poll polls[POLLS];
static asked requests[SIGNALS];
static volatile int poll_count, request_count, handled;
static uint64_t biased, refused;
static timer_t timer;

static void compared(int layer, bool equal)
{
	layers[layer].compared++;
	layers[layer].mismatches += !equal;
}

static bool in_program(const seen &f)
{
	const uintptr_t at = f.pc - !f.exact;
	return at >= reinterpret_cast<uintptr_t>(__start_layered) &&
	       at < reinterpret_cast<uintptr_t>(__stop_layered);
}

static bool in_hooks(const seen &f)
{
	const uintptr_t at = f.pc - !f.exact;
	return at >= reinterpret_cast<uintptr_t>(__start_layered_hooks) &&
	       at < reinterpret_cast<uintptr_t>(__stop_layered_hooks);
}

static uintptr_t function_of(const seen &f)
{
	uintptr_t best = 0;
	for (int i = 0; i < layered_count; i++)
		if (layered_functions[i] <= f.pc - !f.exact && layered_functions[i] > best)
			best = layered_functions[i];
	return best;
}

/* Where in the chain the frames of the program are. */
static std::vector<size_t> program_frames(const chain &c)
{
	std::vector<size_t> at;
	for (size_t i = 0; i < c.size(); i++)
		if (in_program(c[i]))
			at.push_back(i);
	return at;
}

/* Whether the frame matches the entry of the shadow: its function, and the position of its
 * caller. */
static bool is_entry(const chain &c, size_t i, const entry &e)
{
	return function_of(c[i]) == e.function && (i + 1 == c.size() || c[i + 1].pc == e.site);
}

/* How many frames the chain may have more than the shadow: one that was just entered, or is about to
 * return, if only the hooks are above it. */
static size_t extra_allowed(const chain &c)
{
	const std::vector<size_t> at = program_frames(c);
	return !at.empty() && std::all_of(c.begin(), c.begin() + (long)at[0], in_hooks);
}

/* Checks that the chain equals the shadow, from the base on; or to its end, if it is truncated. */
static bool is_true(const chain &c, const shadow &truth, bool truncated, size_t extra)
{
	const std::vector<size_t> at = program_frames(c);
	const size_t depth = (size_t)truth.depth, count = at.size();
	for (size_t i = extra; i < count; i++)
		if (i - extra == depth || !is_entry(c, at[i], truth.at[depth - 1 - (i - extra)]))
			return false;
	return truncated || count == depth + extra;
}

/* ---- layers 1 and 2: at polls ---------------------------------------------------------------- */

static void check();

static chain chain_of(const incstack_frame *frames, int count)
{
	chain c;
	for (int i = 0; i < count; i++) {
		c.push_back({frames[i].pc, frames[i].sp, false});
		if (toyvm_fault == BUG_WALK_SHORT && !in_program(c.back()))
			break;
	}
	return c;
}

__attribute__((noinline)) void layers_poll()
{
	if (poll_count == POLLS || request_count > SIGNALS / 2)
		check();
	const incstack_top here = incstack_native_top(nullptr);
	if (incstack_stack_queue_drain(stack, &here))
		refused++;
	poll &p = polls[poll_count];
	incstack_frame frames[FRAMES + 1];
	p.truth = now;
	p.low = low;
	low = now.depth;
	const int count = incstack_native_walk(frames, FRAMES + 1);
	if (count < 3 || count > FRAMES)
		abort();
	p.count = count - 1;
	std::copy(frames + 1, frames + count, p.walk);
	struct incstack_top top = {};
	top.pc = frames[1].pc;
	top.sp = frames[1].sp;
	top.fp = frames[1].fp;
	if (incstack_stack_sample(stack, (uint64_t)poll_count, 1, &top))
		abort();
	FENCE();
	poll_count = poll_count + 1;
}

static chain chain_of(const struct incstack_trace *t, bool *truncated)
{
	chain c;
	for (const struct incstack_frame_object *o = t->top; o; o = o->parent) {
		c.push_back({o->function, o->address, (o->flags & INCSTACK_OBJECT_EXACT) != 0});
		*truncated = o->flags & INCSTACK_OBJECT_TRUNCATED;
	}
	return c;
}

static bool same(const seen &a, const seen &b)
{
	return a.pc == b.pc && a.sp == b.sp;
}

static void check_poll(poll &p, const struct incstack_trace *t)
{
	bool truncated = false;
	const chain walk = chain_of(p.walk, p.count);
	p.trace = chain_of(t, &truncated);
	compared(0, is_true(walk, p.truth, false, 0));
	compared(1, p.trace.size() <= walk.size() && (truncated || p.trace.size() == walk.size()) &&
			    std::equal(p.trace.begin(), p.trace.end(), walk.begin(), same));
	if (truncated)
		p.trace.clear();
}

/* ---- layer 3: signals ---------------------------------------------------------------------- */

static void arm()
{
	static uint32_t state = 7;
	state = state * 1664525u + 1013904223u;
	struct itimerspec when = {};
	when.it_value.tv_nsec = 2000 + (long)(state >> 8) % 60000;
	timer_settime(timer, 0, &when, nullptr);
}

static void on_signal(int, siginfo_t *, void *context)
{
	if (request_count < SIGNALS) {
		asked &a = requests[request_count];
		a.truth = now;
		a.poll = poll_count;
		if (incstack_stack_sample_signal(stack, (uint64_t)request_count | FROM_HANDLER, 1,
						 context) < 0)
			refused++;
		request_count = request_count + 1;
	}
	handled = handled + 1;
	if (handled < HANDLED)
		arm();
}

/* Frames older than the youngest one of the program that was active all the time are the same at the
 * signal and at the next poll. */
static void check_next_poll(const asked &a, const poll &p, int least)
{
	const std::vector<size_t> x = program_frames(a.trace), y = program_frames(p.trace);
	const size_t stayed = (size_t)std::min(least, p.low);
	if (!stayed || a.truncated || p.trace.empty() || x.size() < stayed || y.size() < stayed)
		return;
	const size_t from = x[x.size() - stayed] + 1, to = y[y.size() - stayed] + 1;
	compared(3, a.trace.size() - from == p.trace.size() - to &&
			    std::equal(a.trace.begin() + (long)from, a.trace.end(),
				       p.trace.begin() + (long)to, same));
}

static void check_request(asked &a, const struct incstack_trace *t)
{
	a.truncated = false;
	a.trace = chain_of(t, &a.truncated);
	if (trace_taken(t) == TAKEN_BIASED) {
		biased++;
		a.trace.clear();
		return;
	}
	shadow truth = a.truth;
	bool good = false;
	if (truth.certain < DEPTH) { /* one may have left the shadow, and be in _Unwind_Resume */
		for (truth.depth = truth.depth + 1; truth.depth >= truth.certain && !good;
		     truth.depth = truth.depth - 1)
			good = is_true(a.trace, truth, a.truncated, 0);
	} else {
		for (size_t extra = 0; extra <= extra_allowed(a.trace) && !good; extra++)
			good = is_true(a.trace, truth, a.truncated, extra);
	}
	compared(2, good);
}

static void check()
{
	struct incstack_tree *tree;
	int error;
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	while ((error = incstack_stack_retrieve(stack, &tree)) == INCSTACK_EBUSY)
		continue;
	if (error)
		abort();
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		if (!(t->id & FROM_HANDLER))
			check_poll(polls[t->id], t);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		if (t->id & FROM_HANDLER)
			check_request(requests[t->id & (FROM_HANDLER - 1)], t);
	for (int i = 0; i < request_count; i++)
		if (requests[i].poll < poll_count && !requests[i].trace.empty())
			check_next_poll(requests[i], polls[requests[i].poll],
					requests[i].truth.certain);
	for (asked &a : requests)
		a.trace.clear();
	poll_count = 0;
	request_count = 0;
	low = now.depth;
	incstack_tree_release(tree);
	if (incstack_stack_reserve(stack, ROOM))
		abort();
	sigprocmask(SIG_SETMASK, &before, nullptr);
}

static void open_all()
{
	struct incstack_options options = {};
	struct sigaction action = {};
	struct sigevent event = {};
	options.size = sizeof(options);
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGPROF;
	now.certain = DEPTH;
	if (incstack_runtime_create_native(&options, &runtime) ||
	    incstack_stack_create_native(runtime, &stack) || incstack_stack_reserve(stack, ROOM) ||
	    incstack_stack_queue_resize(stack, QUEUE) || sigaction(SIGPROF, &action, nullptr) ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer))
		abort();
}

int main(int argc, char **argv)
{
	bool good = true;
	toyvm_fault = argc > 1 ? atoi(argv[1]) : 0;
	open_all();
	for (arm(); handled < HANDLED;)
		layered_work(24);
	timer_delete(timer);
	const incstack_top top = incstack_native_top(nullptr);
	if (incstack_stack_queue_drain(stack, &top))
		refused++;
	check();
	for (const layer &l : layers) {
		printf("%s: compared %llu, mismatches %llu\n", l.name,
		       (unsigned long long)l.compared, (unsigned long long)l.mismatches);
		good &= l.compared && !l.mismatches;
	}
	printf("biased %llu, refused %llu\n", (unsigned long long)biased,
	       (unsigned long long)refused);
	return !good;
}
