/* SPDX-License-Identifier: MIT
 *
 * Tests samples of signal handlers at random: those that are taken at once, those that wait in the
 * queue, and those whose frame has ended by then. The program knows what each trace must show and how
 * it must be marked.
 */
#include "run_suite.h"
#include "signal_queue.h"
#include "taken.h"

enum { STEPS = 20000, CAPACITY = 8 };

/* A request, by its id. */
static struct asked {
	enum taken taken;
	enum state state;
	unsigned
		depth; /* the frames of that time that are still there; or will be after a return */
	bool waits;
	uint64_t weight;
} asked[SIM_TRACES + 1];
static uint64_t counted[4];  /* traces, by how they were taken */
static uint64_t refused[2];  /* requests: the state is unknown, the queue is full */
static uint64_t sum;         /* requests */
static uint64_t returned_to; /* requests with a caller that stays */

static void note(struct sim_record *r, unsigned depth)
{
	r->count = 0;
	for (unsigned i = depth; i-- > 0;)
		r->count += (unsigned)sim_describe(sim.frames[i].pc, sim.frames[i].fp,
						   &r->frames[r->count]);
}

/* ---- the program ---------------------------------------------------------------------- */

static void drain(void)
{
	const struct sim_frame *f = sim_top();
	struct incstack_top top = {.pc = f->pc, .sp = f->sp, .fp = f->fp};
	top.flags = sim_below(2) ? INCSTACK_TOP_EXACT : 0;
	for (unsigned i = 0; i < sim.pending; i++)
		if (asked[i].waits && asked[i].taken == TAKEN_BIASED)
			note(&sim.records[i], asked[i].depth);
	for (unsigned i = 0; i < sim.pending; i++)
		asked[i].waits = false;
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 0);
}

/* A handler cannot call decode or logical_pc, so it cannot take frames that need these. */
static bool can_describe(void)
{
	for (unsigned i = 0; i < sim.depth; i++)
		if (sim_position_inside(sim.frames[i].function) ||
		    sim.frames[i].resume >= SIM_HANDLER)
			return false;
	return true;
}

/* A handler, and then the interrupted frame runs on. */
static void signal_here(void)
{
	struct asked *a = &asked[sim.pending];
	const uint64_t merged = stats_now().merged;
	state = (enum state)sim_below(STATES);
	if (state == UNKNOWN && sim_below(4))
		state = PROMISED;
	if (state == DESCRIBED && !can_describe())
		state = PROMISED;
	*a = (struct asked){.state = state, .depth = sim.depth, .weight = 1 + sim_below(9)};
	sim.inside = true;
	int result = incstack_stack_sample_signal(sim.s, sim.pending, a->weight, sim_top());
	sim.inside = false;
	sum++;
	if (result == INCSTACK_ERANGE || result == INCSTACK_ELIMIT) {
		ck_assert_int_eq(result == INCSTACK_ERANGE, state == UNKNOWN);
		refused[result == INCSTACK_ELIMIT]++;
		return;
	}
	a->taken = result == 0                               ? TAKEN_IN_HANDLER
		   : state == PROMISED                       ? TAKEN_FROM_QUEUE
		   : state == RETURNING && caller_is_known() ? TAKEN_FROM_QUEUE
							     : TAKEN_BIASED;
	a->depth -= state == ENDING || state == RETURNING;
	returned_to += state == RETURNING && a->taken == TAKEN_FROM_QUEUE;
	a->waits = result == INCSTACK_QUEUED;
	if (stats_now().merged > merged) {
		asked[sim.pending - 1].weight += a->weight;
		return;
	}
	note(&sim.records[sim.pending++], sim.depth);
	sim.taken++;
	if (sim_below(4))
		sim_stand(sim_top());
}

/* Frames have ended without a poll. */
static void left(unsigned depth)
{
	for (unsigned i = 0; i < sim.pending; i++) {
		struct asked *a = &asked[i];
		if (!a->waits || a->depth + (a->state == RETURNING) <= depth)
			continue;
		if (a->depth > depth)
			a->depth = depth;
		a->taken = TAKEN_BIASED;
	}
}

/* Whether the top frame may end without a poll. If so, no request promises that it stays. */
static bool may_end(void)
{
	for (unsigned i = 0; i < sim.pending; i++)
		if (asked[i].waits && asked[i].depth >= sim.depth)
			return false;
	return true;
}

static void step(void)
{
	const uint64_t dice = sim_below(100);
	if (sim.depth < 2 || (dice < 30 && sim.depth < SIM_DEPTH)) {
		sim_call();
	} else if (dice < 62) {
		if (!may_end())
			drain();
		sim_return();
	} else if (dice < 66) {
		sim_unwind((unsigned)sim_below(9));
		left(sim.depth);
	} else if (dice < 70 && !sim.usual) {
		sim_deoptimize();
	} else if (sim.pending < SIM_TRACES) {
		if (dice < 80)
			sim_sample();
		else
			signal_here();
		asked[sim.pending] = (struct asked){0};
	}
}

/* ---- what must hold ----------------------------------------------------------------------- */

/* Whether `old` is a caller of the top, or there is none. */
static bool is_old(const struct incstack_trace *t)
{
	const struct incstack_frame_object *o = t->top->parent;
	while (o && o != t->old)
		o = o->parent;
	return o == t->old;
}

static void compare(const struct incstack_trace *t)
{
	const struct asked *a = &asked[t->id];
	const enum taken taken = trace_taken(t);
	ck_assert_int_eq(taken, a->taken);
	ck_assert_uint_eq(t->weight, a->weight ? a->weight : 1);
	ck_assert(taken == TAKEN_DIRECTLY || is_old(t));
	sim_compare(t);
	counted[taken]++;
}

static void retrieve(void)
{
	struct incstack_tree *tree;
	drain();
	ck_assert_int_eq(incstack_stack_retrieve(sim.s, &tree), 0);
	ck_assert_int_eq(incstack__stack_verify(sim.s), 0);
	ck_assert_uint_eq(tree->count, sim.pending);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		compare(t);
	incstack_tree_release(tree);
	sim.pending = 0;
	memset(asked, 0, sizeof(asked));
}

START_TEST(at_random)
{
	sim.usual = _i >= SIM_VARIANTS;
	open_with_queue(sim_variant(_i % SIM_VARIANTS), CAPACITY);
	memset(asked, 0, sizeof(asked));
	for (int i = 0; i < STEPS; i++) {
		if (sim.pending == 0)
			ck_assert_int_eq(incstack_stack_reserve(sim.s, 4 << 20), 0);
		step();
		if (i % 8 == 0)
			ck_assert_int_eq(incstack__stack_verify(sim.s), 0);
		if (sim.pending >= SIM_TRACES)
			retrieve();
	}
	retrieve();
	const struct incstack_signal_stats stats = stats_now();
	ck_assert_uint_eq(stats.requests, sum);
	ck_assert_uint_eq(accounted(&stats), sum);
	ck_assert_uint_eq(stats.in_handler, counted[TAKEN_IN_HANDLER]);
	ck_assert_uint_ge(stats.from_queue, counted[TAKEN_FROM_QUEUE]);
	ck_assert_uint_eq(stats.from_queue + stats.biased,
			  counted[TAKEN_FROM_QUEUE] + counted[TAKEN_BIASED] + stats.merged);
	ck_assert_uint_eq(stats.failed[INCSTACK_FAILED_STATE], refused[0]);
	ck_assert_uint_eq(stats.failed[INCSTACK_FAILED_FULL], refused[1]);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_gt(counted[i], 100);
	ck_assert_uint_gt(returned_to, 100);
	ck_assert_uint_gt(refused[0], 10);
	ck_assert_uint_gt(refused[1], 10);
	ck_assert_uint_gt(stats.merged, 10);
	ck_assert_uint_eq(sim.missing, 0);
	ck_assert_uint_eq(sim_stats().truncated, 0);
	ck_assert_uint_eq(sim_stats().stale, 0);
	ck_assert_uint_eq(sim_stats().lost_unwind, 0);
	sim_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("signal queue");
	TCase *tc = tcase_create("at random");
	tcase_add_loop_test(tc, at_random, 0, 2 * SIM_VARIANTS);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
