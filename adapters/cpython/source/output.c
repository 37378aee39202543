/* SPDX-License-Identifier: MIT
 *
 * What a recording becomes. The weights are those of `incstack heap`.
 */
#include "output.h"

#include <stdlib.h>
#include <string.h>

#include <incstack/error.h>

#include "lock.h"

/* A context deeper than this keeps its outermost and innermost frames: nobody can read a tower of thousands. */
enum { DEPTH_MAX = 512, INNERMOST = 64 };

static const struct incstack_profile_kind kinds[] = {
	{"allocated", "bytes"},    {"allocations", "count"},  {"temporary", "count"},
	{"live at peak", "bytes"}, {"live at exit", "bytes"},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- a profile -------------------------------------------------------------------------- */

/* The node of each context, and how deep it lies. */
struct place {
	uint32_t node, depth;
};

static int add_named(struct incstack_profile *profile, uint32_t parent, const char *name,
		     uint32_t *node)
{
	const struct incstack_profile_frame frame = {
		.size = sizeof(frame), .name = name, .name_length = strlen(name), .position = -1};
	return incstack_profile_add_node(profile, parent, &frame, node);
}

static int add_frame(struct incstack_profile *profile, uint32_t parent, const struct context *c,
		     uint32_t *node)
{
	const struct code *code = codes_at(c->code);
	const struct incstack_profile_frame frame = {.size = sizeof(frame),
						     .name = code->name,
						     .name_length = strlen(code->name),
						     .file = code->file,
						     .line = c->line,
						     .position = -1,
						     .kind = INCSTACK_KIND_INTERPRETED};
	return incstack_profile_add_node(profile, parent, &frame, node);
}

/* Adds a context whose middle is left out. */
static int add_deep(struct incstack_profile *profile, const struct place *places, uint32_t context,
		    uint32_t *node)
{
	uint32_t inner[INNERMOST], outer = context;
	for (size_t i = 0; i < INNERMOST; i++) {
		inner[i] = outer;
		outer = contexts[outer].parent;
	}
	while (places[outer].depth > DEPTH_MAX - INNERMOST)
		outer = contexts[outer].parent;
	int error = add_named(profile, places[outer].node, "[frames left out]", node);
	for (size_t i = INNERMOST; i-- > 0 && !error;)
		error = add_frame(profile, *node, &contexts[inner[i]], node);
	return error;
}

/* Whether it is a frame of the command `python3 -m incstack`, or a caller of it. */
static bool is_launcher(const struct place *places, uint32_t i, const char *launcher)
{
	const char *file = codes_at(contexts[i].code)->file;
	return *launcher && places[contexts[i].parent].node == INCSTACK_PROFILE_ROOT &&
	       (strcmp(file, launcher) == 0 || strcmp(file, "<frozen runpy>") == 0);
}

static int add_context(struct incstack_profile *profile, struct place *places, uint32_t i)
{
	const struct context *c = &contexts[i];
	const uint64_t weights[KINDS] = {c->bytes, c->calls, c->temporary, c->peak_bytes,
					 c->live_bytes};
	const bool has_weights = c->calls || c->peak_bytes;
	uint32_t node = places[c->parent].node;
	int error = 0;
	places[i].depth = places[c->parent].depth + 1;
	if (places[i].depth <= DEPTH_MAX)
		error = add_frame(profile, node, c, &places[i].node);
	else if (has_weights)
		error = add_deep(profile, places, i, &node);
	if (places[i].depth <= DEPTH_MAX)
		node = places[i].node;
	return error || !has_weights ? error : incstack_profile_add_weights(profile, node, weights);
}

/* What happened where no frame of Python is known. */
static int add_special(struct incstack_profile *profile, uint32_t i, const char *name)
{
	const struct context *c = &contexts[i];
	const uint64_t weights[KINDS] = {c->bytes, c->calls, c->temporary, c->peak_bytes,
					 c->live_bytes};
	uint32_t node;
	if (!c->calls)
		return 0;
	int error = add_named(profile, INCSTACK_PROFILE_ROOT, name, &node);
	return error ? error : incstack_profile_add_weights(profile, node, weights);
}

static int fill(struct incstack_profile *profile, const char *launcher)
{
	struct place *places = calloc(context_count, sizeof(*places));
	int error = places ? 0 : INCSTACK_ENOMEM;
	if (!error)
		error = add_special(profile, CONTEXTS_LOST, "[no memory for the stack]");
	if (!error)
		error = add_special(profile, CONTEXTS_OUTSIDE, "[outside of Python]");
	for (uint32_t i = CONTEXTS_FIRST; i < context_count && !error; i++)
		error = is_launcher(places, i, launcher)
				? add_special(profile, i, "[start of the program]")
				: add_context(profile, places, i);
	free(places);
	return error;
}

/* Writes the profile. The frames of the file `launcher` and their callers are left out; "": none. */
int output_write(FILE *stream, enum incstack_profile_format format, uint32_t kind,
		 const char *launcher, const struct incstack_profile_meta *meta)
{
	struct incstack_profile *profile;
	int error = incstack_profile_create(kinds, KINDS, &profile);
	if (error)
		return error;
	error = incstack_profile_set_meta(profile, meta);
	lock_take();
	recording_complete_peak();
	if (!error && context_count)
		error = fill(profile, launcher);
	lock_give();
	if (!error)
		error = incstack_profile_write(profile, format, kind, stream);
	incstack_profile_destroy(profile);
	return error;
}

/* ---- lines ------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
	const struct context *const *x = a, *const *y = b;
	if ((*x)->code != (*y)->code)
		return (*x)->code < (*y)->code ? -1 : 1;
	return (*x)->line < (*y)->line ? -1 : (*x)->line > (*y)->line;
}

static void add_to_line(struct line *line, const struct context *c)
{
	line->bytes += c->bytes;
	line->calls += c->calls;
	line->temporary += c->temporary;
	line->peak_bytes += c->peak_bytes;
	line->live_bytes += c->live_bytes;
	line->live_calls += c->live_calls;
}

/* Sums the contexts with allocations of their own, which `order` lists. */
static size_t sum_lines(const struct context **order, size_t count, struct line *lines)
{
	size_t n = 0;
	qsort(order, count, sizeof(*order), by_place);
	for (size_t i = 0; i < count; i++) {
		const struct code *code = codes_at(order[i]->code);
		if (i == 0 || by_place(&order[i - 1], &order[i]) != 0)
			lines[n++] = (struct line){
				.name = code->name, .file = code->file, .line = order[i]->line};
		add_to_line(&lines[n - 1], order[i]);
	}
	return n;
}

/* Hands over the sums of all lines, in no useful order; the caller frees them. */
int output_lines(struct line **lines, size_t *count)
{
	size_t n = 0;
	lock_take();
	recording_complete_peak();
	const struct context **order = malloc((context_count + 1) * sizeof(*order));
	*lines = calloc(context_count + 1, sizeof(**lines));
	if (order && *lines) {
		for (uint32_t i = CONTEXTS_FIRST; i < context_count; i++)
			if (contexts[i].calls)
				order[n++] = &contexts[i];
		*count = sum_lines(order, n, *lines);
	}
	lock_give();
	free(order);
	return order && *lines ? 0 : INCSTACK_ENOMEM;
}
