/* SPDX-License-Identifier: MIT
 *
 * Samples in a timer's signal handler, at arbitrary instructions of the program, the library and
 * its trampoline, while the program samples, retrieves and returns. The program keeps a shadow
 * of its own frames. Every trace must agree with the shadow at its sample, and every request
 * must be in one counter. Two of the runs have a queue for what cannot be sampled at once; a
 * biased trace must at least end with the frames below the storm.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#include <incstack/native.h>
#include <incstack/signal.h>

#include "../unit/run_suite.h"
#include "../unit/sample_native.h"
#include "../unit/taken.h"

#define NOINLINE __attribute__((noinline))
#define FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

enum { DEPTH = 64, RING = 1 << 12, FROM_HANDLER = 1 << 30, HANDLED = 6000, ALTERNATE = 1 << 16 };
enum { VARIANTS = 6, QUEUE = 16 };

/* A frame of the shadow: where its caller's part of the stack begins, and where
 * it returns to. Entered before the frame makes a call, left after its last. */
struct shadow_frame {
	uintptr_t cfa, resume;
};
struct shadow {
	volatile int depth;
	struct shadow_frame frame[DEPTH];
};

/* What was true at the samples of one asker: the handler, or the program. */
struct asker {
	uint64_t next, checked, requested, taken, queued, biased, compared, truncated, refused[8];
	struct shadow at[RING];
};

static struct incstack_runtime *runtime;
static struct incstack_stack *stack;
static struct shadow now, base;
static struct asker program, handler;
static volatile int handling;
static timer_t timer;
static uint32_t seed = 1;
static char alternate[ALTERNATE];

static uint32_t chance(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* ---- samples ------------------------------------------------------------------ */

static uint64_t begin(struct asker *a)
{
	struct shadow *at = &a->at[a->next % RING];
	at->depth = now.depth;
	memcpy(at->frame, now.frame, sizeof(now.frame[0]) * (size_t)now.depth);
	a->requested++;
	return a->next++;
}

static void end(struct asker *a, int result)
{
	if (result == 0)
		a->taken++;
	else if (result == INCSTACK_QUEUED)
		a->queued++;
	else
		a->refused[-result & 7]++;
}

static void arm(void)
{
	static uint32_t state = 7;
	state = state * 1664525u + 1013904223u;
	struct itimerspec when = {.it_value = {0, 2000 + (long)(state >> 8) % 60000}};
	timer_settime(timer, 0, &when, NULL);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	if (handler.next - handler.checked < RING) { /* else the program got no time to look */
		uint64_t id = begin(&handler);
		end(&handler, incstack_stack_sample_signal(stack, id | FROM_HANDLER, 1, context));
		handling++;
	}
	if (handling < HANDLED)
		arm();
}

static void check_tree(void);

/* The poll is in the caller. */
static inline __attribute__((always_inline)) void drain(void)
{
	const struct incstack_top top = incstack_native_top(NULL);
	ck_assert_int_eq(incstack_stack_queue_drain(stack, &top), 0);
}

static NOINLINE void sample_here(void)
{
	if (program.next % (RING / 2) == 0)
		check_tree(); /* before the ring is full */
	drain();
	uint64_t id = begin(&program);
	end(&program, sample_native(stack, id, 1));
}

/* ---- the program --------------------------------------------------------------- */

#define ENTER() \
	now.frame[now.depth] = \
		(struct shadow_frame){(uintptr_t)__builtin_dwarf_cfa(), return_address()}; \
	FENCE(); \
	now.depth++; \
	FENCE()
#define LEAVE() \
	FENCE(); \
	now.depth--; \
	FENCE()
#define return_address() incstack_slot_read((uintptr_t *)__builtin_dwarf_cfa() - 1)

static NOINLINE long work(int depth);
static jmp_buf *escape;
static int escape_depth;

static NOINLINE long small(int depth)
{
	ENTER();
	long result = depth > 0 ? work(depth - 1) + 1 : 1;
	LEAVE();
	return result;
}

static NOINLINE long large(int depth)
{
	volatile char filler[400];
	ENTER();
	filler[depth] = (char)depth;
	long result = depth > 0 ? work(depth - 1) + filler[depth] : 1;
	if (chance(4) == 0)
		sample_here();
	LEAVE();
	return result;
}

static NOINLINE long busy(int depth)
{
	ENTER();
	long result = depth;
	for (uint32_t n = chance(40); n; n--)
		result += small(0);
	LEAVE();
	return result;
}

/* The shadow may lack frames that live, and never has frames that do not. */
static _Noreturn void jump_out(void)
{
	now.depth = escape_depth;
	FENCE();
	longjmp(*escape, 1);
}

/* Leaves frames that nobody announced. */
static NOINLINE long jumps(int depth)
{
	jmp_buf here, *outer = escape;
	int outer_depth = escape_depth;
	volatile long result = 0;
	ENTER();
	escape = &here;
	escape_depth = now.depth;
	if (setjmp(here) == 0)
		result = work(depth > 6 ? 6 : depth - 1);
	escape = outer;
	escape_depth = outer_depth;
	LEAVE();
	return result;
}

static NOINLINE long work(int depth)
{
	ENTER();
	long result = 0;
	for (uint32_t n = 1 + chance(3); n && depth > 0; n--) {
		switch (chance(8)) {
		case 0:
			sample_here();
			break;
		case 1:
			result += busy(depth - 1);
			break;
		case 2:
			result += chance(4) ? small(depth - 1) : jumps(depth - 1);
			break;
		case 3:
			result += large(depth - 1);
			break;
		case 4:
			if (escape && chance(8) == 0)
				jump_out();
			break;
		default:
			result += small(depth - 1);
		}
	}
	LEAVE();
	return result;
}

/* ---- what must hold -------------------------------------------------------------- */

/* The frames younger than the shadow's youngest are the top, and what it called. */
static const struct incstack_frame_object *skip_young(const struct incstack_trace *t,
						      uintptr_t youngest)
{
	const struct incstack_frame_object *o = t->top;
	while (o && (o->address < youngest || o == t->top) &&
	       !(o->flags & INCSTACK_OBJECT_TRUNCATED))
		o = o->parent;
	return o;
}

/* Whether the chain from o on is that of the frames below the storm. */
static bool is_base(const struct incstack_frame_object *o)
{
	for (int i = 0; i < base.depth; i++, o = o->parent)
		if (!o || o->address != base.frame[i].cfa || o->function != base.frame[i].resume)
			return false;
	return !o;
}

/* Without its top frame, whose callers may have gone on. */
static bool is_biased_trace(const struct incstack_trace *t, struct asker *a)
{
	const struct incstack_frame_object *o = t->top;
	while (o && o->address < base.frame[0].cfa && !(o->flags & INCSTACK_OBJECT_TRUNCATED))
		o = o->parent;
	a->biased++;
	return o && (o->flags & INCSTACK_OBJECT_TRUNCATED || is_base(o));
}

static bool agrees(const struct incstack_trace *t, struct asker *a)
{
	if (trace_taken(t) == TAKEN_BIASED)
		return is_biased_trace(t, a);
	const struct shadow *at = &a->at[(t->id & (FROM_HANDLER - 1)) % RING];
	const struct incstack_frame_object *o;
	o = skip_young(t, at->frame[at->depth - 1].cfa);
	if (o && o->flags & INCSTACK_OBJECT_TRUNCATED && o->address < at->frame[at->depth - 1].cfa)
		return ++a->truncated;
	for (int i = at->depth - 1; i >= 0; i--, o = o->parent) {
		if (!o || o->address != at->frame[i].cfa)
			return false;
		if (o != t->top && o->function != at->frame[i].resume)
			return false;
		if (o->flags & INCSTACK_OBJECT_TRUNCATED)
			return !o->parent && ++a->truncated;
	}
	a->compared++;
	return is_base(o);
}

static void check_tree(void)
{
	struct incstack_tree *tree;
	uint64_t seen = handler.next;
	int error;
	while ((error = incstack_stack_retrieve(stack, &tree)) == INCSTACK_EBUSY)
		;
	ck_assert_int_eq(error, 0);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		ck_assert_msg(agrees(t, t->id & FROM_HANDLER ? &handler : &program),
			      "trace %d of the %s at depth %d", (int)(t->id & (FROM_HANDLER - 1)),
			      t->id & FROM_HANDLER ? "handler" : "program", now.depth);
	handler.checked = seen;
	incstack_tree_release(tree);
	ck_assert_int_eq(incstack_stack_reserve(stack, 1 << 20), 0);
}

/* The frames below the storm, as a full walk has them. */
static NOINLINE void find_base(uintptr_t cfa)
{
	struct incstack_frame frames[DEPTH];
	int count = incstack_native_walk(frames, DEPTH);
	for (int i = 0; i < count; i++)
		if (frames[i].sp > cfa)
			base.frame[base.depth++] =
				(struct shadow_frame){frames[i].sp, frames[i].pc};
}

static NOINLINE void storm(void)
{
	find_base((uintptr_t)__builtin_dwarf_cfa());
	ENTER();
	arm();
	while (handling < HANDLED) {
		for (int i = 0; i < 20; i++)
			work(24);
		check_tree();
	}
	LEAVE();
}

static uint64_t refused(const struct asker *a)
{
	uint64_t sum = 0;
	for (int i = 0; i < 8; i++)
		sum += a->refused[i];
	return sum;
}

/* What is not taken in the handler is refused, or goes through the queue. */
static void check_requests(const struct incstack_stats *stats)
{
	struct incstack_signal_stats signals = {.size = sizeof(signals)};
	ck_assert_int_eq(incstack_stack_signal_stats(stack, &signals), 0);
	ck_assert_uint_eq(signals.requests, handler.requested);
	ck_assert_uint_eq(signals.in_handler, handler.taken);
	ck_assert_uint_eq(stats->samples,
			  program.taken + handler.taken + signals.biased - signals.merged);
	ck_assert_uint_eq(stats->lost_unwind, handler.refused[-INCSTACK_EUNWIND]);
	ck_assert_uint_eq(signals.failed[INCSTACK_FAILED_FULL], handler.refused[-INCSTACK_ELIMIT]);
	ck_assert_uint_eq(signals.failed[INCSTACK_FAILED_UNWIND], stats->lost_unwind);
	ck_assert_uint_eq(signals.failed[INCSTACK_FAILED_BUSY], handler.refused[-INCSTACK_EBUSY]);
	ck_assert_uint_eq(signals.from_queue, 0);
	ck_assert_uint_eq(signals.requests, signals.in_handler + signals.biased + signals.pending +
						    refused(&handler) +
						    signals.failed[INCSTACK_FAILED_LEFT]);
	if (signals.capacity)
		ck_assert_uint_gt(signals.biased, 0);
	ck_assert_uint_eq(handler.biased, signals.biased - signals.merged);
}

static void open_all(bool on_alternate, unsigned distance)
{
	struct incstack_options options = {.size = sizeof(options), .distance = distance};
	stack_t other = {.ss_sp = alternate, .ss_size = ALTERNATE};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
	if (on_alternate) {
		ck_assert_int_eq(sigaltstack(&other, NULL), 0);
		action.sa_flags |= SA_ONSTACK;
	}
	ck_assert_int_eq(incstack_runtime_create_native(&options, &runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(runtime, &stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(stack, 1 << 20), 0);
	ck_assert_int_eq(sigaction(SIGPROF, &action, NULL), 0);
	ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
}

START_TEST(nothing_is_lost_uncounted)
{
	static const unsigned distances[] = {0, 1, 2};
	open_all(_i % 2, distances[_i / 2 % 3]);
	if (_i >= VARIANTS)
		ck_assert_int_eq(incstack_stack_queue_resize(stack, QUEUE), 0);
	storm();
	ck_assert_int_eq(timer_delete(timer), 0);
	drain();
	check_tree();
	struct incstack_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_stack_stats(stack, &stats), 0);
	ck_assert_uint_eq(refused(&program), 0);
	check_requests(&stats);
	ck_assert_uint_eq(program.compared + program.truncated, program.taken);
	ck_assert_uint_eq(handler.compared + handler.truncated, handler.taken);
	ck_assert_uint_gt(handler.compared, HANDLED / 4);
	ck_assert_uint_gt(stats.returns, 0);
	ck_assert_int_eq(stats.truncated > 0, program.truncated + handler.truncated > 0);
	ck_assert(_i % VARIANTS < 2 || stats.stale > 0);
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("signal storm");
	TCase *tc = tcase_create("samples at arbitrary instructions");
#ifndef __SANITIZE_THREAD__ /* it delivers signals late, with registers that are gone */
	tcase_add_loop_test(tc, nothing_is_lost_uncounted, 0, VARIANTS + 2);
#else
	(void)nothing_is_lost_uncounted;
#endif
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
