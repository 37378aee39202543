/* SPDX-License-Identifier: MIT
 *
 * Counts how late samples are, in a histogram whose buckets are an eighth of an octave wide. Knows
 * nothing of the JVM.
 */
#ifndef AGENT_LATENCY_H
#define AGENT_LATENCY_H

#include <stdint.h>

enum { AGENT_LATENCY_BUCKETS = 8 * 48 };

struct agent_latency {
	uint64_t buckets[AGENT_LATENCY_BUCKETS];
	uint64_t count, largest;
};

void agent_latency_add(struct agent_latency *latency, uint64_t ns);

/* The latency that the given share (0..1) of the samples does not exceed, up to the width of a
 * bucket; 0 without samples. */
uint64_t agent_latency_quantile(const struct agent_latency *latency, double share);

#endif
