/* SPDX-License-Identifier: MIT
 *
 * Functions that all readers use.
 */
#include "reader.h"

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

int incstack__room(struct incstack__reader *reader, uint32_t most)
{
	const struct incstack__profile_input *input = reader->input;

	if (!input->full || !input->nodes_max ||
	    (reader->profile->nodes_used < input->nodes_max && reader->profile->nodes_used < most))
		return 0;
	return input->full(input->context, reader->profile);
}

/* Finds or adds the node for a weight without frames. It cannot be the root: no format could
 * express that the root has a weight. */
int incstack__unknown_node(struct incstack_profile *profile, uint32_t *node)
{
	static const char text[] = "[unknown]";
	uint32_t frame;
	int error = incstack__frame_named(profile, text, sizeof(text) - 1, &frame);

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
	struct incstack__frame key = {.function = number, .position = -1, .key = INCSTACK__NONE};

	return incstack__frame_intern(profile, &key, frame);
}

int incstack__frames_settle(struct incstack_profile *profile,
			    const struct incstack__frame_info *infos, size_t count)
{
	for (size_t i = 0; i < profile->frames_used; i++) {
		struct incstack__frame *frame = &profile->frames[i];

		if (frame->function >= count)
			return INCSTACK_EFORMAT;
		const struct incstack__frame_info *info = &infos[frame->function];

		frame->name = info->name;
		frame->key = info->name;
		frame->file = info->file;
		frame->line = info->line;
		frame->kind = info->kind;
		frame->flags = info->flags;
		frame->function = 0;
	}
	return incstack__frame_table_renew(profile);
}
