/* SPDX-License-Identifier: MIT
 *
 * Makes a profile from names, kinds and weights that come in any order.
 */
#include "json_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int incstack__json_profile_name(struct incstack__json_profile *made, const char *text,
				size_t length)
{
	int error = incstack__reserve((void **)&made->names, &made->names_room,
				      made->names_used + 1, sizeof(*made->names));

	if (!error && !incstack__text_valid(text, length))
		error = incstack__refuse(made->reader, "a name with a NUL character");
	if (!error && !length) {
		text = "[unknown]";
		length = strlen(text);
	}
	if (!error)
		error = incstack__name_intern(made->reader->profile, text, length,
					      &made->names[made->names_used]);
	if (!error)
		made->names_used++;
	return error;
}

int incstack__json_profile_frame(struct incstack__json_profile *made,
				 const struct incstack__frame_info *info)
{
	int error = incstack__reserve((void **)&made->frames, &made->frames_room,
				      made->frames_used + 1, sizeof(*made->frames));

	if (!error)
		made->frames[made->frames_used++] = *info;
	return error;
}

static long double scale_of(const char **unit)
{
	static const struct {
		const char *unit;
		long double scale;
	} times[] = {{"microseconds", 1e3L}, {"milliseconds", 1e6L}, {"seconds", 1e9L}};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (!strcmp(*unit, times[i].unit)) {
			*unit = "nanoseconds";
			return times[i].scale;
		}
	return 1;
}

static int add_kind(struct incstack__json_profile *made, const char *name, const char *unit,
		    long double scale, uint32_t *kind)
{
	if (made->kinds == INCSTACK_PROFILE_KINDS_MAX)
		return incstack__refuse(made->reader, "more kinds than a profile can have");
	*kind = made->kinds++;
	made->kind_name[*kind] = strdup(name);
	made->kind_unit[*kind] = strdup(unit);
	made->scale[*kind] = scale;
	return made->kind_name[*kind] && made->kind_unit[*kind] ? 0 : INCSTACK_ENOMEM;
}

int incstack__json_profile_own_kind(struct incstack__json_profile *made, const char *name,
				    const char *unit, long double scale, uint32_t *kind)
{
	return add_kind(made, name, unit, scale, kind);
}

int incstack__json_profile_same_kind(struct incstack__json_profile *made, const char *name,
				     const char *unit, long double scale, uint32_t *kind)
{
	for (*kind = 0; *kind < made->kinds; ++*kind)
		if (!strcmp(made->kind_name[*kind], name) &&
		    !strcmp(made->kind_unit[*kind], unit) && made->scale[*kind] == scale)
			return 0;
	return add_kind(made, name, unit, scale, kind);
}

int incstack__json_profile_kind(struct incstack__json_profile *made, const char *name,
				const char *unit, uint32_t *kind)
{
	long double scale = scale_of(&unit);

	for (*kind = 0; *kind < made->kinds; ++*kind)
		if (!strcmp(made->kind_name[*kind], name) &&
		    !strcmp(made->kind_unit[*kind], unit) && made->scale[*kind] == scale) {
			made->reader->profile->losses |= INCSTACK__LOSS_THREADS;
			return 0;
		}
	return add_kind(made, name, unit, scale, kind);
}

int incstack__json_profile_weigh(struct incstack__json_profile *made, uint32_t node, uint32_t kind,
				 long double value)
{
	int error = incstack__reserve((void **)&made->weights, &made->weights_room,
				      made->weights_used + 1, sizeof(*made->weights));

	if (!error)
		made->weights[made->weights_used++] =
			(struct incstack__json_weight){.value = value, .node = node, .kind = kind};
	return error;
}

/* Sums the weights of all contexts by kind. */
static int sum_up(const struct incstack__json_profile *made, long double *sums)
{
	for (size_t i = 0; i < made->weights_used; i++) {
		const struct incstack__json_weight *w = &made->weights[i];
		long double value = w->value * made->scale[w->kind];

		if (!(value >= 0) || value > (long double)INT64_MAX)
			return incstack__refuse(made->reader, "a weight that is negative or beyond "
							      "2^63 - 1");
		/* A decimal fraction that is an integer in its unit may be inexact as a double. */
		if (fabsl(value - roundl(value)) <= value * 0x1p-52L)
			value = roundl(value);
		sums[(size_t)w->node * made->kinds + w->kind] += value;
	}
	return 0;
}

/* Rounds the weights so that their sum is the rounded sum. The fractions that contexts lose are
 * carried over to later contexts. */
static int round_sums(struct incstack__json_profile *made, const long double *sums)
{
	struct incstack_profile *profile = made->reader->profile;
	long double rest[INCSTACK_PROFILE_KINDS_MAX] = {0};
	size_t nodes = profile->nodes_used;
	int error = 0;

	for (size_t i = 0; i < nodes * made->kinds && !error; i++) {
		long double whole = floorl(sums[i]), part = sums[i] - whole;
		uint32_t kind = (uint32_t)(i % made->kinds);

		if (sums[i] > (long double)INT64_MAX)
			return incstack__refuse(made->reader,
						"the weights sum to more than 2^63 - 1");
		if (part > 0)
			profile->losses |= INCSTACK__LOSS_FRACTIONS;
		rest[kind] += part;
		if (rest[kind] >= 0.5L) {
			rest[kind]--;
			whole++;
		}
		if (whole > 0)
			error = incstack__weigh(made->reader, (uint32_t)(i / made->kinds), kind,
						(uint64_t)whole);
	}
	return error;
}

static int apply_weights(struct incstack__json_profile *made)
{
	long double *sums = calloc(made->reader->profile->nodes_used * made->kinds, sizeof(*sums));
	int error = sums ? sum_up(made, sums) : INCSTACK_ENOMEM;

	if (!error)
		error = round_sums(made, sums);
	free(sums);
	return error;
}

static int set_kinds(struct incstack__json_profile *made)
{
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];
	uint32_t kind;
	int error = 0;

	if (!made->kinds)
		error = incstack__json_profile_kind(made, "samples", "count", &kind);
	for (uint32_t k = 0; k < made->kinds; k++)
		kinds[k] = (struct incstack_profile_kind){.name = made->kind_name[k],
							  .unit = made->kind_unit[k]};
	return error ? error
		     : incstack__profile_set_kinds(made->reader->profile, kinds, made->kinds);
}

/* Merges equal frames, which were read separately for each thread, and their contexts. */
static int join_frames(struct incstack__reader *reader)
{
	struct incstack_profile *apart = reader->profile, *joined;
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];
	int error;

	for (uint32_t k = 0; k < apart->kinds; k++)
		(void)incstack_profile_kind(apart, k, &kinds[k]);
	error = incstack_profile_create(kinds, apart->kinds, &joined);
	if (error)
		return error;
	error = incstack_profile_merge(joined, apart);
	if (!error)
		error = incstack_profile_set_meta(joined, &apart->meta);
	joined->losses = apart->losses;
	reader->profile = joined;
	incstack_profile_destroy(apart);
	return error;
}

static int set_meta(struct incstack__json_profile *made)
{
	int error;

	made->meta.size = sizeof(made->meta);
	made->meta.program = made->program && *made->program ? made->program : NULL;
	made->meta.mode = made->mode && *made->mode ? made->mode : NULL;
	error = incstack_profile_set_meta(made->reader->profile, &made->meta);
	return error == INCSTACK_ERANGE || error == INCSTACK_EFORMAT
		       ? incstack__refuse(made->reader, "metadata out of range")
		       : error;
}

int incstack__json_profile_settle(struct incstack__json_profile *made)
{
	int error = incstack__frames_settle(made->reader->profile, made->frames, made->frames_used);

	if (error == INCSTACK_EFORMAT)
		return incstack__refuse(made->reader, "a frame that is not in the table of frames");
	if (!error)
		error = set_kinds(made);
	if (!error)
		error = apply_weights(made);
	if (!error)
		error = set_meta(made);
	return error ? error : join_frames(made->reader);
}

void incstack__json_profile_free(struct incstack__json_profile *made)
{
	for (uint32_t k = 0; k < INCSTACK_PROFILE_KINDS_MAX; k++) {
		free(made->kind_name[k]);
		free(made->kind_unit[k]);
	}
	free(made->weights);
	free(made->names);
	free(made->frames);
	free(made->program);
	free(made->mode);
}

int incstack__json_index(struct incstack__json_profile *made,
			 const struct incstack__json_event *event, size_t limit, uint32_t *index)
{
	if (event->type != INCSTACK__JSON_INTEGER || event->integer < 0 ||
	    (unsigned long long)event->integer >= limit || event->integer >= UINT32_MAX)
		return incstack__refuse(made->reader, "an index that is out of range");
	*index = (uint32_t)event->integer;
	return 0;
}

int incstack__json_copy(const struct incstack__json_event *event, char **copy)
{
	if (event->type != INCSTACK__JSON_STRING)
		return 0;
	free(*copy);
	*copy = malloc(event->length + 1);
	if (!*copy)
		return INCSTACK_ENOMEM;
	memcpy(*copy, event->text, event->length);
	(*copy)[event->length] = '\0';
	return 0;
}

int incstack__json_profile_meta(struct incstack__json_profile *made, const char *key,
				const struct incstack__json_event *event)
{
	const struct {
		const char *key;
		uint64_t *number;
	} numbers[] = {{"time_ns", &made->meta.time_ns},
		       {"duration_ns", &made->meta.duration_ns},
		       {"lost", &made->meta.lost},
		       {"truncated", &made->meta.truncated},
		       {"pruned", &made->meta.pruned}};

	if (!strcmp(key, "program"))
		return incstack__json_copy(event, &made->program);
	if (!strcmp(key, "mode"))
		return incstack__json_copy(event, &made->mode);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(key, numbers[i].key) && event->type == INCSTACK__JSON_INTEGER &&
		    event->integer >= 0)
			*numbers[i].number = (uint64_t)event->integer;
	return 0;
}
