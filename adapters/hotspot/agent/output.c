/* SPDX-License-Identifier: MIT
 *
 * The file of each part of a profile.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "names.h"
#include "output_file.h"
#include "say.h"

void agent_output_open(struct agent_output *output, const struct agent_options *options)
{
	output->options = options;
	output->start = time(NULL);
	atomic_store(&output->part, 1);
}

uint32_t agent_output_part(const struct agent_output *output)
{
	return atomic_load(&output->part);
}

void agent_output_next(struct agent_output *output)
{
	atomic_fetch_add(&output->part, 1);
}

static bool make_name(const struct agent_output *output, char name[AGENT_FILE_MAX])
{
	const uint32_t part = agent_output_part(output);
	const struct agent_name_values values = {.process = (long)getpid(),
						 .start = output->start,
						 .part = part,
						 .has_parts =
							 part > 1 || output->options->split_ns};

	return agent_name_make(output->options->file, &values, name, AGENT_FILE_MAX);
}

const char *agent_output_probe(const struct agent_output *output, char name[AGENT_FILE_MAX])
{
	return make_name(output, name) ? agent_file_probe(name) : "the name is too long";
}

/* ---- the profile ---- */

static void command_line(char *text, size_t size)
{
	int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? 0 : read(file, text, size - 1);

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = 0;
	for (ssize_t i = 0; i + 1 < length; i++)
		if (!text[i])
			text[i] = ' ';
}

static int describe(const struct agent_content *content, struct incstack_profile *profile)
{
	char program[1024];
	uint64_t duration = agent_now() - content->begun_ns;
	struct timespec now;
	struct incstack_profile_meta meta = {
		.size = sizeof(meta),
		.program = program,
		.mode = agent_mode_name(content->mode),
		.duration_ns = duration,
		.lost = agent_counts_lost(content->counts),
		.truncated = content->counts->truncated,
	};
	int error;

	clock_gettime(CLOCK_REALTIME, &now);
	meta.time_ns = (uint64_t)now.tv_sec * AGENT_NS_PER_S + (uint64_t)now.tv_nsec - duration;
	command_line(program, sizeof(program));
	error = incstack_profile_set_meta(profile, &meta);
	if (error != INCSTACK_EFORMAT)
		return error;
	meta.program = NULL;
	return incstack_profile_set_meta(profile, &meta);
}

bool agent_output_write(const struct agent_output *output, const struct agent_content *content,
			char name[AGENT_FILE_MAX])
{
	struct incstack_profile *named = NULL;
	int error = incstack_profile_name_frames(content->profile, content->source,
						 content->source_context, &named);

	if (!error)
		error = describe(content, named);
	errno = ENAMETOOLONG;
	if (!error && !make_name(output, name))
		error = INCSTACK_EIO;
	if (!error)
		error = agent_file_write(name, named,
					 (enum incstack_profile_format)output->options->format);
	if (error)
		agent_say("cannot write %s: %s", *name ? name : output->options->file,
			  error == INCSTACK_EIO && errno ? strerror(errno)
							 : incstack_error_text(error));
	incstack_profile_destroy(named);
	return !error;
}
