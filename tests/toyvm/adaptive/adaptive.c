/* SPDX-License-Identifier: MIT
 *
 * toyvm_adaptive: the partial calling context tree as the only trigger of compilation, which is
 * what Whaley 2000 made it for, compared with counters of calls and with counters of sampled
 * methods. The program has one thread, which samples itself after a fixed number of polls. So
 * each run is the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/pcct.h>

#include "vm.h"

enum {
	BATCH = 64,   /* samples between two choices */
	HOTTEST = 64, /* entries that a choice considers */
	SHARE = 24,   /* one part in so many of the weight is hot */
	DEPTH = 20,   /* frames of a sample that are considered */
	CALLS = 200,  /* the number of calls after which the counters compile a method */
	WINDOW = 32,  /* the number of looks from which one share is computed */
	LOOKS_MAX = 1 << 20,
};

enum trigger { NOTHING, COUNTERS, METHODS, CONTEXTS, TRIGGERS };
static const char *const names[] = {"nothing", "counters", "methods", "contexts"};

static struct {
	enum trigger trigger;
	bool collects; /* the tree is built, whether it is used or not */
	int64_t period;
	struct incstack_pcct *pcct;
	uint64_t weights[METHODS_MAX]; /* of the methods that were on top */
	uint64_t samples;
	uint32_t looks;
	uint32_t compiled, methods;       /* at the end */
	bool in_compiled_code[LOOKS_MAX]; /* what ran at each look */
} run;

static void check(int error, const char *what)
{
	if (error < 0) {
		fprintf(stderr, "toyvm_adaptive: %s: %s\n", what, incstack_error_text(error));
		exit(1);
	}
}

/* ---- choosing --------------------------------------------------------------------- */

static void compile(struct fiber *f, uint64_t method)
{
	struct method *m = f->vm->program->methods[method];
	if (method != 0 && !m->native && !atomic_load(&m->blob))
		jit_compile(f->thread, m);
}

static void compile_hot(struct fiber *f, const uint64_t *weights, uint64_t total)
{
	for (int i = 0; i < f->vm->program->method_count; i++)
		if (total >= BATCH && weights[i] * SHARE >= total)
			compile(f, (uint64_t)i);
}

/* Copies the context at a place of an order, if a choice considers it. */
static bool is_hot(enum incstack_pcct_order order, uint32_t place,
		   struct incstack_pcct_context *context)
{
	return place < HOTTEST && !incstack_pcct_context(run.pcct, order, place, context);
}

/* A method is hot if its hottest contexts take much time. If contexts are called often, their
 * callers are compiled, so that they are inlined. */
static void choose_contexts(struct fiber *f)
{
	struct incstack_pcct_context context = {.size = sizeof(context)};
	struct incstack_pcct_context caller = {.size = sizeof(caller)};
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};
	uint64_t weights[METHODS_MAX] = {0};
	for (uint32_t i = 0; is_hot(INCSTACK_PCCT_BY_TIME, i, &context); i++)
		weights[context.function] += context.time;
	check(incstack_pcct_stats(run.pcct, &stats), "stats");
	compile_hot(f, weights, stats.samples - stats.purged_time);
	memset(weights, 0, sizeof(weights));
	for (uint32_t i = 0; is_hot(INCSTACK_PCCT_BY_ACTIVATIONS, i, &context); i++) {
		if (context.parent == INCSTACK_PCCT_NONE)
			continue;
		check(incstack_pcct_context(run.pcct, INCSTACK_PCCT_BY_NUMBER, context.parent,
					    &caller),
		      "caller");
		weights[caller.function] += context.activations;
	}
	compile_hot(f, weights, stats.samples - stats.purged_time);
}

/* ---- collecting --------------------------------------------------------------------- */

static void count_tops(const struct incstack_tree *tree)
{
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		run.weights[t->top->function] += t->weight;
}

static void collect(struct fiber *f)
{
	struct incstack_tree *tree;
	int error;
	check(incstack_stack_retrieve(f->stack, &tree), "retrieve");
	if (run.trigger == METHODS)
		count_tops(tree);
	else if ((error = incstack_pcct_add_tree(run.pcct, tree)) != INCSTACK_ELIMIT)
		check(error, "pcct_add_tree"); /* ELIMIT: a sample does not fit at all */
	incstack_tree_release(tree);
	if (run.trigger == METHODS)
		compile_hot(f, run.weights, run.samples);
	else if (run.trigger == CONTEXTS)
		choose_contexts(f);
}

static void sample(struct fiber *f)
{
	const struct incstack_top top = {
		.pc = f->pc, .sp = f->sp, .fp = f->fp, .flags = INCSTACK_TOP_EXACT};
	uint64_t depth = (uint64_t)(f->shadow - f->shadow_base);
	check(incstack_stack_reserve(f->stack, 512 + depth * 64), "reserve");
	check(incstack_stack_sample(f->stack, run.samples, 1, &top), "sample");
	if (++run.samples % BATCH == 0)
		collect(f);
}

static void look(struct fiber *f)
{
	struct frame frame;
	if (f->ticks != INT64_MAX)
		return; /* it yields, and no sample is due */
	f->ticks = run.period - 1;
	frame_first(f, &frame);
	if (run.looks < LOOKS_MAX)
		run.in_compiled_code[run.looks++] = frame.blob != NULL;
	if (run.collects)
		sample(f);
}

static void begin(struct vm *vm)
{
	(void)vm;
}

static void end(struct vm *vm)
{
	for (int i = 0; i < vm->program->method_count; i++) {
		struct method *m = vm->program->methods[i];
		run.methods += i > 0 && !m->native;
		run.compiled += atomic_load(&m->blob) != NULL;
	}
}

/* ---- what came of it ------------------------------------------------------------------- */

static uint32_t in_compiled_code(uint32_t from, uint32_t to)
{
	uint32_t count = 0;
	for (uint32_t i = from; i < to; i++)
		count += run.in_compiled_code[i];
	return count;
}

/* Returns the first look at which compiled code runs 19/20 as much as in the last quarter. */
static uint32_t peak(void)
{
	const uint32_t quarter = run.looks / 4;
	const uint32_t last = in_compiled_code(run.looks - quarter, run.looks);
	uint32_t i = 0;
	while (i + WINDOW < run.looks && (uint64_t)in_compiled_code(i, i + WINDOW) * quarter * 20 <
						 (uint64_t)last * WINDOW * 19)
		i++;
	return i;
}

static void report(uint64_t result)
{
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};
	const double looks = run.looks ? (double)run.looks : 1.0;
	check(incstack_pcct_stats(run.pcct, &stats), "stats");
	printf("trigger=%s result=%" PRIu64 " compiled=%u of=%u looks=%u peak=%u in_compiled=%.3f "
	       "samples=%" PRIu64 " contexts=%u purges=%" PRIu64 "\n",
	       names[run.trigger], result, run.compiled, run.methods, run.looks, peak(),
	       in_compiled_code(0, run.looks) / looks, run.samples, stats.contexts, stats.purges);
}

static struct program *load(const char *name)
{
	static char text[1 << 16];
	struct parse_error error;
	FILE *file = fopen(name, "r");
	size_t length = file ? fread(text, 1, sizeof(text), file) : 0;
	struct program *program = program_parse(text, length, &error);
	if (!program) {
		fprintf(stderr, "%s:%d:%d: %s\n", name, error.line, error.column, error.what);
		exit(1);
	}
	fclose(file);
	return program;
}

static enum trigger trigger_of(const char *name)
{
	for (int i = 0; name && i < TRIGGERS; i++)
		if (!strcmp(names[i], name))
			return (enum trigger)i;
	fputs("usage: toyvm_adaptive nothing|counters|methods|contexts PERIOD N FILE [collect]\n"
	      "PERIOD: polls between two samples. collect: builds the tree in any case.\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct sampling sampling = {begin, end, look};
	const struct incstack_pcct_options options = {
		.size = sizeof(options), .contexts = 4096, .depth = DEPTH};
	run.trigger = trigger_of(argc >= 5 ? argv[1] : NULL);
	run.collects = run.trigger >= METHODS || argc > 5;
	run.period = atoll(argv[2]);
	struct schedule schedule = {
		.mode = INCSTACK_MODE_PATCH,
		.distance = 1, /* old activations are exact */
		.threads = 1,
		.inline_levels = 3,
		.compile_after = run.trigger == COUNTERS ? CALLS : UINT32_MAX,
		.sampling = &sampling,
	};
	struct program *program = load(argv[4]);
	check(incstack_pcct_create(&options, &run.pcct), "pcct_create");
	report(vm_run(program, &schedule, 1, atoll(argv[3]), false));
	incstack_pcct_destroy(run.pcct);
	program_free(program);
	return 0;
}
