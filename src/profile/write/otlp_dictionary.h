/* SPDX-License-Identifier: MIT
 *
 * The dictionary of an OTLP file that is written: mappings, locations, functions, strings, attributes and stacks,
 * each with a number that the rest of the file refers to.
 */
#ifndef INCSTACK_PROFILE_OTLP_DICTIONARY_H
#define INCSTACK_PROFILE_OTLP_DICTIONARY_H

#include "function_set.h"
#include "pprof_chains.h"
#include "profile/bytes.h"
#include "profile/otlp.h"

/* A location that was written: what pprof_chains.h calls it. Its number is its index + 1. */
struct incstack__otlp_dictionary {
	const struct incstack_profile *profile;
	struct incstack__bytes message;
	uint32_t used[OTLP_TABLES]; /* elements of each table */
	uint32_t *strings_of; /* for each name of the profile: its string; 0: not written yet */
	size_t names, strings_room;
	struct incstack__function_set functions;
	struct incstack__pprof_chains chains;
	uint64_t *locations; /* what pprof_chains.h calls each location */
	size_t locations_room;
	struct incstack__table location_table;
	uint32_t *
		attributes_of; /* for each label of the profile: its attribute; 0: not written yet */
	size_t labels, attributes_room;
	uint32_t *
		threads_of; /* for each thread of the timeline: its name's attribute, and the id's */
	size_t threads, threads_room;
	struct incstack__bytes element, inner, packed; /* that are being made */
};

/* A zeroed dictionary is opened once, and closed also if that failed. */
int incstack__otlp_open(struct incstack__otlp_dictionary *d,
			const struct incstack_profile *profile);
void incstack__otlp_close(struct incstack__otlp_dictionary *d);

/* Each adds an element unless the file has it, and finds its number. */
int incstack__otlp_string(struct incstack__otlp_dictionary *d, const char *text, size_t length,
			  uint32_t *number);
int incstack__otlp_name(struct incstack__otlp_dictionary *d, uint32_t name, uint32_t *number);
int incstack__otlp_mappings(struct incstack__otlp_dictionary *d);
int incstack__otlp_label(struct incstack__otlp_dictionary *d, uint32_t label, uint32_t *number);
/* The attributes of a thread: numbers[0] is its name's, numbers[1] its identifier's; 0: unknown. */
int incstack__otlp_thread(struct incstack__otlp_dictionary *d, uint32_t thread,
			  const uint32_t **numbers);
/* Adds a stack: frames of the profile, innermost first. */
int incstack__otlp_stack(struct incstack__otlp_dictionary *d, const uint32_t *path, size_t depth,
			 uint32_t *number);

#endif
