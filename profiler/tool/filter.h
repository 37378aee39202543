/* SPDX-License-Identifier: MIT
 *
 * What the user wants to be taken out of profiles: functions that only hand out memory, other contexts, known leaks.
 * Applied once, to the profile, so that all outputs agree.
 */
#ifndef INCSTACK_TOOL_FILTER_H
#define INCSTACK_TOOL_FILTER_H

#include <stdbool.h>
#include <stdio.h>

#include <incstack/profile.h>

#include "profile/filter.h"

enum { TOOL_FILTER_TEXTS = 32 };

/* The arguments of an option that may be repeated. */
struct tool_texts {
	const char *at[TOOL_FILTER_TEXTS];
	size_t count;
};

struct tool_filter {
	struct tool_texts skip, focus; /* functions: patterns with * */
	struct tool_texts files;       /* of suppressions */
	bool shows_allocators;
};

/* What was taken out. */
struct tool_filtered {
	struct incstack__looked looked;
	bool is_focused;
	uint64_t kept, left_out;   /* of the first kind, by the focus */
	uint64_t contexts, leaked; /* suppressed ones, and what they leaked */
	bool is_suppressed;
	bool is_empty;           /* no context has a function in focus */
	char kind[64], unit[16]; /* the first kind of the profile; a long name is cut */
};

/* Adds an argument. Returns whether there was room. */
static inline bool tool_texts_add(struct tool_texts *texts, const char *text)
{
	if (texts->count == TOOL_FILTER_TEXTS)
		return false;
	texts->at[texts->count++] = text;
	return true;
}
/* Adds the argument of an option. Returns TOOL_DONE, or TOOL_USAGE after a message. */
int tool_texts_take(struct tool_texts *texts, const char *option, const char *argument);
/* Whether the user has asked for anything. */
bool tool_filter_is_given(const struct tool_filter *filter);

/* Returns the inputs and the files of the filter, which the work in the jail reads, too. The caller frees the
 * array; null, after a message: there is no memory. */
const char **tool_filter_inputs(const char *const *inputs, size_t count,
				const struct tool_filter *filter);

/* Applies the filter to a profile. With `is_answer`, functions that are known to hand out memory are looked
 * through if the profile has a kind of weight in bytes; otherwise only those that the user names. The filter may be
 * null. Reads the files of suppressions, in the jail. Returns an exit status, after a message. */
int tool_filter_apply(const struct tool_filter *filter, bool is_answer,
		      struct incstack_profile *profile, struct tool_filtered *done);

/* Says that no function is in focus. */
void tool_filter_say_empty(const struct tool_filter *filter);

/* Tells what was taken out, each in one line after `prefix`; nothing if that is nothing. `path`, if it is not null, says
 * of which profile. */
void tool_filter_tell(const struct tool_filtered *done, const char *prefix, const char *path,
		      FILE *out);

#endif
