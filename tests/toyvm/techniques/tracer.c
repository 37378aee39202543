/* SPDX-License-Identifier: MIT
 *
 * toyvm_tracer: a thread requests and retrieves traces of the threads of a running program, each
 * with one call of the tracer. Every sample must come back once, complete: from the tracer, or
 * where its fiber ends. The program must compute what it computes without samples.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>
#include <incstack/tracer.h>

#include "vm.h"

static const char text[] = "def leaf(n) { var s = 0; var i = 0;\n"
			   "  while (i < n) { s = s + i * i % 7; i = i + 1; } return s; }\n"
			   "def down(d, n) { if (d < 1) { return leaf(n); }\n"
			   "  return down(d - 1, n) + leaf(3); }\n"
			   "def worker(n) { var i = 0; var s = 0;\n"
			   "  while (i < n) { s = s + down(i % 60, 20); i = i + 1; }\n"
			   "  print(s); return 0; }\n"
			   "def main(n) { var i = 0;\n"
			   "  while (i < 6) { spawn(&worker, n); i = i + 1; }\n"
			   "  worker(n); return 0; }\n";

static const struct incstack_profile_kind kinds[] = {{"samples", "count"}};

static struct {
	struct incstack_tracer *tracer;
	pthread_t thread;
	_Atomic(bool) over;
	uint64_t truncated, wrong; /* truncated objects; traces with an id that was not asked for */
	struct incstack_tracer_stats stats; /* of all rounds */
} run;

static int locate(void *context, const struct incstack_ticket *ticket,
		  struct incstack_stack **stack, struct incstack_top *top)
{
	struct fiber *f = ((struct thread *)ticket->thread->context)->fiber;
	(void)context;
	if (!f || f->pc == stubs.base)
		return INCSTACK_EUNWIND;
	fiber_looked_at = f;
	*stack = f->stack;
	if (!top)
		return 0;
	*top = (struct incstack_top){
		.pc = f->pc, .sp = f->sp, .fp = f->fp, .flags = INCSTACK_TOP_EXACT};
	incstack_stack_set_owner(f->stack);
	return incstack_stack_reserve(f->stack, 512 + (size_t)(f->shadow - f->shadow_base) * 64);
}

static void retrieve(uint64_t ids, uint64_t timeout_ns)
{
	struct incstack_traces *traces;
	if (incstack_tracer_retrieve(run.tracer, NULL, 0, timeout_ns, &traces))
		abort();
	for (const struct incstack_thread_traces *t = traces->threads; t; t = t->next) {
		run.truncated += t->tree->truncated;
		for (const struct incstack_trace *one = t->tree->traces; one; one = one->next)
			run.wrong += one->id > ids || !one->weight;
	}
	incstack_traces_release(traces);
}

static void *request(void *vm)
{
	(void)vm;
	for (uint64_t id = 0; !run.over; id++) {
		const struct incstack_tracer_request options = {.size = sizeof(options),
								.n = 3,
								.flags = INCSTACK_REQUEST_WAITING,
								.deadline_ns = 200000,
								.id = id};
		struct incstack_request *handle;
		if (incstack_tracer_request(run.tracer, &options, &handle))
			continue;
		incstack_request_wait(handle, 0, NULL);
		incstack_request_release(handle);
		if (id % 64 == 63)
			retrieve(id, id % 128 == 127 ? 0 : 100000);
	}
	return NULL;
}

static void begin(struct vm *vm)
{
	const struct incstack_tracer_options options = {
		.size = sizeof(options), .safepoint = vm->safepoint, .locate = locate};
	run.over = false;
	if (incstack_tracer_create(&options, &run.tracer) ||
	    pthread_create(&run.thread, NULL, request, vm))
		abort();
}

static void end(struct vm *vm)
{
	(void)vm;
	run.over = true;
	pthread_join(run.thread, NULL);
	struct incstack_tracer_stats stats = {.size = sizeof(stats)};
	if (incstack_tracer_stats(run.tracer, &stats))
		abort();
	incstack_tracer_destroy(run.tracer);
	run.stats.samples += stats.samples;
	run.stats.retrieved += stats.retrieved;
	run.stats.refused += stats.refused;
}

static uint64_t total_of(const struct incstack_profile *profile)
{
	uint64_t *totals = calloc(incstack_profile_nodes(profile), sizeof(*totals)), sum;
	if (!totals || incstack_profile_totals(profile, 0, totals))
		abort();
	sum = totals[0];
	free(totals);
	return sum;
}

int main(int argc, char **argv)
{
	static const struct sampling sampling = {begin, end, NULL};
	const int64_t n = argc > 1 ? atoll(argv[1]) : 2000;
	struct schedule schedule = {.mode = INCSTACK_MODE_PATCH,
				    .threads = 4,
				    .compile_after = 2,
				    .sampling = &sampling};
	struct parse_error error;
	struct program *program = program_parse(text, strlen(text), &error);
	if (!program)
		abort();
	schedule.sampling = NULL;
	schedule.ticks = 1000000;
	uint64_t plain = vm_run(program, &schedule, 1, n, false), at_end, other = 0;
	schedule.sampling = &sampling;
	if (incstack_profile_create(kinds, 1, &schedule.profile))
		abort();
	/* On a busy machine few requests are made in one round. */
	for (int round = 0; round < 1000 && run.stats.retrieved < 300; round++)
		other += vm_run(program, &schedule, 1, n, false) != plain;
	at_end = total_of(schedule.profile);
	incstack_profile_destroy(schedule.profile);
	program_free(program);
	printf("samples=%llu retrieved=%llu at_end=%llu refused=%llu truncated=%llu wrong=%llu "
	       "mismatches=%llu\n",
	       (unsigned long long)run.stats.samples, (unsigned long long)run.stats.retrieved,
	       (unsigned long long)at_end, (unsigned long long)run.stats.refused,
	       (unsigned long long)run.truncated, (unsigned long long)run.wrong,
	       (unsigned long long)counters.mismatches);
	return other || !run.stats.retrieved || run.stats.refused || run.truncated || run.wrong ||
	       run.stats.samples != run.stats.retrieved + at_end;
}
