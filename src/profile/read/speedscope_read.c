/* SPDX-License-Identifier: MIT
 *
 * Reads speedscope files, our own and those of other programs: sampled and evented profiles. The
 * table of frames may come before or after them. In files of other programs, profiles with the
 * same unit are threads of one kind.
 */
#include <stdlib.h>
#include <string.h>

#include "json_profile.h"

enum place {
	FRAME = 1,
	FRAME_NAME,
	FRAME_FILE,
	FRAME_LINE,
	FRAME_INLINED,
	FRAME_COLUMN,
	PROFILE,
	END_VALUE,
	NAME,
	UNIT,
	KIND_UNIT,
	STACK,
	STACK_FRAME,
	WEIGHTS,
	WEIGHT,
	EVENT,
	EVENT_TYPE,
	EVENT_FRAME,
	EVENT_AT,
	PROFILES,
	META, /* and above */
};

static const char *const meta_keys[] = {"program", "mode",      "time_ns", "duration_ns",
					"lost",    "truncated", "pruned"};

static const struct incstack__json_place places[] = {
	{"shared.frames.#", FRAME},
	{"shared.frames.#.name", FRAME_NAME},
	{"shared.frames.#.file", FRAME_FILE},
	{"shared.frames.#.line", FRAME_LINE},
	{"shared.frames.#.inlineDepth", FRAME_INLINED},
	{"shared.frames.#.col", FRAME_COLUMN},
	{"profiles", PROFILES},
	{"profiles.#", PROFILE},
	{"profiles.#.name", NAME},
	{"profiles.#.unit", UNIT},
	{"profiles.#.endValue", END_VALUE},
	{"profiles.#.kindUnit", KIND_UNIT},
	{"profiles.#.samples.#", STACK},
	{"profiles.#.samples.#.#", STACK_FRAME},
	{"profiles.#.weights", WEIGHTS},
	{"profiles.#.weights.#", WEIGHT},
	{"profiles.#.events.#", EVENT},
	{"profiles.#.events.#.type", EVENT_TYPE},
	{"profiles.#.events.#.frame", EVENT_FRAME},
	{"profiles.#.events.#.at", EVENT_AT},
	{"incstack.program", META},
	{"incstack.mode", META + 1},
	{"incstack.time_ns", META + 2},
	{"incstack.duration_ns", META + 3},
	{"incstack.lost", META + 4},
	{"incstack.truncated", META + 5},
	{"incstack.pruned", META + 6},
	{NULL, 0},
};

struct speedscope {
	struct incstack__json_profile made;
	bool profiles_seen, named;
	struct incstack__frame_info frame; /* the frame that is read now */
	size_t first;                      /* of the weights of this profile */
	size_t weighed;                    /* how many of them have their weight */
	bool weights_seen;
	char *name, *unit, *kind_unit;
	uint32_t node; /* the node that the stack or the events have reached */
	char event;    /* 'O' or 'C' */
	uint32_t event_frame;
	bool event_frame_seen;
	long double at, last_at, end;
};

static int refuse(struct speedscope *in, const char *why)
{
	return incstack__refuse(in->made.reader, why);
}

static int descend(struct speedscope *in, uint32_t number)
{
	struct incstack_profile *profile = in->made.reader->profile;
	uint32_t frame;
	int error = incstack__frame_placeholder(profile, number, &frame);

	return error ? error : incstack__node_child(profile, in->node, frame, &in->node);
}

static int on_stack(struct speedscope *in, const struct incstack__json_event *event)
{
	uint32_t number;
	int error;

	if (event->id == STACK && event->type == INCSTACK__JSON_BEGIN) {
		in->node = INCSTACK_PROFILE_ROOT;
		return 0;
	}
	if (event->id == STACK && event->type == INCSTACK__JSON_END)
		return incstack__json_profile_weigh(&in->made, in->node, 0, 1);
	if (event->id == STACK)
		return refuse(in, "a sample that is no array");
	error = incstack__json_index(&in->made, event, UINT32_MAX, &number);
	return error ? error : descend(in, number);
}

/* Adds a weight. Weights belong to samples by their order. All samples come before them. */
static int on_weight(struct speedscope *in, const struct incstack__json_event *event)
{
	struct incstack__json_weight *weights = in->made.weights;
	size_t at = in->first + in->weighed++;

	if (event->type == INCSTACK__JSON_INTEGER || event->type == INCSTACK__JSON_DOUBLE) {
		if (at >= in->made.weights_used)
			return refuse(in, "more weights than samples, or weights before samples");
		weights[at].value = event->type == INCSTACK__JSON_INTEGER
					    ? (long double)event->integer
					    : (long double)event->number;
		return 0;
	}
	return refuse(in, "a weight that is no number");
}

static int close_frame(struct speedscope *in)
{
	const struct incstack_profile *profile = in->made.reader->profile;

	if (in->node == INCSTACK_PROFILE_ROOT ||
	    profile->frames[profile->nodes[in->node].frame].function != in->event_frame)
		return refuse(in, "an event that closes a frame which is not the innermost");
	in->node = profile->nodes[in->node].parent;
	return 0;
}

static int end_event(struct speedscope *in)
{
	int error = 0;

	if (!in->event_frame_seen || !in->event)
		return refuse(in, "an event without type or frame");
	if (in->at < in->last_at)
		return refuse(in, "an event that is earlier than the one before");
	if (in->node != INCSTACK_PROFILE_ROOT && in->at > in->last_at)
		error = incstack__json_profile_weigh(&in->made, in->node, 0, in->at - in->last_at);
	in->last_at = in->at;
	if (error)
		return error;
	return in->event == 'O' ? descend(in, in->event_frame) : close_frame(in);
}

static int on_event(struct speedscope *in, const struct incstack__json_event *event)
{
	if (event->id == EVENT_FRAME) {
		in->event_frame_seen = true;
		return incstack__json_index(&in->made, event, UINT32_MAX, &in->event_frame);
	}
	if (event->id == EVENT_AT) {
		in->at = event->type == INCSTACK__JSON_INTEGER ? (long double)event->integer
							       : (long double)event->number;
		return 0;
	}
	if (event->id == EVENT_TYPE) {
		in->event = event->type == INCSTACK__JSON_STRING && event->length == 1
				    ? event->text[0]
				    : 0;
		return in->event == 'O' || in->event == 'C' ? 0 : refuse(in, "an unknown event");
	}
	if (event->type == INCSTACK__JSON_END)
		return end_event(in);
	in->event_frame_seen = false;
	in->event = 0;
	return 0;
}

static void begin_profile(struct speedscope *in)
{
	free(in->name);
	free(in->unit);
	free(in->kind_unit);
	in->name = NULL;
	in->unit = NULL;
	in->kind_unit = NULL;
	in->first = in->made.weights_used;
	in->weighed = 0;
	in->weights_seen = false;
	in->node = INCSTACK_PROFILE_ROOT;
	in->last_at = 0;
	in->at = 0;
	in->end = 0;
	in->event = 0;
}

/* Closes the frames that no event has closed, at the end of the profile. */
static int close_all(struct speedscope *in)
{
	if (in->weights_seen || in->node == INCSTACK_PROFILE_ROOT || !(in->end > in->last_at) ||
	    !in->event)
		return 0;
	return incstack__json_profile_weigh(&in->made, in->node, 0, in->end - in->last_at);
}

/* Ends a profile. Our own files name its kind. In other files, the unit is the only hint. */
static int end_profile(struct speedscope *in)
{
	const char *unit = in->unit ? in->unit : "none", *name = "weight";
	uint32_t kind;
	int error;

	if (in->weights_seen && in->first + in->weighed != in->made.weights_used)
		return refuse(in, "fewer weights than samples");
	error = close_all(in);
	if (error)
		return error;
	if (!strcmp(unit, "none")) {
		unit = "count";
		name = "samples";
	} else if (strstr(unit, "seconds")) {
		name = "time";
	}
	if (in->kind_unit)
		error = incstack__json_profile_own_kind(&in->made, in->name ? in->name : "",
							in->kind_unit, 1, &kind);
	else
		error = incstack__json_profile_kind(&in->made, name, unit, &kind);
	if (!in->kind_unit && in->name && *in->name)
		in->made.reader->profile->losses |= INCSTACK__LOSS_THREADS;
	for (size_t i = in->first; i < in->made.weights_used && !error; i++)
		in->made.weights[i].kind = kind;
	return error;
}

static int on_profile(struct speedscope *in, const struct incstack__json_event *event)
{
	if (event->type == INCSTACK__JSON_END)
		return end_profile(in);
	if (event->type != INCSTACK__JSON_BEGIN)
		return refuse(in, "a profile that is no object");
	begin_profile(in);
	return 0;
}

static int on_frame_name(struct speedscope *in, const struct incstack__json_event *event)
{
	int error;

	if (event->type != INCSTACK__JSON_STRING)
		return refuse(in, "a frame's name that is no string");
	if (in->named)
		return refuse(in, "a frame with two names");
	in->named = true;
	error = incstack__json_profile_name(&in->made, event->text, event->length);
	if (!error)
		in->frame.name = in->made.names[in->made.names_used - 1];
	return error;
}

static int on_frame_file(struct speedscope *in, const struct incstack__json_event *event)
{
	int error;

	if (event->type != INCSTACK__JSON_STRING || !event->length)
		return 0;
	if (!incstack__text_valid(event->text, event->length))
		return refuse(in, "a file name with a NUL character");
	error = incstack__name_intern(in->made.reader->profile, event->text, event->length,
				      &in->frame.file);
	in->frame.file++;
	return error;
}

static int on_frame(struct speedscope *in, const struct incstack__json_event *event)
{
	bool number = event->type == INCSTACK__JSON_INTEGER && event->integer > 0;

	switch (event->id) {
	case FRAME_NAME:
		return on_frame_name(in, event);
	case FRAME_FILE:
		return on_frame_file(in, event);
	case FRAME_LINE:
		if (number && event->integer <= INT32_MAX)
			in->frame.line = (int32_t)event->integer;
		else if (number)
			in->made.reader->profile->losses |= INCSTACK__LOSS_LINES;
		return 0;
	case FRAME_INLINED:
		in->frame.flags = number ? INCSTACK_OBJECT_VIRTUAL : 0;
		return 0;
	case FRAME_COLUMN:
		in->made.reader->profile->losses |= number ? INCSTACK__LOSS_FUNCTIONS : 0;
		return 0;
	default:
		break;
	}
	if (event->type == INCSTACK__JSON_END)
		return in->named ? incstack__json_profile_frame(&in->made, &in->frame)
				 : refuse(in, "a frame without a name");
	in->named = false;
	in->frame = (struct incstack__frame_info){0};
	return 0;
}

/* Returns a number that may be a fraction. */
static long double value_of(const struct incstack__json_event *event)
{
	return event->type == INCSTACK__JSON_INTEGER ? (long double)event->integer
						     : (long double)event->number;
}

static int on_json(void *context, const struct incstack__json_event *event)
{
	struct speedscope *in = context;

	switch (event->id) {
	case FRAME:
	case FRAME_NAME:
	case FRAME_FILE:
	case FRAME_LINE:
	case FRAME_INLINED:
	case FRAME_COLUMN:
		return on_frame(in, event);
	case END_VALUE:
		in->end = value_of(event);
		return 0;
	case PROFILES:
		in->profiles_seen = true;
		return 0;
	case PROFILE:
		return on_profile(in, event);
	case NAME:
		return incstack__json_copy(event, &in->name);
	case UNIT:
		return incstack__json_copy(event, &in->unit);
	case KIND_UNIT:
		return incstack__json_copy(event, &in->kind_unit);
	case STACK:
	case STACK_FRAME:
		return on_stack(in, event);
	case WEIGHTS:
		in->weights_seen = true;
		return 0;
	case WEIGHT:
		return on_weight(in, event);
	case EVENT:
	case EVENT_TYPE:
	case EVENT_FRAME:
	case EVENT_AT:
		return on_event(in, event);
	default:
		return incstack__json_profile_meta(&in->made, meta_keys[event->id - META], event);
	}
}

int incstack__read_speedscope(struct incstack__reader *reader)
{
	struct speedscope in = {.made = {.reader = reader}};
	const struct incstack__json_client client = {
		.places = places, .event = on_json, .context = &in};
	int error = incstack__profile_blank(&reader->profile);

	if (!error)
		error = incstack__json_read(reader, &client);
	if (!error && !in.profiles_seen)
		error = refuse(&in, "no profiles: this is not a speedscope file");
	if (!error)
		error = incstack__json_profile_settle(&in.made);
	free(in.name);
	free(in.unit);
	free(in.kind_unit);
	incstack__json_profile_free(&in.made);
	return error;
}
