/* SPDX-License-Identifier: MIT
 *
 * toyvm_price: what a call of an instrumented method costs in compiled code, in ns and in readings of the clock. A loop
 * calls an empty method. The difference to the loop without instrumentation is the price. Rounds of all kinds
 * alternate, and the median counts.
 *
 * usage: toyvm_price [CALLS [ROUNDS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "instrument.h"

enum { ROUNDS_MOST = 101, KINDS = 3 };

static const char text[] =
	"def leaf(x) { return x; }\n"
	"def main(n) { var i = 0; while (i < n) { leaf(i); i = i + 1; } return 0; }\n";
static const char *const names[KINDS] = {"not instrumented", "timed", "counted"};

static void nothing(struct vm *vm)
{
	(void)vm;
}

static const struct sampling no_samples = {.begin = nothing, .end = nothing};

static double ns_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Returns how many ns a call takes. */
static double run(int kind, int64_t calls)
{
	struct parse_error error;
	struct program *p = program_parse(text, strlen(text), &error);
	const struct schedule s = {.threads = 1,
				   .compile_after = 0,
				   .sampling = &no_samples,
				   .direct = true,
				   .instrument = kind ? INSTRUMENT_REACHABLE : INSTRUMENT_NOTHING,
				   .meter_mode = kind == 2 ? INCSTACK_METER_COUNTED
							   : INCSTACK_METER_TIMED};
	if (!p)
		abort();
	vm_run(p, &s, 1, 1000, false); /* warms up */
	const double start = ns_now();
	vm_run(p, &s, 1, calls, false);
	const double passed = ns_now() - start;
	program_free(p);
	return passed / (double)calls;
}

static int by_size(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;
	return left < right ? -1 : left > right;
}

static double clock_ns_of(int64_t readings)
{
	const double start = ns_now();
	for (int64_t i = 0; i < readings; i++)
		(void)__builtin_ia32_rdtsc();
	return (ns_now() - start) / (double)readings;
}

int main(int argc, char **argv)
{
	const int64_t calls = argc > 1 ? atoll(argv[1]) : 5000000;
	const int rounds = argc > 2 && atoi(argv[2]) < ROUNDS_MOST ? atoi(argv[2]) : 11;
	static double ns[KINDS][ROUNDS_MOST], clock[ROUNDS_MOST];
	for (int i = 0; i < rounds; i++) {
		clock[i] = clock_ns_of(calls);
		for (int kind = 0; kind < KINDS; kind++)
			ns[kind][i] = run(kind, calls);
	}
	for (int kind = 0; kind < KINDS; kind++)
		qsort(ns[kind], (size_t)rounds, sizeof(double), by_size);
	qsort(clock, (size_t)rounds, sizeof(double), by_size);
	printf("a reading of the clock: %.1f ns\n", clock[rounds / 2]);
	for (int kind = 0; kind < KINDS; kind++) {
		const double more = ns[kind][rounds / 2] - ns[0][rounds / 2];
		printf("%-18s %6.1f ns a call, %6.1f more, %.2f readings\n", names[kind],
		       ns[kind][rounds / 2], more, more / clock[rounds / 2]);
	}
	return atomic_load(&counters.mismatches) != 0;
}
