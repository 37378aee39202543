/* SPDX-License-Identifier: MIT
 *
 * Details that only pprof files contain: labels of samples and places of frames. Each distinct
 * label or place is stored once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cct.h"

int incstack__extra_init(struct incstack__extra *extra)
{
	int error = incstack__table_init(&extra->place_table);

	return error ? error : incstack__table_init(&extra->label_table);
}

void incstack__extra_free(struct incstack__extra *extra)
{
	free(extra->mappings);
	free(extra->places);
	free(extra->place_table.slots);
	free(extra->labels);
	free(extra->label_table.slots);
	free(extra->comments);
}

static bool places_equal(const struct incstack__place *a, const struct incstack__place *b)
{
	return a->address == b->address && a->mapping == b->mapping && a->folded == b->folded;
}

int incstack__place_intern(struct incstack_profile *profile, const struct incstack__place *place,
			   uint32_t *number)
{
	struct incstack__extra *extra = &profile->extra;
	uint32_t at, hash = incstack__hash_pair(place->address,
						(uint64_t)place->mapping << 1 | place->folded);
	size_t cursor = hash;
	int error;

	while ((at = incstack__table_probe(&extra->place_table, hash, &cursor)) != INCSTACK__NONE)
		if (places_equal(&extra->places[at], place)) {
			*number = at + 1;
			return 0;
		}
	error = incstack__reserve((void **)&extra->places, &extra->places_room,
				  extra->places_used + 1, sizeof(*extra->places));
	if (!error)
		error = incstack__table_insert(&extra->place_table, hash,
					       (uint32_t)extra->places_used);
	if (error)
		return error;
	extra->places[extra->places_used++] = *place;
	*number = (uint32_t)extra->places_used;
	return 0;
}

static bool labels_equal(const struct incstack__label *a, const struct incstack__label *b)
{
	return a->number == b->number && a->key == b->key && a->text == b->text &&
	       a->unit == b->unit;
}

/* Finds or adds a label. Returns its number. */
static int label_intern(struct incstack__extra *extra, const struct incstack__label *label,
			uint32_t *number)
{
	uint32_t hash = incstack__hash_pair(label->number * 0x9e3779b97f4a7c15u + label->unit,
					    (uint64_t)label->key << 32 | label->text);
	size_t cursor = hash;
	int error;

	while ((*number = incstack__table_probe(&extra->label_table, hash, &cursor)) !=
	       INCSTACK__NONE)
		if (labels_equal(&extra->labels[*number], label))
			return 0;
	if (extra->labels_used >= INCSTACK__NONE - 1)
		return INCSTACK_ELIMIT;
	*number = (uint32_t)extra->labels_used;
	error = incstack__reserve((void **)&extra->labels, &extra->labels_room,
				  extra->labels_used + 1, sizeof(*extra->labels));
	if (!error)
		error = incstack__table_insert(&extra->label_table, hash, *number);
	if (!error)
		extra->labels[extra->labels_used++] = *label;
	return error;
}

static const char *text_of(const struct incstack_profile *profile, uint32_t name)
{
	return name ? incstack__text(profile, name - 1) : "";
}

/* Makes the name that users see: "key=text" or "key=5 unit". */
static int label_name(struct incstack_profile *profile, const struct incstack__label *label,
		      uint32_t *name)
{
	const char *unit = text_of(profile, label->unit);
	char *text;
	int error, length;

	if (label->text)
		length = asprintf(&text, "%s=%s", text_of(profile, label->key),
				  text_of(profile, label->text));
	else
		length = asprintf(&text, "%s=%" PRId64 "%s%s", text_of(profile, label->key),
				  (int64_t)label->number, *unit ? " " : "", unit);
	if (length < 0)
		return INCSTACK_ENOMEM;
	error = incstack__name_intern(profile, text, (size_t)length, name);
	free(text);
	return error;
}

int incstack__label_frame(struct incstack_profile *profile, const struct incstack__label *label,
			  uint32_t *frame)
{
	struct incstack__frame key = {.position = -1, .flags = INCSTACK_PROFILE_LABEL};
	uint32_t number;
	int error = label_intern(&profile->extra, label, &number);

	key.function = number;
	if (!error)
		error = label_name(profile, label, &key.key);
	return error ? error : incstack__frame_intern(profile, &key, frame);
}
