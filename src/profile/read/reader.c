/* SPDX-License-Identifier: MIT
 *
 * Reading a profile: the door to the readers of the formats, and what they share.
 */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

int incstack__refuse(struct incstack__reader *reader, const char *why)
{
	reader->at.why = why;
	return INCSTACK_EFORMAT;
}

void incstack__progress(const struct incstack__reader *reader, uint64_t bytes)
{
	if (reader->input->progress)
		reader->input->progress(reader->input->context, bytes);
}

int incstack__room(struct incstack__reader *reader)
{
	const struct incstack_profile_input *input = reader->input;

	if (!input->full || !input->nodes_max || reader->profile->nodes_used < input->nodes_max)
		return 0;
	return input->full(input->context, reader->profile);
}

/* The root stands for no frame, so no format could say that it weighs something. */
int incstack__unknown_node(struct incstack_profile *profile, uint32_t *node)
{
	static const char text[] = "[unknown]";
	uint32_t frame;
	int error = incstack__frame_named(profile, text, sizeof(text) - 1, -1, 0, &frame);

	return error ? error : incstack__node_child(profile, INCSTACK_PROFILE_ROOT, frame, node);
}

int incstack__weigh(struct incstack__reader *reader, uint32_t node, uint32_t kind, uint64_t weight)
{
	int error = 0;

	if (node == INCSTACK_PROFILE_ROOT)
		error = incstack__unknown_node(reader->profile, &node);
	if (!error)
		error = incstack__node_weigh(reader->profile, node, kind, weight);

	if (error == INCSTACK_ERANGE)
		reader->at.why = "the weights sum to more than 2^63 - 1";
	return error;
}

int incstack__frame_placeholder(struct incstack_profile *profile, uint64_t number, uint32_t *frame)
{
	struct incstack__frame key = {.method = number, .bci = -1, .key = INCSTACK__NONE};

	return incstack__frame_intern(profile, &key, frame);
}

int incstack__frames_settle(struct incstack_profile *profile,
			    const struct incstack__frame_info *infos, size_t count)
{
	for (size_t i = 0; i < profile->frames_used; i++) {
		struct incstack__frame *frame = &profile->frames[i];

		if (frame->method >= count)
			return INCSTACK_EFORMAT;
		const struct incstack__frame_info *info = &infos[frame->method];

		frame->name = info->name;
		frame->key = info->name;
		frame->file = info->file;
		frame->bci = info->bci;
		frame->flags = info->flags;
		frame->method = 0;
	}
	return incstack__frame_table_renew(profile);
}

static int read_format(struct incstack__reader *reader, enum incstack_profile_format format)
{
	switch (format) {
	case INCSTACK_FORMAT_FOLDED:
		return incstack__read_folded(reader);
	case INCSTACK_FORMAT_PPROF:
		return incstack__read_pprof(reader);
	case INCSTACK_FORMAT_SPEEDSCOPE:
		return incstack__read_speedscope(reader);
	case INCSTACK_FORMAT_FIREFOX:
		return incstack__read_firefox(reader);
	case INCSTACK_FORMAT_HTML:
		break;
	}
	return INCSTACK_EINVAL;
}

int incstack_profile_read(FILE *stream, enum incstack_profile_format format,
			  const struct incstack_profile_input *input,
			  struct incstack_profile **profile, struct incstack_profile_fault *fault)
{
	static const struct incstack_profile_input plain;
	struct incstack__reader reader = {.stream = stream, .input = input ? input : &plain};
	int error;

	if (fault)
		memset(fault, 0, sizeof(*fault));
	if (!stream || !profile)
		return INCSTACK_EINVAL;
	error = read_format(&reader, format);
	if (fault)
		*fault = reader.at;
	if (error)
		incstack_profile_destroy(reader.profile);
	else
		*profile = reader.profile;
	return error;
}

static int ending(const char *path, size_t length, const char *suffix)
{
	size_t size = strlen(suffix);

	return length > size && !memcmp(path + length - size, suffix, size);
}

int incstack_profile_format_of(const char *path)
{
	static const struct {
		const char *suffix, *name;
		enum incstack_profile_format format;
	} formats[] = {
		{".folded", "folded", INCSTACK_FORMAT_FOLDED},
		{".pb.gz", "pprof", INCSTACK_FORMAT_PPROF},
		{".speedscope.json", "speedscope", INCSTACK_FORMAT_SPEEDSCOPE},
		{".firefox.json", "firefox", INCSTACK_FORMAT_FIREFOX},
		{".html", "html", INCSTACK_FORMAT_HTML},
	};

	for (size_t i = 0; path && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(path, formats[i].name) || ending(path, strlen(path), formats[i].suffix))
			return (int)formats[i].format;
	return 0;
}
