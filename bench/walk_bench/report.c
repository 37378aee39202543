/* SPDX-License-Identifier: MIT
 *
 * Prints the rows and the goals. The project has set these goals itself. A cell that misses one is
 * marked, and nothing else happens.
 */
#include <math.h>

#include "report.h"

static const char *frames_of(const struct cell *cell)
{
	return cell->frame_pointers ? "fp" : "nofp";
}

void report_csv_header(FILE *out)
{
	fputs("frames,depth,popped,peer,ratio_median,ratio_min,ratio_max\n", out);
}

void report_csv(FILE *out, const struct result *r)
{
	for (enum peer peer = PEER_UNW_BACKTRACE; peer < PEER_COUNT; peer++)
		if (peer_fits(peer, &r->cell))
			fprintf(out, "%s,%u,%u,%s,%.3f,%.3f,%.3f\n", frames_of(&r->cell),
				r->cell.depth, r->cell.popped, peer_names[peer],
				r->ratio[peer].median, r->ratio[peer].min, r->ratio[peer].max);
}

void report_header(FILE *out)
{
	fputs("ratios: time of the peer / time of ours; ns per trace without the workload\n", out);
	fprintf(out, "%4s %5s %3s |", "", "depth", "k");
	for (enum peer peer = PEER_UNW_BACKTRACE; peer < PEER_COUNT; peer++)
		fprintf(out, " %13s", peer_names[peer]);
	fprintf(out, " | %9s %9s %9s %9s %9s | %4s %s\n", "none ns", "ours ns", "unw ns", "fp ns",
		"own ns", "dist", "returns");
}

void report_cell(FILE *out, const struct result *r)
{
	fprintf(out, "%4s %5u %3u |", frames_of(&r->cell), r->cell.depth, r->cell.popped);
	for (enum peer peer = PEER_UNW_BACKTRACE; peer < PEER_COUNT; peer++)
		if (peer_fits(peer, &r->cell))
			fprintf(out, " %13.2f", r->ratio[peer].median);
		else
			fprintf(out, " %13s", "-");
	fprintf(out, " | %9.1f %9.1f %9.1f %9.1f %9.1f | %4u %.2f\n", r->ns[PEER_NONE],
		r->ns[PEER_OURS], r->ns[PEER_UNW_BACKTRACE], r->ns[PEER_FP_WALK],
		r->ns[PEER_OWN_WALK], r->distance, r->returns);
}

/* ---- goals -------------------------------------------------------------------------- */

static const struct result *find(const struct result *results, int count, int fp, unsigned depth,
				 unsigned popped)
{
	for (int i = 0; i < count; i++)
		if (results[i].cell.frame_pointers == fp && results[i].cell.depth == depth &&
		    results[i].cell.popped == popped)
			return &results[i];
	return NULL;
}

static void line(FILE *out, const char *what, int fp, double seen, const char *relation,
		 double wanted)
{
	int good = *relation == '>' ? seen >= wanted : seen <= wanted;
	fprintf(out, "%-44s %4s  seen %8.2f  wanted %s %7.2f  %s\n", what, fp ? "fp" : "nofp", seen,
		relation, wanted, good ? "reached" : "MISSED");
}

static void goals_of_cells(FILE *out, const struct result *results, int count)
{
	static const struct {
		unsigned depth, popped;
		double unw[2], own[2]; /* without and with frame pointers */
	} goals[] = {{64, 1, {35, 55}, {13, 6.5}},
		     {64, 4, {10, 17}, {4.2, 2.1}},
		     {256, 4, {36, 60}, {17, 9.5}},
		     {1024, 4, {130, 230}, {80, 75}}};
	char what[64];
	for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
		for (int fp = 1; fp >= 0; fp--) {
			const struct result *r =
				find(results, count, fp, goals[i].depth, goals[i].popped);
			if (!r)
				continue;
			snprintf(what, sizeof(what), "unw_backtrace / ours at (%u,%u)",
				 goals[i].depth, goals[i].popped);
			line(out, what, fp, r->ratio[PEER_UNW_BACKTRACE].median,
			     ">=", goals[i].unw[fp]);
			snprintf(what, sizeof(what), "own_walk / ours at (%u,%u)", goals[i].depth,
				 goals[i].popped);
			line(out, what, fp, r->ratio[PEER_OWN_WALK].median, ">=", goals[i].own[fp]);
		}
	}
}

static double own_walk_over(const struct result *results, int count, int fp, unsigned depth,
			    enum peer peer)
{
	double most = 0;
	for (int i = 0; i < count; i++)
		if (results[i].cell.frame_pointers == fp && results[i].cell.depth == depth)
			most = fmax(most, results[i].ns[PEER_OWN_WALK] / results[i].ns[peer]);
	return most;
}

/* The worst cell of each depth. */
static void goals_of_own_walk(FILE *out, const struct result *results, int count)
{
	static const unsigned depths[] = {16, 64, 256, 1024};
	char what[64];
	for (int i = 0; i < 8; i++) {
		int fp = i < 4;
		unsigned depth = depths[i % 4];
		enum peer peer = fp ? PEER_FP_WALK : PEER_UNW_BACKTRACE;
		double most = own_walk_over(results, count, fp, depth, peer);
		snprintf(what, sizeof(what), "own_walk / %s at depth %u, most", peer_names[peer],
			 depth);
		if (most > 0)
			line(out, what, fp, most, "<=", fp ? 2.5 : 1);
	}
}

static void goals_of_all(FILE *out, const struct result *results, int count, int fp)
{
	double never = INFINITY;
	for (int i = 0; i < count; i++)
		for (enum peer peer = PEER_UNW_BACKTRACE; peer < PEER_COUNT; peer++)
			if (results[i].cell.frame_pointers == fp && peer != PEER_FP_WALK)
				never = fmin(never, results[i].ratio[peer].median);
	if (!isinf(never))
		line(out, "any full walk / ours, least of all cells", fp, never, ">=", 0.90);
}

void report_growth(FILE *out, const struct cell *deep, const struct cell *flat, struct ratio ratio)
{
	char what[80];
	snprintf(what, sizeof(what), "ours at (%u,%u) / at (%u,%u) [%.2f..%.2f]", deep->depth,
		 deep->popped, flat->depth, flat->popped, ratio.min, ratio.max);
	line(out, what, deep->frame_pointers, ratio.median, "<=", 1.25);
}

void report_goals(FILE *out, const struct result *results, int count)
{
	fputc('\n', out);
	goals_of_cells(out, results, count);
	goals_of_all(out, results, count, 1);
	goals_of_all(out, results, count, 0);
	goals_of_own_walk(out, results, count);
}
