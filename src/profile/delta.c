/* SPDX-License-Identifier: MIT
 *
 * The difference of two profiles. One profile without lines has the contexts of both; another has only frames, with
 * lines. Each kind of weight is one pass over the nodes of both, and a sort of what differs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "delta.h"
#include "merge.h"

/* One of the two profiles. */
struct side {
	const struct incstack_profile *of;
	uint32_t *nodes;     /* in `contexts`, for each node */
	uint32_t *functions; /* the frame in `contexts`, for each frame */
	uint32_t *lines;     /* the frame in `sites`, for each frame */
};

struct incstack__delta {
	struct incstack_profile *contexts; /* names only: each frame is a function */
	struct incstack_profile *sites;    /* frames with lines, no nodes */
	struct side side[2];
};

static int match_side(struct incstack__delta *delta, struct side *side,
		      const struct incstack_profile *of)
{
	const size_t frames = of->frames_used + 1;
	int error;

	side->of = of;
	side->nodes = malloc(of->nodes_used * sizeof(*side->nodes));
	side->functions = malloc(frames * sizeof(*side->functions));
	side->lines = malloc(frames * sizeof(*side->lines));
	if (!side->nodes || !side->functions || !side->lines)
		return INCSTACK_ENOMEM;
	error = incstack__map_frames(delta->contexts, of, INCSTACK__SITES_IGNORED, side->functions);
	if (!error)
		error = incstack__map_nodes(delta->contexts, of, side->functions, side->nodes);
	if (!error)
		error = incstack__map_frames(delta->sites, of, INCSTACK__SITES_KEPT, side->lines);
	return error;
}

static int match(struct incstack__delta *delta, const struct incstack_profile *before,
		 const struct incstack_profile *after)
{
	static const struct incstack_profile_kind none = {"none", "count"};
	int error = incstack_profile_create(&none, 1, &delta->contexts);

	if (!error)
		error = incstack_profile_create(&none, 1, &delta->sites);
	if (!error)
		error = match_side(delta, &delta->side[0], before);
	return error ? error : match_side(delta, &delta->side[1], after);
}

int incstack__delta_create(const struct incstack_profile *before,
			   const struct incstack_profile *after, struct incstack__delta **delta)
{
	struct incstack__delta *made;
	int error;

	if (!before || !after || !delta)
		return INCSTACK_EINVAL;
	made = calloc(1, sizeof(*made));
	error = made ? match(made, before, after) : INCSTACK_ENOMEM;
	if (error)
		incstack__delta_destroy(made);
	else
		*delta = made;
	return error;
}

void incstack__delta_destroy(struct incstack__delta *delta)
{
	if (!delta)
		return;
	for (int i = 0; i < 2; i++) {
		free(delta->side[i].nodes);
		free(delta->side[i].functions);
		free(delta->side[i].lines);
	}
	incstack_profile_destroy(delta->contexts);
	incstack_profile_destroy(delta->sites);
	free(delta);
}

const struct incstack_profile *incstack__delta_contexts(const struct incstack__delta *delta)
{
	return delta->contexts;
}

/* ---- one kind of weight -------------------------------------------------------------- */

/* The sums of a kind, by number of context, function or line, while they are added up. */
struct sums {
	struct incstack__change *contexts, *functions, *lines;
	uint32_t *function; /* of each line */
};

static void add(struct incstack__change *to, int which, uint64_t weight)
{
	*(which ? &to->after : &to->before) += weight;
}

static void sum_side(const struct side *side, int which, uint32_t kind, struct sums *sums)
{
	for (uint32_t i = 0; i < side->of->frames_used; i++)
		sums->function[side->lines[i]] = side->functions[i];
	for (uint32_t i = 1; i < side->of->nodes_used; i++) {
		const uint64_t weight = incstack__profile_self(side->of, i, kind);
		const uint32_t frame = side->of->nodes[i].frame;

		add(&sums->contexts[side->nodes[i]], which, weight);
		add(&sums->functions[side->functions[frame]], which, weight);
		add(&sums->lines[side->lines[frame]], which, weight);
	}
}

static double share(uint64_t weight, uint64_t total)
{
	return total ? (double)weight / (double)total : 0;
}

/* Sets by how much it differs; 0: not at all. */
static void measure(struct incstack__change *change, const struct incstack__kind_delta *of,
		    bool shares)
{
	const uint64_t a = change->before, b = change->after;

	if (!shares)
		change->by = a < b ? (double)(b - a) : -(double)(a - b);
	else if (of->before && of->after &&
		 (unsigned __int128)a * of->after == (unsigned __int128)b * of->before)
		change->by = 0;
	else
		change->by = share(b, of->after) - share(a, of->before);
}

static int by_size(const void *a, const void *b)
{
	const struct incstack__change *x = a, *y = b;
	const double left = fabs(x->by), right = fabs(y->by);

	if (left != right)
		return left < right ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Keeps what differs, and puts the largest first. Before the call, the number of each is in its place. */
static struct incstack__changes keep_changed(struct incstack__change *all, size_t count,
					     const struct incstack__kind_delta *of, bool shares)
{
	struct incstack__changes kept = {all, 0};

	for (size_t i = 0; i < count; i++) {
		all[i].node = (uint32_t)i;
		measure(&all[i], of, shares);
		if (all[i].by != 0)
			all[kept.count++] = all[i];
	}
	qsort(all, kept.count, sizeof(*all), by_size);
	return kept;
}

static void name_functions(const struct incstack__delta *delta, struct incstack__changes *functions)
{
	for (size_t i = 0; i < functions->count; i++)
		functions->at[i].name = incstack__text(
			delta->contexts, delta->contexts->frames[functions->at[i].node].name);
}

/* ---- lines --------------------------------------------------------------------------- */

/* A line while it is ordered: `node` is the place of its function among the functions that differ. */
static int by_place(const void *a, const void *b)
{
	const struct incstack__change *x = a, *y = b;
	const int files = x->file && y->file ? strcmp(x->file, y->file)
					     : (x->file != NULL) - (y->file != NULL);

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return files ? files : (x->line > y->line) - (x->line < y->line);
}

static int by_function(const void *a, const void *b)
{
	const struct incstack__change *x = a, *y = b;

	return x->node != y->node ? (x->node < y->node ? -1 : 1) : by_size(a, b);
}

/* Frames of one line may differ in what is not shown, such as whether they were inlined. */
static size_t unite_lines(struct incstack__change *all, size_t count)
{
	size_t kept = 0;

	qsort(all, count, sizeof(*all), by_place);
	for (size_t i = 0; i < count; i++) {
		if (kept && by_place(&all[kept - 1], &all[i]) == 0) {
			all[kept - 1].before += all[i].before;
			all[kept - 1].after += all[i].after;
		} else {
			all[kept++] = all[i];
		}
	}
	return kept;
}

/* Keeps the lines of functions that differ. places[] has 1 + the place of each such function, else 0. */
static size_t place_lines(const struct incstack__delta *delta, const struct sums *sums,
			  const uint32_t *places)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < delta->sites->frames_used; i++) {
		const struct incstack__frame *frame = &delta->sites->frames[i];
		struct incstack__change line = sums->lines[i];

		if (!places[sums->function[i]] || !frame->line)
			continue;
		line.node = places[sums->function[i]] - 1;
		line.file = frame->file ? incstack__text(delta->sites, frame->file - 1) : NULL;
		line.line = frame->line;
		sums->lines[kept++] = line;
	}
	return kept;
}

static void find_lines(const struct incstack__delta *delta, const struct sums *sums,
		       const uint32_t *places, bool shares, struct incstack__kind_delta *of)
{
	size_t count = place_lines(delta, sums, places), kept = 0;

	count = unite_lines(sums->lines, count);
	for (size_t i = 0; i < count; i++) {
		measure(&sums->lines[i], of, shares);
		if (sums->lines[i].by != 0)
			sums->lines[kept++] = sums->lines[i];
	}
	qsort(sums->lines, kept, sizeof(*sums->lines), by_function);
	of->lines = (struct incstack__changes){sums->lines, kept};
	for (size_t i = kept; i-- > 0;) {
		struct incstack__change *function = &of->functions.at[sums->lines[i].node];

		sums->lines[i].name = function->name;
		function->first = (uint32_t)i;
		function->count++;
	}
}

static int find_changes(const struct incstack__delta *delta, struct sums *sums, bool shares,
			struct incstack__kind_delta *of)
{
	uint32_t *places = calloc(delta->contexts->frames_used + 1, sizeof(*places));

	if (!places)
		return INCSTACK_ENOMEM;
	of->contexts = keep_changed(sums->contexts, delta->contexts->nodes_used, of, shares);
	of->functions = keep_changed(sums->functions, delta->contexts->frames_used, of, shares);
	name_functions(delta, &of->functions);
	for (size_t i = 0; i < of->functions.count; i++)
		places[of->functions.at[i].node] = (uint32_t)i + 1;
	find_lines(delta, sums, places, shares, of);
	free(places);
	return 0;
}

int incstack__delta_weigh(const struct incstack__delta *delta, uint32_t before, uint32_t after,
			  bool shares, struct incstack__kind_delta *of)
{
	const size_t lines = delta->sites->frames_used + 1;
	struct sums sums;
	int error = INCSTACK_ENOMEM;

	*of = (struct incstack__kind_delta){0};
	if (before >= delta->side[0].of->kinds || after >= delta->side[1].of->kinds)
		return INCSTACK_EINVAL;
	of->before = delta->side[0].of->total[before];
	of->after = delta->side[1].of->total[after];
	sums.contexts = calloc(delta->contexts->nodes_used, sizeof(*sums.contexts));
	sums.functions = calloc(delta->contexts->frames_used + 1, sizeof(*sums.functions));
	sums.lines = calloc(lines, sizeof(*sums.lines));
	sums.function = calloc(lines, sizeof(*sums.function));
	of->contexts.at = sums.contexts;
	of->functions.at = sums.functions;
	of->lines.at = sums.lines;
	if (sums.contexts && sums.functions && sums.lines && sums.function) {
		sum_side(&delta->side[0], 0, before, &sums);
		sum_side(&delta->side[1], 1, after, &sums);
		error = find_changes(delta, &sums, shares, of);
	}
	free(sums.function);
	if (error)
		incstack__kind_delta_free(of);
	return error;
}

void incstack__kind_delta_free(struct incstack__kind_delta *of)
{
	free(of->contexts.at);
	free(of->functions.at);
	free(of->lines.at);
	*of = (struct incstack__kind_delta){0};
}
