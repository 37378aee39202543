/* SPDX-License-Identifier: MIT
 *
 * What is printed when a part of a profile was written.
 */
#include "result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "say.h"

static double mean(uint64_t sum, uint64_t count)
{
	return count ? (double)sum / (double)count : 0;
}

static double us(const struct agent_findings *findings, double share)
{
	return (double)agent_latency_quantile(&findings->latency, share) / 1e3;
}

/* The last line of a run is meant for programs, and is the same for all recorders. */
void agent_say_stats(enum agent_mode mode, const struct agent_figures *figures)
{
	const struct agent_counts *counts = &figures->counts;
	const struct agent_ticks *ticks = &figures->ticks;
	const struct agent_findings *found = &figures->findings;

	agent_say("ticks=%" PRIu64 " missed=%" PRIu64 " wanted=%" PRIu64 " virtual=%" PRIu64
		  " latency_us p2=%.1f p25=%.1f p50=%.1f p75=%.1f p97=%.1f max=%.1f "
		  "processor_ms=%.1f",
		  ticks->taken, ticks->missed, ticks->wanted, found->virtual_samples,
		  us(found, 0.025), us(found, 0.25), us(found, 0.5), us(found, 0.75),
		  us(found, 0.975), us(found, 1), (double)figures->processor_ns / 1e6);
	agent_say("traces=%" PRIu64 " crosschecked=%" PRIu64 " mismatches=%" PRIu64 " lost=%" PRIu64
		  " truncated=%" PRIu64 " returns=%" PRIu64 " stale=%" PRIu64
		  " mode=%s depth_mean=%.2f popped_mean=%.2f",
		  counts->traces, found->crosschecked, found->mismatches, agent_counts_lost(counts),
		  counts->truncated, found->returns, found->stale, agent_mode_name(mode),
		  mean(counts->depth_sum, counts->traces),
		  mean(counts->popped_sum, counts->popped_count));
}

/* ---- losses ---- */

static const char *const reasons[AGENT_LOSS_COUNT] = {
	[AGENT_LOSS_LATE] = "the sampler came too late",
	[AGENT_LOSS_CLOSED] = "no thread reached a poll in time",
	[AGENT_LOSS_REFUSED] = "the JVM gave no trace",
	[AGENT_LOSS_ENDED] = "the thread had ended",
	[AGENT_LOSS_BEHIND] = "traces came faster than they could be added",
	[AGENT_LOSS_MEMORY] = "no memory was left",
};

/* Writes "; 12 lost: the sampler came too late (10), the thread had ended (2)", or nothing. */
static void tell_losses(const struct agent_counts *counts, char *text, size_t size)
{
	size_t length = 0;
	const char *before = ": ";

	*text = 0;
	if (agent_counts_lost(counts))
		length = (size_t)snprintf(text, size, "; %" PRIu64 " lost",
					  agent_counts_lost(counts));
	for (int why = 0; why < AGENT_LOSS_COUNT && length < size; why++)
		if (counts->lost[why]) {
			length +=
				(size_t)snprintf(text + length, size - length, "%s%s (%" PRIu64 ")",
						 before, reasons[why], counts->lost[why]);
			before = ", ";
		}
}

/* The samples of contexts that were replaced because the profile had grown too large. */
static uint64_t pruned_samples(const struct incstack_profile *profile)
{
	static const char name[] = "[smaller contexts]";
	uint64_t sum = 0;

	for (uint32_t i = 1; i < incstack_profile_nodes(profile); i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};

		if (!incstack_profile_node(profile, i, &node) &&
		    node.frame.name_length == sizeof(name) - 1 &&
		    !memcmp(node.frame.name, name, node.frame.name_length))
			sum += node.weights[0];
	}
	return sum;
}

static void tell_pruned(const struct incstack_profile *profile, char *text, size_t size)
{
	const uint64_t samples = pruned_samples(profile);

	*text = 0;
	if (samples)
		snprintf(text, size,
			 "; %" PRIu64
			 " of them are below [smaller contexts], because the profile reached "
			 "its limit (memory=)",
			 samples);
}

void agent_say_result(const struct incstack_profile *profile, const struct agent_figures *figures,
		      const char *file)
{
	char pruned[150], losses[400];

	tell_pruned(profile, pruned, sizeof(pruned));
	tell_losses(&figures->counts, losses, sizeof(losses));
	agent_say("%" PRIu64 " samples written to %s%s%s%s", figures->counts.traces, file,
		  figures->findings.virtual_samples
			  ? " (those of virtual threads end at their carrier)"
			  : "",
		  pruned, losses);
}
