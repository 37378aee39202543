/* SPDX-License-Identifier: MIT
 *
 * Counts how late samples are; see latency.h.
 */
#include "latency.h"

/* Returns the bucket: the octave, and its eighth, which the three bits after the first one tell. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned octave, bucket;

	if (ns < 8)
		return (unsigned)ns;
	octave = 63u - (unsigned)__builtin_clzll(ns);
	bucket = (octave - 2) * 8 + (unsigned)(ns >> (octave - 3) & 7);
	return bucket < AGENT_LATENCY_BUCKETS ? bucket : AGENT_LATENCY_BUCKETS - 1;
}

/* The largest value of a bucket. */
static uint64_t limit_of(unsigned bucket)
{
	unsigned octave = bucket / 8 + 2;

	if (bucket < 8)
		return bucket;
	return ((UINT64_C(9) + bucket % 8) << (octave - 3)) - 1;
}

void agent_latency_add(struct agent_latency *latency, uint64_t ns)
{
	latency->buckets[bucket_of(ns)]++;
	latency->count++;
	if (ns > latency->largest)
		latency->largest = ns;
}

uint64_t agent_latency_quantile(const struct agent_latency *latency, double share)
{
	double wanted = share * (double)latency->count;
	uint64_t seen = 0;

	for (unsigned i = 0; i < AGENT_LATENCY_BUCKETS - 1; i++) {
		seen += latency->buckets[i];
		if (seen && (double)seen >= wanted)
			return limit_of(i) < latency->largest ? limit_of(i) : latency->largest;
	}
	return latency->largest;
}
