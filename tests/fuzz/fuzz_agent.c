/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of what the Java agent reads: its options, from which it makes file names, and the names of the
 * JVM in modified UTF-8, which must be valid names of a profile. The first byte chooses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "names.h"
#include "options.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static char *string_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = 0;
	return text;
}

static void try_options(const char *text)
{
	static struct agent_options options;
	struct agent_name_values values = {.process = 1, .part = UINT32_MAX};
	char error[AGENT_ERROR_MAX] = "", name[AGENT_FILE_MAX], time[32];

	if (!agent_options_read(text, &options, error)) {
		require(*error && strlen(error) < AGENT_ERROR_MAX);
		for (const char *at = error; *at; at++)
			require(*at >= ' ' && *at <= '~');
		return;
	}
	require(options.interval_ns >= 10000 && options.depth && options.memory >= 1 << 20);
	snprintf(name, sizeof(name), "x%s", agent_name_ending(options.format));
	require(agent_name_format(name) == options.format);
	(void)agent_mode_name(options.mode);
	(void)agent_time_text(options.interval_ns, time);
	for (int parts = 0; parts < 2; parts++) {
		values.has_parts = parts;
		if (agent_name_make(options.file, &values, name, sizeof(name)))
			require(strlen(name) < sizeof(name));
	}
	(void)agent_name_make(options.file, &values, name, 16);
}

/* Two strings: the signature of a class, and the name of a function. */
static void try_names(const char *class, const char *function)
{
	const struct incstack_profile_kind kind = {"samples", "count"};
	struct incstack_profile_frame frame = {.size = sizeof(frame), .position = -1};
	struct incstack_profile *profile = NULL;
	char *name = agent_method_name(class, function);
	uint32_t node;

	require(name && !incstack_profile_create(&kind, 1, &profile));
	frame.name = name;
	frame.name_length = strlen(name);
	require(!incstack_profile_add_node(profile, INCSTACK_PROFILE_ROOT, &frame, &node));
	incstack_profile_destroy(profile);
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = string_of(data + 1, size - 1);
	if (*data & 1) {
		try_options(text);
	} else {
		size_t first = strlen(text);

		try_names(text, first + 1 < size - 1 ? text + first + 1 : "m");
	}
	free(text);
	return 0;
}
