/* SPDX-License-Identifier: MIT
 *
 * Reads the files of valgrind's DHAT. The contexts come before the table of their frames.
 */
#include <stdlib.h>
#include <string.h>

#include "foreign.h"
#include "json_profile.h"

enum place { VERSION = 1, MODE, PROGRAM, CONTEXT, BYTES, BLOCKS, PEAK, END, FRAME, TEXT };

static const struct incstack__json_place places[] = {
	{"dhatFileVersion", VERSION}, {"mode", MODE},        {"cmd", PROGRAM},   {"pps.#", CONTEXT},
	{"pps.#.tb", BYTES},          {"pps.#.tbk", BLOCKS}, {"pps.#.gb", PEAK}, {"pps.#.eb", END},
	{"pps.#.fs.#", FRAME},        {"ftbl.#", TEXT},      {NULL, 0},
};

struct dhat {
	struct incstack__reader *reader;
	uint64_t weights[INCSTACK__FOREIGN_KINDS]; /* of the current context */
	uint32_t *frames;                          /* of the current context, outermost last */
	size_t depth, frames_room;
	struct incstack__frame_info *infos; /* by the numbers of the file */
	size_t texts, infos_room;
	char *program;
	bool version_seen;
};

static int on_weight(struct dhat *in, const struct incstack__json_event *event)
{
	if (event->type != INCSTACK__JSON_INTEGER || event->integer < 0)
		return incstack__refuse(in->reader, "a weight that is no number");
	in->weights[event->id - BYTES] = (uint64_t)event->integer;
	return 0;
}

static int on_frame(struct dhat *in, const struct incstack__json_event *event)
{
	int error;

	if (event->type != INCSTACK__JSON_INTEGER || event->integer < 0)
		return incstack__refuse(in->reader, "a frame that is no number");
	error = incstack__reserve((void **)&in->frames, &in->frames_room, in->depth + 1,
				  sizeof(*in->frames));
	if (!error)
		error = incstack__frame_placeholder(in->reader->profile, (uint64_t)event->integer,
						    &in->frames[in->depth++]);
	return error;
}

static int end_context(struct dhat *in)
{
	uint32_t node = INCSTACK_PROFILE_ROOT;
	int error = 0;

	if (!in->depth)
		return incstack__refuse(in->reader, "a context without frames");
	for (size_t i = in->depth; i-- > 0 && !error;)
		error = incstack__node_child(in->reader->profile, node, in->frames[i], &node);
	for (uint32_t kind = 0; kind < INCSTACK__FOREIGN_KINDS && !error; kind++)
		if (in->weights[kind])
			error = incstack__weigh(in->reader, node, kind, in->weights[kind]);
	return error;
}

static int on_context(struct dhat *in, const struct incstack__json_event *event)
{
	if (event->type == INCSTACK__JSON_END)
		return end_context(in);
	memset(in->weights, 0, sizeof(in->weights));
	in->depth = 0;
	return 0;
}

static int on_text(struct dhat *in, const struct incstack__json_event *event)
{
	struct incstack__foreign_frame described;
	int error;

	if (event->type != INCSTACK__JSON_STRING)
		return incstack__refuse(in->reader, "a frame's text that is no string");
	described = incstack__foreign_valgrind((struct incstack__line){event->text, event->length});
	error = incstack__reserve((void **)&in->infos, &in->infos_room, in->texts + 1,
				  sizeof(*in->infos));
	if (!error)
		error = incstack__foreign_names(in->reader, &described, &in->infos[in->texts++]);
	return error;
}

static int on_head(struct dhat *in, const struct incstack__json_event *event)
{
	static const char heap[] = "heap";

	if (event->id == VERSION) {
		in->version_seen = true;
		return event->type == INCSTACK__JSON_INTEGER && event->integer == 2
			       ? 0
			       : incstack__refuse(in->reader,
						  "a version of DHAT's files other than 2");
	}
	if (event->id == MODE)
		return event->type == INCSTACK__JSON_STRING && event->length == sizeof(heap) - 1 &&
				       !memcmp(event->text, heap, event->length)
			       ? 0
			       : incstack__refuse(in->reader,
						  "not a heap profile: DHAT ran with --mode");
	return incstack__json_copy(event, &in->program);
}

static int on_json(void *context, const struct incstack__json_event *event)
{
	struct dhat *in = context;

	switch (event->id) {
	case CONTEXT:
		return on_context(in, event);
	case BYTES:
	case BLOCKS:
	case PEAK:
	case END:
		return on_weight(in, event);
	case FRAME:
		return on_frame(in, event);
	case TEXT:
		return on_text(in, event);
	default:
		return on_head(in, event);
	}
}

int incstack__read_dhat(struct incstack__reader *reader)
{
	struct dhat in = {.reader = reader};
	const struct incstack__json_client client = {
		.places = places, .event = on_json, .context = &in};
	int error = incstack__foreign_heap(reader);

	if (!error)
		error = incstack__json_read(reader, &client);
	if (!error && !in.version_seen)
		error = incstack__refuse(reader, "not a file of DHAT");
	if (!error)
		error = incstack__frames_settle(reader->profile, in.infos, in.texts);
	if (error == INCSTACK_EFORMAT && !reader->at.why)
		error = incstack__refuse(reader, "a frame that is not in the table");
	if (!error)
		error = incstack__foreign_program(reader, in.program);
	free(in.program);
	free(in.frames);
	free(in.infos);
	return error;
}
