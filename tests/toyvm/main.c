/* SPDX-License-Identifier: MIT
 *
 * toyvm_oracle: runs programs, random ones or from files, with every event of the
 * VM on, and says in its last line what happened.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm.h"

struct arguments {
	uint64_t seed, programs;
	int64_t n;
	struct schedule schedule;
	bool fixed_distance, fixed_linked, dump, print;
	const char *file;
};

static const char usage[] =
	"usage: toyvm_oracle [--seed S] [--programs N] [--threads N] [--ticks N]\n"
	"                    [--mode patch|validate|full] [--distance N] [--interpreted] [--linked "
	"N]\n"
	"                    [--n N] [--dump] [--hostile] [--fault N] [FILE]\n"
	"N random programs, up to the first that mismatches, or one from a file.\n";

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "toyvm_oracle: %s\n%s", what, usage);
	exit(2);
}

static int mode_of(const char *name)
{
	static const char *const names[] = {"patch", "validate", "full"};
	for (int i = 0; i < 3; i++)
		if (!strcmp(names[i], name))
			return i;
	die("unknown mode");
}

static bool number_option(struct arguments *a, const char *name, const char *text)
{
	char *end;
	long long n = strtoll(text, &end, 0);
	if (!strcmp(name, "--seed"))
		a->seed = (uint64_t)n;
	else if (!strcmp(name, "--programs"))
		a->programs = (uint64_t)n;
	else if (!strcmp(name, "--threads"))
		a->schedule.threads = (int)(n < 1 ? 1 : n > 16 ? 16 : n);
	else if (!strcmp(name, "--ticks"))
		a->schedule.ticks = (uint32_t)n;
	else if (!strcmp(name, "--fault"))
		toyvm_fault = (int)n;
	else if (!strcmp(name, "--linked"))
		a->schedule.linked = (uint32_t)n, a->fixed_linked = true;
	else if (!strcmp(name, "--n"))
		a->n = n;
	else if (!strcmp(name, "--distance"))
		a->schedule.distance = (int)n, a->fixed_distance = true;
	else
		return false;
	if (*end || end == text)
		die("expected a number");
	return true;
}

static void parse_arguments(struct arguments *a, char **at)
{
	for (; *at; at++) {
		if (!strcmp(*at, "--dump"))
			a->dump = true;
		else if (!strcmp(*at, "--hostile"))
			a->schedule.hostile = true;
		else if (!strcmp(*at, "--interpreted"))
			a->schedule.interpreted = true;
		else if (!strcmp(*at, "--mode") && at[1])
			a->schedule.mode = mode_of(*++at);
		else if (at[1] && number_option(a, *at, at[1]))
			at++;
		else if (**at != '-')
			a->file = *at;
		else
			die("unknown option");
	}
}

static uint64_t run_text(const char *name, const char *text, const struct schedule *s,
			 uint64_t seed, int64_t n, bool print)
{
	struct parse_error error;
	struct program *p = program_parse(text, strlen(text), &error);
	if (!p) {
		fprintf(stderr, "%s:%d:%d: %s\n", name, error.line, error.column, error.what);
		exit(1);
	}
	uint64_t sum = vm_run(p, s, seed, n, print);
	program_free(p);
	return sum;
}

static char *read_text(const char *name)
{
	FILE *file = fopen(name, "r");
	if (!file)
		die("cannot open the file");
	char *text = NULL;
	size_t room = 0;
	if (getdelim(&text, &room, 0, file) < 0)
		die("cannot read the file");
	fclose(file);
	return text;
}

static uint64_t last_seed;

static void random_program(const struct arguments *a, uint64_t seed)
{
	last_seed = seed;
	static const int distances[] = {INCSTACK_DISTANCE_ADAPTIVE, 0, 0, 1, 2, 5};
	static const uint32_t linked[] = {0, 0, 0, 3, 8};
	struct schedule s = a->schedule;
	uint64_t random = seed;
	if (!a->fixed_distance)
		s.distance = distances[random_below(&random, 6)];
	if (!a->fixed_linked)
		s.linked = linked[random_below(&random, 5)];
	s.inline_levels = random_below(&random, 5);
	s.compile_after = random_below(&random, 8);
	s.silent_exits = random_below(&random, 8) == 0;
	char *text = program_generate(seed);
	if (a->dump)
		puts(text);
	run_text("(generated)", text, &s, seed, 40, false);
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
	struct arguments a = {.seed = 1, .programs = 10, .n = -1};
	a.schedule = (struct schedule){
		.ticks = 4, .threads = 2, .distance = 0, .inline_levels = 3, .compile_after = 3};
#ifdef INCSTACK_HOSTILE
	a.schedule.hostile = true;
#endif
	(void)argc;
	parse_arguments(&a, argv + 1);
	if (a.file) {
		char *text = read_text(a.file);
		run_text(a.file, text, &a.schedule, a.seed, a.n < 0 ? 10 : a.n, true);
		free(text);
	}
	for (uint64_t i = 0; !a.file && i < a.programs && !counters.mismatches; i++)
		random_program(&a, a.seed * 1000003 + i);
	if (counters.mismatches)
		fprintf(stderr, "the last program was of seed %" PRIu64 "\n", last_seed);
	print_counters();
	return atomic_load(&counters.mismatches) != 0;
}
