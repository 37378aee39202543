/* SPDX-License-Identifier: MIT
 *
 * Names of output files, from templates: %p is the process, %t the time of the start, %n the
 * number of the part, %% a percent sign. Knows nothing of the JVM.
 */
#ifndef AGENT_NAMES_H
#define AGENT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct agent_name_values {
	long process;
	time_t start;
	uint32_t part;  /* from 1 */
	bool has_parts; /* there may be more than one: a template without %n gets "-N" */
};

/* Whether the template has only the known letters. If not, *wrong is the unknown one, or 0 for
 * a percent sign at the end. */
bool agent_name_valid(const char *pattern, char *wrong);

/* Writes the name to `name`. Returns false if it does not fit. */
bool agent_name_make(const char *pattern, const struct agent_name_values *values, char *name,
		     size_t size);

/* The format (enum incstack_profile_format) that the ending of a name asks for; 0: none. It
 * knows the endings of the profile library, .collapsed and .json. */
int agent_name_format(const char *name);

/* The ending that names of files with this format have: ".pb.gz". */
const char *agent_name_ending(int format);

#endif
