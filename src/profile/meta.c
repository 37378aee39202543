/* SPDX-License-Identifier: MIT
 *
 * What a profile says of itself: where it comes from, what its kinds are, and the
 * texts of the errors of this library.
 */
#include <stdlib.h>
#include <string.h>

#include "cct.h"

const char *incstack_profile_error_text(int error)
{
	switch (error) {
	case INCSTACK_EFORMAT:
		return "the input is not in the format";
	case INCSTACK_EIO:
		return "reading or writing failed";
	case INCSTACK_ELIMIT:
		return "more than the format or the tree can hold";
	case INCSTACK_ERANGE:
		return "a number or a sum is out of range";
	default:
		return incstack_error_text(error);
	}
}

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

	if (!profile || !meta)
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
	if (!profile || !meta)
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
