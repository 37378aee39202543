/* SPDX-License-Identifier: MIT
 *
 * All techniques, by their modes.
 */
#include "techniques.h"

#include "extended.h"
#include "extension.h"
#include "stock.h"

static const struct agent_technique_kind *const stock[AGENT_MODE_COUNT] = {
	[AGENT_MODE_BEST] = &agent_technique_partial,
	[AGENT_MODE_JVMTI] = &agent_technique_jvmti,
	[AGENT_MODE_PARTIAL] = &agent_technique_partial,
};

/* Of a JVM with the library inside. */
static const struct agent_technique_kind *const extended[AGENT_MODE_COUNT] = {
	[AGENT_MODE_BEST] = &agent_technique_extended_partial_incremental,
	[AGENT_MODE_JVMTI] = &agent_technique_jvmti,
	[AGENT_MODE_PARTIAL] = &agent_technique_extended_partial,
	[AGENT_MODE_INCREMENTAL] = &agent_technique_extended_incremental,
	[AGENT_MODE_PARTIAL_INCREMENTAL] = &agent_technique_extended_partial_incremental,
};

const struct agent_technique_kind *agent_technique_for(enum agent_mode mode, jvmtiEnv *jvmti,
						       const char **why)
{
	struct agent_extension extension;

	*why = "this JVM has no incremental stack traces; use mode=partial, or a JVM that "
	       "adapters/hotspot/build-jvm made";
	return agent_extension_find(&extension, jvmti) ? extended[mode] : stock[mode];
}
