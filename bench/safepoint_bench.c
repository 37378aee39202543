/* SPDX-License-Identifier: MIT
 *
 * Measures what a request for two samples costs, by a full safepoint and by a partial one: the
 * time to the first and to the last sample, and how long mutators stall. For comparison it also
 * measures the parking of the papers, and a bare stop, the least that stopping threads can cost.
 * docs/performance.md says how it is measured.
 *
 * safepoint_bench [--csv] [--trials N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "safepoint_bench/trials.h"
#include "statistics.h"

static bool csv;

static struct percentile stall_of(enum variant variant)
{
	uint32_t count = atomic_load(&seen.stall_count[variant]);
	return percentile_of(seen.stalls[variant], count < STALLS_MAX ? count : STALLS_MAX, 0.5);
}

/* The interval of the ratio has the quotients of the outer ends, so it is wider than 95 %. */
static void print_row(uint32_t threads, uint32_t runnable, const char *name,
		      const struct percentile v[VARIANTS])
{
	const struct percentile *f = &v[FULL], *p = &v[PARTIAL];
	double ratio = f->value / p->value, low = f->low / p->high, high = f->high / p->low;
	if (csv)
		printf("%u,%u,%s,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.2f,%.2f,%.2f\n", threads, runnable,
		       name, f->value, f->low, f->high, p->value, p->low, p->high, ratio, low,
		       high);
	else
		printf("%7u %8u  %-10s %8.0f %8.0f-%-8.0f %7.0f %7.0f-%-7.0f %6.1f %5.1f-%-5.1f "
		       "%8.0f %8.0f\n",
		       threads, runnable, name, f->value, f->low, f->high, p->value, p->low,
		       p->high, ratio, low, high, v[PARKING].value, v[BARE].value);
}

static void report(uint32_t threads, uint32_t runnable)
{
	static const struct {
		const char *name;
		enum measure measure;
		double part;
	} rows[] = {
		{"first_p50", FIRST, 0.5}, {"first_p975", FIRST, 0.975}, {"last_p50", LAST, 0.5}};
	struct percentile values[VARIANTS];
	for (int row = 0; row < 3; row++) {
		for (int v = 0; v < VARIANTS; v++)
			values[v] = percentile_of(seen.times[v][rows[row].measure], seen.count,
						  rows[row].part);
		print_row(threads, runnable, rows[row].name, values);
	}
	for (enum variant v = 0; v < VARIANTS; v++)
		values[v] = stall_of(v);
	print_row(threads, runnable, "stall_p50", values);
	double full = percentile_of(seen.times[FULL][STOPPED], seen.count, 0.5).value;
	double barest = percentile_of(seen.times[BARE][STOPPED], seen.count, 0.5).value;
	fprintf(csv ? stderr : stdout,
		"%7u %8u  full stop %.0f ns, bare arm-and-wait %.0f ns: %.2f times; requester busy "
		"%.0f ns, at most %.0f ns; %u trials\n",
		threads, runnable, full, barest, full / barest,
		percentile_of(seen.requester, seen.count, 0.5).value,
		percentile_of(seen.requester, seen.count, 1).value, seen.count);
}

static void run(uint32_t threads, uint32_t runnable)
{
	if (!run_trials(threads, runnable))
		fprintf(csv ? stderr : stdout,
			"%7u %8u  the requester was refused a real-time priority: these times are "
			"those of the scheduler\n",
			threads, runnable);
	report(threads, runnable);
}

static double loop_ns(struct incstack_thread *self, bool polls)
{
	const uint32_t rounds = 20000; /* short, so that some are not interrupted */
	uint64_t x = 1, start = now();
	if (polls)
		for (uint32_t i = 0; i < rounds; i++) {
			x = body(x);
			__asm__ volatile("" : "+r"(x));
			incstack_thread_poll(self);
		}
	else
		for (uint32_t i = 0; i < rounds; i++) {
			x = body(x);
			__asm__ volatile("" : "+r"(x));
		}
	return (double)(now() - start) / rounds;
}

static void poll_price(void)
{
	struct incstack_safepoint *safepoint;
	struct incstack_thread *self;
	uint32_t without[200], with[200];
	if (incstack_safepoint_create(NULL, &safepoint) ||
	    incstack_safepoint_attach(safepoint, &self))
		abort();
	for (int i = 0; i < 200; i++) { /* in picoseconds, so that they are whole */
		without[i] = (uint32_t)(loop_ns(self, false) * 1000);
		with[i] = (uint32_t)(loop_ns(self, true) * 1000);
	}
	struct percentile base = percentile_of(without, 200, 0.1),
			  polled = percentile_of(with, 200, 0.1);
	fprintf(csv ? stderr : stdout,
		"poll: %.2f ns (%.2f to %.2f) in a loop body of %.2f ns (%.2f ns with it)\n",
		(polled.value - base.value) / 1000, (polled.low - base.high) / 1000,
		(polled.high - base.low) / 1000, base.value / 1000, polled.value / 1000);
	incstack_thread_detach(self);
	incstack_safepoint_destroy(safepoint);
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--csv"))
			csv = true;
		else if (!strcmp(argv[i], "--trials") && i + 1 < argc)
			trials = (uint32_t)strtoul(argv[++i], NULL, 0);
	}
	trials += trials == 0;
}

int main(int argc, char **argv)
{
	static const uint32_t threads[] = {8, 64, 512};
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv);
	for (int v = 0; v < VARIANTS; v++) {
		for (int m = 0; m < MEASURES; m++)
			seen.times[v][m] = calloc(trials, sizeof(uint32_t));
		seen.stalls[v] = calloc(STALLS_MAX, sizeof(uint32_t));
	}
	seen.requester = calloc(trials, sizeof(uint32_t));
	puts(csv ? "threads,runnable,measure,full,full_low,full_high,partial,partial_low,"
		   "partial_high,ratio,ratio_low,ratio_high"
		 : "threads runnable  measure        full            95 % partial          95 %  "
		   "ratio        95 %  parking     bare   (ns)");
	for (int i = 0; i < 6; i++)
		run(threads[i / 2], i % 2 ? threads[i / 2] : SAMPLES);
	poll_price();
	return 0;
}
