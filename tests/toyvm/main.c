/* SPDX-License-Identifier: MIT
 *
 * toyvm_oracle: runs programs, random ones or from files, with every event of the VM enabled. Its
 * last line counts what happened.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm.h"

struct arguments {
	uint64_t seed, programs, from;
	int64_t n;
	struct schedule schedule;
	bool fixed_distance, fixed_linked, fixed_page, dump, list;
	int compare; /* the other mode, or -1 */
	const char *file;
};

static const char usage[] =
	"usage: toyvm_oracle [--seed S] [--programs N] [--from N] [--threads N] [--ticks N]\n"
	"                    [--mode patch|validate|full] [--distance N] [--interpreted]\n"
	"                    [--linked N] [--page 0|1] [--n N] [--fuel N] [--dump] [--hostile] "
	"[--fault N]\n"
	"                    [--compare patch|validate|full] [--signals N] [--instrument N] "
	"[--list] [FILE]\n"
	"N random programs, from that number on up to the first that mismatches, or one\n"
	"from a file. --compare: each with return barriers and then in that mode, for\n"
	"the overlap of the profiles; without other threads both are identical.\n"
	"--signals: one of N instructions is interrupted by a signal that takes a sample.\n"
	"--list: compiled methods have names for perf and gdb.\n"
	"--instrument: call subgraphs are instrumented, by scheme A (1), B (2), or B with "
	"receivers (3).\n";

static _Noreturn void die(const char *what, const char *which)
{
	fprintf(stderr, "toyvm_oracle: %s: %s\n%s", which, what, usage);
	exit(2);
}

static int mode_of(const char *name)
{
	static const char *const names[] = {"patch", "validate", "full"};
	for (int i = 0; i < 3; i++)
		if (!strcmp(names[i], name))
			return i;
	die("unknown mode", name);
}

/* Any 64 bits are a seed. */
static uint64_t seed_of(const char *text)
{
	char *end;
	errno = 0;
	uint64_t seed = strtoull(text, &end, 0);
	if (*end || end == text || errno || strchr(text, '-'))
		die("expected a number of 64 bits", text);
	return seed;
}

struct option {
	const char *name;
	int64_t min, max;
	int64_t *value;
};

static int64_t number_of(const struct option *o, const char *text)
{
	char *end;
	errno = 0;
	long long n = strtoll(text, &end, 0);
	if (*end || end == text || errno || n < o->min || n > o->max) {
		fprintf(stderr, "%s: from %" PRId64 " to %" PRId64 "\n", o->name, o->min, o->max);
		die("not such a number", text);
	}
	return n;
}

/* The arguments that are numbers. -1: chosen by the seed. */
struct numbers {
	int64_t programs, from, n, threads, ticks, fuel, linked, page, distance, fault, signals,
		instrument;
};

static bool number_option(struct numbers *to, const char *name, const char *text)
{
	const struct option options[] = {
		{"--programs", 1, INT32_MAX, &to->programs},
		{"--from", 0, INT32_MAX, &to->from},
		{"--n", 0, INT32_MAX, &to->n},
		{"--threads", 1, THREADS_MAX, &to->threads},
		{"--ticks", 0, INT32_MAX, &to->ticks},
		{"--fuel", 1, INT32_MAX, &to->fuel},
		{"--linked", 0, 8, &to->linked},
		{"--page", 0, 1, &to->page},
		{"--distance", 0, INCSTACK_DISTANCE_MAX, &to->distance},
		{"--fault", 0, INT32_MAX, &to->fault},
		{"--signals", 0, INT32_MAX, &to->signals},
		{"--instrument", 0, 3, &to->instrument},
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (strcmp(options[i].name, name) != 0)
			continue;
		if (!text)
			die("expected a number", name);
		*options[i].value = number_of(&options[i], text);
		return true;
	}
	return false;
}

static void set_numbers(struct arguments *a, const struct numbers *from)
{
	a->programs = (uint64_t)from->programs;
	a->from = (uint64_t)from->from;
	a->n = from->n;
	a->fixed_linked = from->linked >= 0;
	a->fixed_page = from->page >= 0;
	a->fixed_distance = from->distance >= 0;
	struct schedule *s = &a->schedule;
	s->threads = (int)from->threads;
	s->ticks = (uint32_t)from->ticks;
	s->fuel = (int)from->fuel;
	s->linked = a->fixed_linked ? (uint32_t)from->linked : 0;
	s->page = from->page > 0;
	s->distance = a->fixed_distance ? (uint32_t)from->distance : 1;
	s->signals = (uint32_t)from->signals;
	s->instrument = (uint32_t)from->instrument;
	toyvm_fault = (int)from->fault;
}

static void parse_arguments(struct arguments *a, char **at)
{
	struct numbers n = {.programs = 10,
			    .n = 10,
			    .threads = 2,
			    .ticks = 4,
			    .linked = -1,
			    .page = -1,
			    .distance = -1};
	for (; *at; at++) {
		if (!strcmp(*at, "--dump"))
			a->dump = true;
		else if (!strcmp(*at, "--hostile"))
			a->schedule.hostile = true;
		else if (!strcmp(*at, "--interpreted"))
			a->schedule.interpreted = true;
		else if (!strcmp(*at, "--list"))
			a->list = true;
		else if (!strcmp(*at, "--compare") && at[1])
			a->compare = mode_of(*++at);
		else if (!strcmp(*at, "--mode") && at[1])
			a->schedule.mode = mode_of(*++at);
		else if (!strcmp(*at, "--seed") && at[1])
			a->seed = seed_of(*++at);
		else if (number_option(&n, *at, at[1]))
			at++;
		else if (**at != '-' && !a->file)
			a->file = *at;
		else
			die("unknown argument", *at);
	}
	set_numbers(a, &n);
}

/* One program, and how it is run. */
struct job {
	const char *name, *text;
	size_t length;
	struct schedule schedule;
	uint64_t seed;
	int64_t n;
	int compare;
	bool print;
};

static void run_job(const struct job *j)
{
	struct parse_error error;
	struct program *p = program_parse(j->text, j->length, &error);
	if (!p) {
		fprintf(stderr, "%s:%d:%d: %s\n", j->name, error.line, error.column, error.what);
		exit(1);
	}
	if (j->compare >= 0)
		modes_run(p, &j->schedule, j->compare, j->seed, j->n);
	else
		vm_run(p, &j->schedule, j->seed, j->n, j->print);
	program_free(p);
}

static char *read_text(const char *name, size_t *length)
{
	FILE *file = fopen(name, "r");
	if (!file)
		die("cannot open", name);
	char *text = NULL, part[4096];
	FILE *out = open_memstream(&text, length);
	for (size_t n; (n = fread(part, 1, sizeof(part), file)) > 0;)
		fwrite(part, 1, n, out);
	if (ferror(file) || fclose(out))
		die("cannot read", name);
	fclose(file);
	return text;
}

static void run_file(const struct arguments *a)
{
	struct job j = {.name = a->file, .schedule = a->schedule, .seed = a->seed, .n = a->n};
	char *text = read_text(a->file, &j.length);
	j.text = text;
	j.compare = a->compare;
	j.print = true;
	run_job(&j);
	free(text);
}

/* Sets limits. If thunks or memory run out, or frames refuse barriers, traces are refused or
 * truncated. They are never wrong. */
static void limit(struct schedule *s, uint64_t *random)
{
	static const uint32_t thunks[] = {0, 0, 0, 0, 1, 4, 20, 100};
	s->thunk_limit = thunks[random_below(random, 8)];
	s->arms = random_below(random, 4) ? 0 : 1 + random_below(random, 4);
	s->stack_bytes = random_below(random, 4) ? 0 : 16 << 10;
	if (s->stack_bytes) /* an exit is noticed only by a sample that is not refused */
		s->silent_exits = false;
}

static void random_program(const struct arguments *a, uint64_t seed)
{
	static const uint32_t distances[] = {0, 1, 1, 2, 3, 6};
	static const uint32_t linked[] = {0, 0, 0, 3, 8};
	struct job j = {.name = "(generated)", .schedule = a->schedule, .seed = seed, .n = 40};
	struct schedule *s = &j.schedule;
	uint64_t random = seed;
	if (!a->fixed_distance)
		s->distance = distances[random_below(&random, 6)];
	if (!a->fixed_linked)
		s->linked = linked[random_below(&random, 5)];
	s->inline_levels = random_below(&random, 5);
	s->compile_after = random_below(&random, 8);
	s->silent_exits = random_below(&random, 8) == 0;
	if (!a->fixed_page)
		s->page = random_below(&random, 4) == 0;
	limit(s, &random);
	if (seed % 16 == 7) {
		static const int more[] = {1, INCSTACK_VIRTUAL_MAX - 1, INCSTACK_VIRTUAL_MAX, 100};
		s->more_frames = more[seed / 16 % 4];
		s->interpreted = true;
	}
	if (s->signals) { /* the record of what was interrupted is that of the VM's own frames */
		s->stack_bytes = 0;
		s->more_frames = 0;
		s->interpreted = false;
		s->compile_after *=
			(uint32_t)(seed % 2); /* a handler walks only over compiled frames */
	}
	char *text = program_generate(seed);
	if (a->dump)
		puts(text);
	j.text = text;
	j.length = strlen(text);
	j.compare = a->compare;
	run_job(&j);
	free(text);
}

static uint64_t median(void)
{
	uint64_t half = atomic_load(&counters.samples) / 2, sum = 0, i = 0;
	while (i < 4095 && (sum += atomic_load(&counters.depths[i])) <= half)
		i++;
	return i;
}

static void print_counters(void)
{
	if (counters.linked_samples)
		printf("toyvm: frames on the heap: samples=%" PRIu64 " returns=%" PRIu64 "\n",
		       counters.linked_samples, counters.linked_returns);
	if (counters.refused + counters.no_thunk + counters.no_arm)
		printf("toyvm: limits: refused=%" PRIu64 " no_thunk=%" PRIu64 " no_arm=%" PRIu64
		       "\n",
		       counters.refused, counters.no_thunk, counters.no_arm);
	if (counters.vanished + counters.truncated)
		printf("toyvm: vanished barriers=%" PRIu64 " truncated traces=%" PRIu64 "\n",
		       counters.vanished, counters.truncated);
	if (counters.changes)
		printf("toyvm: instrumentation: calls=%" PRIu64 " contexts=%" PRIu64
		       " changes=%" PRIu64 "\n",
		       counters.calls, counters.contexts, counters.changes);
	printf("toyvm: frame iterator: walks=%" PRIu64 "\n", counters.walks);
	if (counters.immediate + counters.queued + counters.biased)
		printf("toyvm: signals: immediate=%" PRIu64 " queued=%" PRIu64 " biased=%" PRIu64
		       " later=%" PRIu64 " unknown=%" PRIu64 "\n",
		       counters.immediate, counters.queued, counters.biased, counters.later,
		       counters.unknown);
	if (counters.pages)
		printf("toyvm: polling page: faults=%" PRIu64 "\n", counters.pages);
#define ITEM(name) " " #name "=%" PRIu64
	printf("toyvm:" ITEM(samples) ITEM(mismatches) ITEM(lost) ITEM(depth_p50) ITEM(exceptions)
		       ITEM(deopts) ITEM(deopt_first) ITEM(barrier_first) ITEM(osr) ITEM(moved)
			       ITEM(inlined) ITEM(gc) ITEM(fibers) ITEM(natives) ITEM(threads) "\n",
	       counters.samples, counters.mismatches, counters.lost, median(), counters.exceptions,
	       counters.deopts, counters.deopt_first, counters.barrier_first, counters.osr,
	       counters.moved, counters.inlined, counters.gc, counters.fibers, counters.natives,
	       counters.threads);
}

int main(int argc, char **argv)
{
	struct arguments a = {.seed = 1, .compare = -1};
	a.schedule = (struct schedule){.inline_levels = 3, .compile_after = 3};
#ifdef INCSTACK_HOSTILE
	a.schedule.hostile = true;
#endif
	(void)argc;
	parse_arguments(&a, argv + 1);
	if (a.list)
		listing_start();
	if (a.file)
		run_file(&a);
	uint64_t i = a.from;
	for (; !a.file && i < a.from + a.programs && !counters.mismatches; i++)
		random_program(&a, a.seed * 1000003 + i);
	if (counters.mismatches && !a.file)
		fprintf(stderr, "found by --seed %" PRIu64 " --from %" PRIu64 " --programs 1\n",
			a.seed, i - 1);
	bool same = a.compare < 0 || modes_print() || a.schedule.threads > 1;
	print_counters();
	return atomic_load(&counters.mismatches) || !same;
}
