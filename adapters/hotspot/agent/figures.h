/* SPDX-License-Identifier: MIT
 *
 * What is known of a part besides its profile. Each role counts its share. Knows nothing of the JVM.
 */
#ifndef AGENT_FIGURES_H
#define AGENT_FIGURES_H

#include <stdint.h>

#include "collector.h"
#include "latency.h"

/* What the sampler counts. */
struct agent_ticks {
	uint64_t taken, missed;
	uint64_t wanted; /* the samples that all of them should have given */
};

/* What the technique counts. */
struct agent_findings {
	struct agent_latency latency;
	uint64_t crosschecked, mismatches, returns, stale, virtual_samples;
};

struct agent_figures {
	struct agent_counts counts; /* the collector's; the technique adds what the JVM has lost */
	struct agent_ticks ticks;
	struct agent_findings findings;
	uint64_t processor_ns; /* of the threads that could be sampled */
};

#endif
