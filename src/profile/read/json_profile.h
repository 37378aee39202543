/* SPDX-License-Identifier: MIT
 *
 * A profile that is read from JSON. Frames are numbers until their names are known. Weights are
 * kept aside until the kinds are known.
 */
#ifndef INCSTACK_PROFILE_JSON_PROFILE_H
#define INCSTACK_PROFILE_JSON_PROFILE_H

#include "json_read.h"

/* long double holds every int64 and every double. */
struct incstack__json_weight {
	long double value;
	uint32_t node;
	uint32_t kind;
};

struct incstack__json_profile {
	struct incstack__reader *reader;
	struct incstack__json_weight *weights;
	size_t weights_used, weights_room;
	char *kind_name[INCSTACK_PROFILE_KINDS_MAX];
	char *kind_unit[INCSTACK_PROFILE_KINDS_MAX];
	long double scale[INCSTACK_PROFILE_KINDS_MAX];
	uint32_t kinds;
	uint32_t *names; /* of the profile, by number */
	size_t names_used, names_room;
	struct incstack__frame_info *frames; /* by their numbers in the file */
	size_t frames_used, frames_room;
	char *program, *mode;
	struct incstack_profile_meta meta;
};

int incstack__json_profile_name(struct incstack__json_profile *made, const char *text,
				size_t length);
/* Adds a frame whose name is a number in `names`. */
int incstack__json_profile_frame(struct incstack__json_profile *made,
				 const struct incstack__frame_info *info);
/* Adds a kind of one of our own files: each kind occurs once. Its weights, times `scale`, are in its unit. */
int incstack__json_profile_own_kind(struct incstack__json_profile *made, const char *name,
				    const char *unit, long double scale, uint32_t *kind);
/* The same, but returns the existing kind if there is one. */
int incstack__json_profile_same_kind(struct incstack__json_profile *made, const char *name,
				     const char *unit, long double scale, uint32_t *kind);
/* Finds or adds the kind with this name and unit. Times become ns. */
int incstack__json_profile_kind(struct incstack__json_profile *made, const char *name,
				const char *unit, uint32_t *kind);
int incstack__json_profile_weigh(struct incstack__json_profile *made, uint32_t node, uint32_t kind,
				 long double value);
/* Applies what was kept aside, and checks that it is consistent. */
int incstack__json_profile_settle(struct incstack__json_profile *made);
void incstack__json_profile_free(struct incstack__json_profile *made);

/* Reads an integer from 0 to limit - 1. Anything else is EFORMAT. */
int incstack__json_index(struct incstack__json_profile *made,
			 const struct incstack__json_event *event, size_t limit, uint32_t *index);
/* Copies a string to *copy, whose old content is freed. */
int incstack__json_copy(const struct incstack__json_event *event, char **copy);
/* Reads a member of what incstack__json_meta wrote, by its key. */
int incstack__json_profile_meta(struct incstack__json_profile *made, const char *key,
				const struct incstack__json_event *event);

#endif
