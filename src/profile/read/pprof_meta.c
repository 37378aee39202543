/* SPDX-License-Identifier: MIT
 *
 * Reads the meta data of a pprof file. Our writer puts its meta data into comments. Comments of
 * other programs, the period and the default sample type are details that only pprof files have.
 */
#include <stdlib.h>
#include <string.h>

#include "pprof_tables.h"

/* Reads a comment that our writer made from the meta data. Returns false for any other comment. */
static bool take_comment(struct incstack_profile_meta *meta, const char *comment)
{
	static const char prefix[] = "incstack.";
	const struct {
		const char *key;
		uint64_t *count;
		const char **text;
	} known[] = {{"program=", NULL, &meta->program},
		     {"mode=", NULL, &meta->mode},
		     {"lost=", &meta->lost, NULL},
		     {"truncated=", &meta->truncated, NULL},
		     {"pruned=", &meta->pruned, NULL}};

	if (strncmp(comment, prefix, sizeof(prefix) - 1) != 0)
		return false;
	comment += sizeof(prefix) - 1;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t length = strlen(known[i].key);

		if (strncmp(comment, known[i].key, length) != 0)
			continue;
		if (known[i].text)
			*known[i].text = comment + length;
		else
			*known[i].count = strtoull(comment + length, NULL, 10);
		return true;
	}
	return false;
}

/* As incstack__pprof_name, but an invalid name is not reported. */
static int extra_name(const struct incstack__pprof_tables *tables, uint64_t string,
		      struct incstack_profile *profile, uint32_t *name)
{
	bool valid;

	return incstack__pprof_name(tables, string, profile, name, &valid);
}

static int keep_comment(const struct incstack__pprof_tables *tables, uint64_t string,
			struct incstack_profile *profile)
{
	struct incstack__extra *extra = &profile->extra;
	int error = incstack__reserve((void **)&extra->comments, &extra->comments_room,
				      extra->comments_used + 1, sizeof(*extra->comments));

	if (!error)
		error = extra_name(tables, string, profile, &extra->comments[extra->comments_used]);
	if (!error && extra->comments[extra->comments_used])
		extra->comments_used++;
	return error;
}

static int set_extra(const struct incstack__pprof_tables *tables, struct incstack_profile *profile)
{
	struct incstack__extra *extra = &profile->extra;
	int error = extra_name(tables, tables->period_type[0], profile, &extra->period_name);

	if (!error)
		error = extra_name(tables, tables->period_type[1], profile, &extra->period_unit);
	if (!error)
		error = extra_name(tables, tables->default_kind, profile, &extra->default_kind);
	extra->period = tables->period;
	return error;
}

int incstack__pprof_meta(const struct incstack__pprof_tables *tables,
			 struct incstack_profile *profile)
{
	struct incstack_profile_meta meta = {.size = sizeof(meta),
					     .time_ns = tables->time_ns,
					     .duration_ns = tables->duration_ns};
	int error = set_extra(tables, profile);

	for (size_t i = 0; i < tables->comments_used && !error; i++) {
		const char *comment = incstack__pprof_string(tables, tables->comments[i]);

		if (!comment)
			profile->losses |= INCSTACK__LOSS_COMMENTS;
		else if (!take_comment(&meta, comment))
			error = keep_comment(tables, tables->comments[i], profile);
	}
	return error ? error : incstack_profile_set_meta(profile, &meta);
}
