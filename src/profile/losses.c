/* SPDX-License-Identifier: MIT
 *
 * Tells which details each format cannot contain.
 */
#include <string.h>

#include "cct.h"
#include "files.h"

#define EXTRA_LOSSES \
	(INCSTACK__LOSS_COMMENTS | INCSTACK__LOSS_PERIOD | INCSTACK__LOSS_LABELS | \
	 INCSTACK__LOSS_MAPPINGS)
#define FRAME_LOSSES (INCSTACK__LOSS_FILES | INCSTACK__LOSS_LINES | INCSTACK__LOSS_INLINING)

static const uint32_t unsaid[] = {
	[INCSTACK_FORMAT_FOLDED] = FRAME_LOSSES | INCSTACK__LOSS_FRAME_KINDS |
				   INCSTACK__LOSS_KINDS | INCSTACK__LOSS_UNIT |
				   INCSTACK__LOSS_META | INCSTACK__LOSS_NAMES | EXTRA_LOSSES,
	[INCSTACK_FORMAT_PPROF] = INCSTACK__LOSS_INLINING | INCSTACK__LOSS_FRAME_KINDS,
	[INCSTACK_FORMAT_SPEEDSCOPE] = EXTRA_LOSSES | INCSTACK__LOSS_FRAME_KINDS,
	[INCSTACK_FORMAT_FIREFOX] = EXTRA_LOSSES | INCSTACK__LOSS_FRAME_KINDS,
	[INCSTACK_FORMAT_HTML] = EXTRA_LOSSES,
	[INCSTACK_FORMAT_OTLP] = INCSTACK__LOSS_INLINING | INCSTACK__LOSS_FRAME_KINDS |
				 INCSTACK__LOSS_COMMENTS | INCSTACK__LOSS_PERIOD |
				 INCSTACK__LOSS_MAPPINGS,
};

static uint32_t said_of_frames(const struct incstack_profile *profile)
{
	uint32_t said = 0;

	for (size_t i = 0; i < profile->frames_used; i++) {
		const struct incstack__frame *f = &profile->frames[i];
		const char *text =
			f->name == INCSTACK__NONE ? "" : incstack__text(profile, f->name);

		said |= f->file ? INCSTACK__LOSS_FILES : 0;
		said |= f->line ? INCSTACK__LOSS_LINES : 0;
		said |= f->kind ? INCSTACK__LOSS_FRAME_KINDS : 0;
		said |= f->flags & INCSTACK_OBJECT_VIRTUAL ? INCSTACK__LOSS_INLINING : 0;
		said |= strpbrk(text, ";\n") ? INCSTACK__LOSS_NAMES : 0;
	}
	return said;
}

static uint32_t said_of_profile(const struct incstack_profile *profile, uint32_t kind)
{
	const struct incstack_profile_meta *meta = &profile->meta;
	const struct incstack__extra *extra = &profile->extra;
	struct incstack_profile_kind own = {"", ""};
	uint32_t said = 0;

	(void)incstack_profile_kind(profile, kind, &own);
	if (profile->kinds > 1)
		said |= INCSTACK__LOSS_KINDS;
	if (strcmp(own.name, "samples") != 0 || strcmp(own.unit, "count") != 0)
		said |= INCSTACK__LOSS_UNIT;
	if (meta->program || meta->mode || meta->time_ns || meta->duration_ns || meta->lost ||
	    meta->truncated || meta->pruned)
		said |= INCSTACK__LOSS_META;
	if (extra->labels_used)
		said |= INCSTACK__LOSS_LABELS;
	if (profile->modules.mappings_used || profile->modules.places_used)
		said |= INCSTACK__LOSS_MAPPINGS;
	if (extra->comments_used)
		said |= INCSTACK__LOSS_COMMENTS;
	if (extra->period || extra->period_name || extra->period_unit || extra->default_kind)
		said |= INCSTACK__LOSS_PERIOD;
	return said;
}

/* Whether the outermost frame of a stack is inlined. pprof and OTLP cannot express this, because they list
 * inlined frames in the location of the frame that they are inlined into. */
static bool outermost_is_inlined(const struct incstack_profile *profile)
{
	for (size_t i = 1; i < profile->nodes_used; i++) {
		const struct incstack__node *node = &profile->nodes[i];

		if (node->parent == INCSTACK_PROFILE_ROOT &&
		    profile->frames[node->frame].flags & INCSTACK_OBJECT_VIRTUAL)
			return true;
	}
	return false;
}

/* Whether a mapping or a place has a bit of pprof's that OTLP has no field for. */
static bool has_bits(const struct incstack_profile *profile)
{
	const struct incstack__modules *all = &profile->modules;

	for (size_t i = 0; i < all->mappings_used; i++)
		if (all->mappings[i].has)
			return true;
	for (size_t i = 0; i < all->places_used; i++)
		if (all->places[i].folded)
			return true;
	return false;
}

/* Returns the losses of an OTLP file, of those that it may have. */
static uint32_t lost_of_otlp(const struct incstack_profile *profile, uint32_t lost)
{
	if (!outermost_is_inlined(profile))
		lost &= ~(uint32_t)INCSTACK__LOSS_INLINING;
	if (!profile->extra.default_kind)
		lost &= ~(uint32_t)INCSTACK__LOSS_PERIOD;
	return has_bits(profile) ? lost : lost & ~(uint32_t)INCSTACK__LOSS_MAPPINGS;
}

/* Whether modules are where they were mapped in a process. Firefox files have libraries and addresses in them,
 * but not where these were mapped. */
static bool has_ranges(const struct incstack_profile *profile)
{
	const struct incstack__modules *all = &profile->modules;

	for (size_t i = 0; i < all->mappings_used; i++)
		if (all->mappings[i].start || all->mappings[i].limit || all->mappings[i].offset ||
		    all->mappings[i].has)
			return true;
	return profile->places_apart;
}

uint32_t incstack__profile_losses(const struct incstack_profile *profile,
				  enum incstack_profile_format format, uint32_t kind)
{
	uint32_t lost;

	if (!profile)
		return 0;
	lost = (unsigned)format < sizeof(unsaid) / sizeof(unsaid[0]) ? unsaid[format] : 0;
	if (format == INCSTACK_FORMAT_PPROF && !outermost_is_inlined(profile))
		lost &= ~(uint32_t)INCSTACK__LOSS_INLINING;
	if (format == INCSTACK_FORMAT_OTLP)
		lost = lost_of_otlp(profile, lost);
	if (format == INCSTACK_FORMAT_FIREFOX && !has_ranges(profile))
		lost &= ~(uint32_t)INCSTACK__LOSS_MAPPINGS; /* the modules are its libraries */
	if (format == INCSTACK_FORMAT_FIREFOX && profile->timeline)
		lost |= INCSTACK__LOSS_KINDS;
	return profile->losses |
	       (lost & (said_of_frames(profile) | said_of_profile(profile, kind)));
}

const char *incstack__profile_loss_text(uint32_t loss)
{
	switch (loss) {
	case INCSTACK__LOSS_LABELS:
		return "labels of samples";
	case INCSTACK__LOSS_MAPPINGS:
		return "mappings and addresses";
	case INCSTACK__LOSS_FUNCTIONS:
		return "system names, start lines, columns or filters";
	case INCSTACK__LOSS_FILES:
		return "file names";
	case INCSTACK__LOSS_LINES:
		return "line numbers";
	case INCSTACK__LOSS_INLINING:
		return "what is inlined";
	case INCSTACK__LOSS_KINDS:
		return "other kinds of weight";
	case INCSTACK__LOSS_UNIT:
		return "the kind's name and unit";
	case INCSTACK__LOSS_META:
		return "metadata";
	case INCSTACK__LOSS_COMMENTS:
		return "comments";
	case INCSTACK__LOSS_PERIOD:
		return "period and default kind";
	case INCSTACK__LOSS_NAMES:
		return "';' and newlines in names";
	case INCSTACK__LOSS_FRACTIONS:
		return "fractions of weights";
	case INCSTACK__LOSS_THREADS:
		return "which thread a sample is of";
	case INCSTACK__LOSS_FRAME_KINDS:
		return "kinds of frames";
	default:
		return NULL;
	}
}
