/* SPDX-License-Identifier: MIT
 *
 * The file of each part of a profile: its name, and what it says about the part. Knows nothing of the JVM.
 */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <incstack/profile.h>

#include "collector.h"
#include "options.h"

struct agent_output {
	const struct agent_options *options; /* for `file`, `format` and `split_ns` */
	time_t start;
	_Atomic uint32_t part; /* from 1 */
};

/* What is written of a part. */
struct agent_content {
	const struct incstack_profile *profile; /* its frames have no names yet */
	incstack_profile_source_fn *source;     /* finds the names */
	void *source_context;
	enum agent_mode mode;
	const struct agent_counts *counts;
	uint64_t begun_ns; /* CLOCK_MONOTONIC */
};

/* Begins with the first part. The options stay the caller's, until the last part is written. */
void agent_output_open(struct agent_output *output, const struct agent_options *options);

/* Returns null, or why the file of the part could not be written. */
const char *agent_output_probe(const struct agent_output *output, char name[AGENT_FILE_MAX]);

/* Writes the part. Prints the reason if it cannot. */
bool agent_output_write(const struct agent_output *output, const struct agent_content *content,
			char name[AGENT_FILE_MAX]);

/* The number of the part, which any thread may ask for; and the next part begins. */
uint32_t agent_output_part(const struct agent_output *output);
void agent_output_next(struct agent_output *output);

#endif
