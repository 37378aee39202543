/* SPDX-License-Identifier: MIT
 *
 * Keeps the contexts that contain a function, and takes out leaks that are known. Each is one pass over the nodes,
 * because a parent comes before its children.
 */
#include <stdlib.h>
#include <string.h>

#include "curve.h"
#include "removal.h"
#include "filter.h"
#include "pattern.h"

/* Marks the nodes with a frame that matches, or with such a caller. */
static int mark(const struct incstack_profile *profile,
		bool (*matches)(const void *context, const struct incstack_profile *profile,
				uint32_t frame),
		const void *context, bool **marked)
{
	bool *frames;
	int error = incstack__frames_match(profile, matches, context, &frames);

	*marked = calloc(profile->nodes_used, sizeof(**marked));
	if (!*marked)
		error = INCSTACK_ENOMEM;
	for (uint32_t i = 1; !error && i < profile->nodes_used; i++)
		(*marked)[i] =
			(*marked)[profile->nodes[i].parent] || frames[profile->nodes[i].frame];
	free(frames);
	if (error) {
		free(*marked);
		*marked = NULL;
	}
	return error;
}

/* ---- focus ------------------------------------------------------------------------------ */

static bool is_function(const void *context, const struct incstack_profile *profile, uint32_t frame)
{
	const struct incstack__patterns *patterns = context;
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *text = incstack__frame_text(profile, frame, buffer, &length);

	for (size_t i = 0; i < patterns->count; i++)
		if (incstack__pattern_function(patterns->at[i], text, length))
			return true;
	return false;
}

static void take_out(struct incstack_profile *profile, uint32_t node, uint32_t kind, uint64_t *sum)
{
	uint64_t *weight = &profile->weights[(size_t)node * profile->kinds + kind];

	*sum += *weight;
	profile->total[kind] -= *weight;
	*weight = 0;
}

/* Takes out the weights of the other contexts. A node stays if it, or a callee, is in a context that stays. */
static int keep(struct incstack_profile *profile, const bool *stays, uint64_t *left_out)
{
	bool *kept = calloc(profile->nodes_used, sizeof(*kept));
	uint32_t *stands_for = malloc(profile->nodes_used * sizeof(*stands_for));
	int error = kept && stands_for ? 0 : INCSTACK_ENOMEM;

	for (uint32_t i = (uint32_t)profile->nodes_used; !error && i-- > 1;) {
		kept[i] |= stays[i];
		kept[profile->nodes[i].parent] |= kept[i];
		stands_for[i] = stays[i] ? i : INCSTACK_PROFILE_NONE;
		for (uint32_t k = 0; k < profile->kinds && !stays[i]; k++)
			take_out(profile, i, k, &left_out[k]);
	}
	if (!error) {
		stands_for[INCSTACK_PROFILE_ROOT] = INCSTACK_PROFILE_NONE;
		error = incstack__nodes_remove(profile, kept, stands_for);
	}
	free(kept);
	free(stands_for);
	return error;
}

int incstack__profile_focus(struct incstack_profile *profile,
			    const struct incstack__patterns *functions, bool outside,
			    uint64_t left_out[INCSTACK_PROFILE_KINDS_MAX])
{
	bool *stays;
	int error;

	if (!profile || !functions || !left_out)
		return INCSTACK_EINVAL;
	memset(left_out, 0, INCSTACK_PROFILE_KINDS_MAX * sizeof(*left_out));
	error = mark(profile, is_function, functions, &stays);
	for (size_t i = 1; !error && outside && i < profile->nodes_used; i++)
		stays[i] = !stays[i];
	/* The curve is of all memory. Beside the rest of the profile it would look like that of the rest. */
	if (!error)
		incstack__curve_drop(profile);
	if (!error)
		error = keep(profile, stays, left_out);
	free(stays);
	return error;
}

/* ---- suppressions ----------------------------------------------------------------------- */

static bool matches_name(const char *pattern, const struct incstack_profile *profile, uint32_t name)
{
	return incstack__pattern_matches(pattern, incstack__text(profile, name),
					 profile->names[name].length);
}

/* Returns the name of the file with the code of a frame + 1; 0: unknown. */
static uint32_t module_of(const struct incstack_profile *profile,
			  const struct incstack__frame *frame)
{
	return frame->module ? profile->modules.modules[frame->module - 1].file : 0;
}

static bool is_suppressed(const void *context, const struct incstack_profile *profile,
			  uint32_t number)
{
	const struct incstack__patterns *patterns = context;
	const struct incstack__frame *frame = &profile->frames[number];
	const uint32_t module = module_of(profile, frame);
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *text = incstack__frame_text(profile, number, buffer, &length);

	for (size_t i = 0; i < patterns->count; i++) {
		const char *pattern = patterns->at[i];

		if (incstack__pattern_matches(pattern, text, length) ||
		    (frame->file && matches_name(pattern, profile, frame->file - 1)) ||
		    (module && matches_name(pattern, profile, module - 1)))
			return true;
	}
	return false;
}

int incstack__profile_suppress(struct incstack_profile *profile, uint32_t kind,
			       const struct incstack__patterns *patterns, uint64_t *contexts,
			       uint64_t *weight)
{
	bool *known;
	int error;

	if (!profile || !patterns || !contexts || !weight || kind >= profile->kinds)
		return INCSTACK_EINVAL;
	*contexts = *weight = 0;
	error = mark(profile, is_suppressed, patterns, &known);
	for (uint32_t i = 1; !error && i < profile->nodes_used; i++) {
		if (!known[i])
			continue;
		*contexts += incstack__profile_self(profile, i, kind) > 0;
		take_out(profile, i, kind, weight);
	}
	free(known);
	return error;
}
