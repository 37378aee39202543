/* SPDX-License-Identifier: MIT
 *
 * The meta data of a profile: its origin and its kinds.
 */
#include <stdlib.h>
#include <string.h>

#include "cct.h"

static int copy_text(const char *text, char **copy)
{
	*copy = NULL;
	if (!text)
		return 0;
	if (!incstack__text_valid(text, strlen(text)))
		return INCSTACK_EFORMAT;
	*copy = strdup(text);
	return *copy ? 0 : INCSTACK_ENOMEM;
}

int incstack_profile_set_meta(struct incstack_profile *profile,
			      const struct incstack_profile_meta *meta)
{
	char *program, *mode;
	int error;

	if (!profile || !meta || meta->size != sizeof(*meta))
		return INCSTACK_EINVAL;
	if (meta->time_ns > INT64_MAX || meta->duration_ns > INT64_MAX)
		return INCSTACK_ERANGE;
	error = copy_text(meta->program, &program);
	if (error)
		return error;
	error = copy_text(meta->mode, &mode);
	if (error) {
		free(program);
		return error;
	}
	free(profile->program);
	free(profile->mode);
	profile->program = program;
	profile->mode = mode;
	profile->meta = *meta;
	profile->meta.program = program;
	profile->meta.mode = mode;
	return 0;
}

int incstack_profile_meta(const struct incstack_profile *profile,
			  struct incstack_profile_meta *meta)
{
	if (!profile || !meta || meta->size != sizeof(*meta))
		return INCSTACK_EINVAL;
	*meta = profile->meta;
	return 0;
}

int incstack_profile_kind(const struct incstack_profile *profile, uint32_t kind,
			  struct incstack_profile_kind *description)
{
	if (!profile || !description || kind >= profile->kinds)
		return INCSTACK_EINVAL;
	description->name = incstack__text(profile, profile->kind_name[kind]);
	description->unit = incstack__text(profile, profile->kind_unit[kind]);
	return 0;
}
