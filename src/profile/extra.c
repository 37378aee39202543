/* SPDX-License-Identifier: MIT
 *
 * Details that only pprof files contain: labels of samples, each distinct one once, the period and the default
 * kind.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cct.h"
#include "files.h"

int incstack__extra_init(struct incstack__extra *extra)
{
	return incstack__table_init(&extra->label_table);
}

void incstack__extra_free(struct incstack__extra *extra)
{
	free(extra->labels);
	free(extra->label_table.slots);
	free(extra->comments);
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

/* Stores a name as its number + 1. */
static int set_name(struct incstack_profile *profile, const char *text, uint32_t *name)
{
	uint32_t number;
	int error = incstack__name_intern(profile, text, strlen(text), &number);

	if (!error)
		*name = number + 1;
	return error;
}

int incstack__profile_set_default(struct incstack_profile *profile, uint32_t kind,
				  const struct incstack_profile_kind *event, uint64_t period)
{
	int error;

	if (!profile || kind >= profile->kinds || !event || !event->name || !event->unit)
		return INCSTACK_EINVAL;
	error = set_name(profile, event->name, &profile->extra.period_name);
	if (!error)
		error = set_name(profile, event->unit, &profile->extra.period_unit);
	if (error)
		return error;
	profile->extra.default_kind = profile->kind_name[kind] + 1;
	profile->extra.period = period;
	return 0;
}

static int copy_name(const struct incstack_profile *from, uint32_t number,
		     struct incstack_profile *into, uint32_t *name)
{
	*name = 0;
	return number ? set_name(into, incstack__text(from, number - 1), name) : 0;
}

int incstack__extra_copy(const struct incstack_profile *from, struct incstack_profile *into)
{
	const struct incstack__extra *old = &from->extra;
	int error = copy_name(from, old->period_name, into, &into->extra.period_name);

	if (!error)
		error = copy_name(from, old->period_unit, into, &into->extra.period_unit);
	if (!error)
		error = copy_name(from, old->default_kind, into, &into->extra.default_kind);
	into->extra.period = old->period;
	return error;
}

uint32_t incstack__default_kind(const struct incstack_profile *profile)
{
	for (uint32_t k = 0; k < profile->kinds; k++)
		if (profile->kind_name[k] + 1 == profile->extra.default_kind)
			return k;
	return 0;
}
