/* SPDX-License-Identifier: MIT
 *
 * Times a cell. The workload descends once. At the boundary of each window the next peer is
 * chosen. A batch of rounds gives the median time of each peer. Less the median time of the
 * workload alone, these give one ratio.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "measure.h"

enum { ROUNDS_MAX = 1000, WINDOW_MAX = 1 << 16, WARM_UP = 512 };

struct measurement {
	const struct cell *cell;
	const struct plan *plan;
	struct result *result;
	uint64_t turns[PEER_COUNT]; /* of a window */
	double samples[PEER_COUNT][ROUNDS_MAX];
	enum peer order[PEER_COUNT];
	int present, at, round;
	int warm;   /* the window in progress is not timed */
	int sizing; /* windows find out how many turns they need */
	uint64_t start;
	uint64_t random;
};

static double ticks_per_ns;

/* Measures the rate of the time stamp counter, once. */
static void calibrate(void)
{
	struct timespec from, to;
	if (ticks_per_ns > 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &from);
	uint64_t start = __rdtsc();
	double ns;
	do {
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
	} while (ns < 20e6);
	ticks_per_ns = (double)(__rdtsc() - start) / ns;
}

static uint64_t now(void)
{
	unsigned processor;
	_mm_lfence();
	uint64_t ticks = __rdtscp(&processor);
	_mm_lfence();
	return ticks;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Sorts the values. */
static struct ratio summarize(double *values, int count)
{
	struct ratio r = {0, 0, 0};
	if (!count)
		return r;
	qsort(values, (size_t)count, sizeof(*values), compare_doubles);
	r.min = values[0];
	r.max = values[count - 1];
	r.median = (values[(count - 1) / 2] + values[count / 2]) / 2;
	return r;
}

static void shuffle(struct measurement *m)
{
	for (int i = m->present - 1; i > 0; i--) {
		m->random = m->random * 6364136223846793005u + 1442695040888963407u;
		int j = (int)(m->random >> 33) % (i + 1);
		enum peer peer = m->order[i];
		m->order[i] = m->order[j];
		m->order[j] = peer;
	}
}

static void end_batch(struct measurement *m)
{
	struct result *r = m->result;
	double median[PEER_COUNT] = {0};
	for (int i = 0; i < m->present; i++)
		median[m->order[i]] = summarize(m->samples[m->order[i]], m->plan->rounds).median;
	double none = median[PEER_NONE], ours = median[PEER_OURS] - none;
	if (ours <= 0 || r->batches == BATCHES_MAX)
		return;
	for (int i = 0; i < m->present; i++) {
		enum peer peer = m->order[i];
		double time = peer == PEER_NONE ? none : median[peer] - none;
		r->times[peer][r->batches] = time;
		r->ratios[peer][r->batches] = time / ours;
	}
	r->batches++;
}

/* ---- windows ---------------------------------------------------------------------- */

static void begin_window(struct measurement *m, struct workload *w)
{
	enum peer peer = m->order[m->at];
	peer_begin(peer);
	w->sample = peer_sample(peer);
	m->warm = 1;
	/* Enough turns to warm the caches, and for our peer to plant barriers. Slow peers need
	 * less. */
	w->left = m->turns[peer] < WARM_UP ? m->turns[peer] / 4 + 1 : WARM_UP;
}

/* The first windows find out how many turns fill the time of a window. */
static void size_window(struct measurement *m, enum peer peer, double ns_per_turn)
{
	double turns = m->plan->window_us * 1e3 / ns_per_turn;
	if (peer == PEER_OURS || peer == PEER_OWN_WALK) {
		/* Whole intervals. Otherwise the retrieve at the end would weigh too much. */
		uint64_t interval = peer == PEER_OURS ? peers.ours.interval : peers.full.interval;
		uint64_t n = (uint64_t)turns / interval;
		turns = (double)((n ? n : 1) * interval);
	}
	m->turns[peer] = turns < 8 ? 8 : turns > WINDOW_MAX ? WINDOW_MAX : (uint64_t)turns;
}

static void end_window(struct measurement *m, enum peer peer)
{
	peer_finish(peer);
	double ns = (double)(now() - m->start) / ticks_per_ns / (double)m->turns[peer];
	peer_end(peer);
	if (m->sizing)
		size_window(m, peer, ns);
	else
		m->samples[peer][m->round] = ns;
}

static void end_round(struct measurement *m)
{
	m->at = 0;
	if (m->sizing)
		m->sizing--;
	else
		m->round++;
	shuffle(m);
}

static void boundary(struct workload *w)
{
	struct measurement *m = w->context;
	enum peer peer = m->order[m->at];
	if (m->warm) {
		peer_finish(peer);
		m->warm = 0;
		w->left = m->turns[peer];
		m->start = now();
		return;
	}
	end_window(m, peer);
	if (++m->at == m->present)
		end_round(m);
	if (m->round == m->plan->rounds)
		workload_stop(w);
	else
		begin_window(m, w);
}

/* ---- cells ------------------------------------------------------------------------ */

int peer_fits(enum peer peer, const struct cell *cell)
{
	return peer != PEER_FP_WALK || cell->frame_pointers;
}

static void run(const struct cell *cell, struct workload *w)
{
	w->depth = cell->depth;
	w->popped = cell->popped;
	if (cell->frame_pointers)
		workload_run_fp(w);
	else
		workload_run_nofp(w);
}

static void report(struct measurement *m)
{
	struct result *r = m->result;
	struct incstack_stats stats = {.size = sizeof(stats)};
	incstack_stack_stats(peers.ours.stack, &stats);
	end_batch(m);
	r->cell = *m->cell;
	r->distance = stats.distance;
	r->returns = stats.samples ? (double)stats.returns / (double)stats.samples : 0;
	for (int i = 0; i < m->present; i++) {
		enum peer peer = m->order[i];
		r->ratio[peer] = summarize(r->ratios[peer], r->batches);
		r->ns[peer] = summarize(r->times[peer], r->batches).median;
	}
}

int cell_measure(const struct cell *cell, const struct plan *plan, struct result *result)
{
	static struct measurement m;
	struct workload w = {.boundary = boundary, .context = &m};

	memset(&m, 0, sizeof(m));
	m.cell = cell;
	m.plan = plan;
	m.result = result;
	m.random = cell->depth * 31u + cell->popped + (unsigned)result->batches;
	m.sizing = 4;
	for (enum peer peer = 0; peer < PEER_COUNT; peer++) {
		m.turns[peer] = peer == PEER_OURS || peer == PEER_NONE ? 1024 : 32;
		if (peer_fits(peer, cell) && (peer <= PEER_OURS || !plan->ours_alone))
			m.order[m.present++] = peer;
	}
	if (peers_open(cell->depth))
		return -1;
	calibrate();
	begin_window(&m, &w);
	run(cell, &w);
	report(&m);
	int failed = peers_faults() || !result->batches;
	if (failed)
		fprintf(stderr, "walk_bench: %llu failed or incomplete samples, %d ratios\n",
			(unsigned long long)peers_faults(), result->batches);
	peers_close();
	return failed ? -1 : 0;
}

static void stop(struct workload *w)
{
	workload_stop(w);
}

struct ratio cells_compare_ours(const struct cell *dear, const struct cell *cheap,
				const struct plan *plan)
{
	enum { PAIRS = 31 };
	const struct plan brief = {plan->rounds, plan->window_us, 1};
	double ratios[PAIRS];
	int count = 0;
	for (int i = 0; i < PAIRS; i++) {
		static struct result a, b;
		a.batches = b.batches = 0;
		if (!cell_measure(dear, &brief, &a) && !cell_measure(cheap, &brief, &b))
			ratios[count++] = a.ns[PEER_OURS] / b.ns[PEER_OURS];
	}
	return summarize(ratios, count);
}

int cell_repeat(const struct cell *cell, enum peer peer, uint64_t traces)
{
	struct workload w = {.boundary = stop, .left = traces, .sample = peer_sample(peer)};
	if (peers_open(cell->depth))
		return -1;
	peer_begin(peer);
	w.sample = peer_sample(peer);
	run(cell, &w);
	peer_finish(peer);
	peer_end(peer);
	int failed = peers_faults() != 0;
	peers_close();
	return failed ? -1 : 0;
}
