/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of a trace, by depth of the stack and by frames changed since the last trace,
 * and compares it with other ways to walk. Prints ratios, because only those mean something on a
 * shared machine.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "walk_bench/measure.h"
#include "walk_bench/report.h"

static const unsigned depths[] = {16, 64, 256, 1024};
static const unsigned changes[] = {1, 2, 4, 8, 16};

enum { DEPTHS = 4, CHANGES = 5, CELLS = 2 * DEPTHS * CHANGES };

struct arguments {
	struct plan plan;
	int batches;
	int csv, compare_only, growth_only;
	int one_cell;
	struct cell cell;
	enum peer peer;
	uint64_t iterations;
};

static const char usage[] =
	"usage: walk_bench [--csv] [--batches N] [--rounds N] [--window-us N] [--compare-only]\n"
	"                  [--distance N] [--growth-only]\n"
	"                  [--cell fp|nofp,DEPTH,CHANGED [--peer NAME --iterations N]]\n"
	"Ratios are time of the peer / time of ours. With --csv, rows on stdout and the\n"
	"table on stderr. With --peer, takes N traces and prints nothing: for callgrind.\n"
	"A distance of our barriers other than the adaptive one is for experiments.\n";

static int parse_cell(const char *text, struct cell *cell)
{
	char kind[5];
	if (sscanf(text, "%4[a-z],%u,%u", kind, &cell->depth, &cell->popped) != 3)
		return -1;
	cell->frame_pointers = strcmp(kind, "fp") == 0;
	if (!cell->frame_pointers && strcmp(kind, "nofp") != 0)
		return -1;
	return cell->depth >= 1 && cell->depth <= 1024 && cell->popped >= 1 &&
			       cell->popped <= cell->depth
		       ? 0
		       : -1;
}

static int parse_peer(const char *text, enum peer *peer)
{
	for (*peer = 0; *peer < PEER_COUNT; ++*peer)
		if (strcmp(text, peer_names[*peer]) == 0)
			return 0;
	return -1;
}

static int parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{"csv", no_argument, NULL, 'c'},
		{"batches", required_argument, NULL, 'b'},
		{"rounds", required_argument, NULL, 'r'},
		{"window-us", required_argument, NULL, 'w'},
		{"compare-only", no_argument, NULL, 'o'},
		{"distance", required_argument, NULL, 'd'},
		{"growth-only", no_argument, NULL, 'g'},
		{"cell", required_argument, NULL, 'l'},
		{"peer", required_argument, NULL, 'p'},
		{"iterations", required_argument, NULL, 'i'},
		{0},
	};
	int option, bad = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			a->csv = 1;
			break;
		case 'b':
			a->batches = atoi(optarg);
			break;
		case 'r':
			a->plan.rounds = atoi(optarg);
			break;
		case 'w':
			a->plan.window_us = atof(optarg);
			break;
		case 'd':
			peers.distance = (uint32_t)atoi(optarg);
			break;
		case 'g':
			a->growth_only = 1;
			break;
		case 'o':
			a->compare_only = 1;
			break;
		case 'l':
			a->one_cell = 1;
			bad |= parse_cell(optarg, &a->cell);
			break;
		case 'p':
			bad |= parse_peer(optarg, &a->peer);
			break;
		case 'i':
			a->iterations = strtoull(optarg, NULL, 10);
			break;
		default:
			bad = 1;
		}
	}
	return bad || optind != argc || a->batches < 1 || a->batches > BATCHES_MAX ||
	       a->plan.rounds < 1 || a->plan.rounds > 1000 || a->plan.window_us <= 0 ||
	       (a->iterations && !a->one_cell);
}

static void progress(int done, int all)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%d of %d batches%s", done, all, done < all ? "" : "\r\033[K");
}

/* Measures one batch of each cell, then again. The load of the machine changes within seconds; in
 * this way it affects all cells alike. */
static int measure(const struct cell *cells, int count, const struct arguments *a,
		   struct result *results)
{
	int failed = 0;
	for (int i = 0; i < count; i++)
		failed |= cell_compare(&cells[i]);
	if (failed || a->compare_only)
		return failed;
	for (int batch = 0; batch < a->batches; batch++) {
		progress(batch, a->batches);
		for (int i = 0; i < count; i++)
			failed |= cell_measure(&cells[i], &a->plan, &results[i]);
	}
	progress(a->batches, a->batches);
	return failed;
}

static void report(const struct result *results, int count, int csv)
{
	FILE *table = csv ? stderr : stdout;
	if (csv)
		report_csv_header(stdout);
	report_header(table);
	for (int i = 0; i < count; i++) {
		if (csv)
			report_csv(stdout, &results[i]);
		report_cell(table, &results[i]);
	}
	fflush(stdout);
}

/* Checks that a sample costs the same on a deep stack. */
static int measure_growth(const struct arguments *a)
{
	int failed = 0;
	for (int i = 0; i < 6; i++) {
		const struct cell deep = {i < 3, 1024, changes[i % 3]},
				  flat = {i < 3, 16, changes[i % 3]};
		const struct ratio ratio = cells_compare_ours(&deep, &flat, &a->plan);
		if (ratio.median > 0)
			report_growth(a->csv ? stderr : stdout, &deep, &flat, ratio);
		else
			failed = 1;
	}
	return failed;
}

static int measure_all(const struct arguments *a, struct result *results)
{
	struct cell cells[CELLS];
	for (int i = 0; i < CELLS; i++)
		cells[i] = (struct cell){i < CELLS / 2, depths[i / CHANGES % DEPTHS],
					 changes[i % CHANGES]};
	int failed = measure(cells, CELLS, a, results);
	if (a->compare_only)
		return failed;
	report(results, CELLS, a->csv);
	report_goals(a->csv ? stderr : stdout, results, CELLS);
	return failed | measure_growth(a);
}

static int measure_one(const struct arguments *a, struct result *result)
{
	int failed = measure(&a->cell, 1, a, result);
	if (!a->compare_only)
		report(result, 1, a->csv);
	return failed;
}

int main(int argc, char **argv)
{
	static struct result results[CELLS];
	struct arguments a = {.plan = {.rounds = 15, .window_us = 200}, .batches = 9};
	if (parse(argc, argv, &a)) {
		fputs(usage, stderr);
		return 2;
	}
	if (a.iterations)
		return cell_repeat(&a.cell, a.peer, a.iterations) ? 1 : 0;
	if (a.growth_only)
		return measure_growth(&a);
	return (a.one_cell ? measure_one(&a, results) : measure_all(&a, results)) ? 1 : 0;
}
