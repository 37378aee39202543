/* SPDX-License-Identifier: MIT
 *
 * Reads the Firefox Profiler's processed format. The JSON reader calls on_json() for each value.
 * The columns of a thread's tables are collected. When the thread ends, each row of its frame table
 * becomes a frame, each row of its stack table becomes a node, and its samples become weights.
 *
 * Strings belong to a thread, or since version 56 to all threads. They may come after the tables
 * that use them. So frames are placeholders (reader.h) until the file ends.
 */
#include <stdlib.h>
#include <string.h>

#include "json_profile.h"

enum place {
	THREAD = 1,
	NAME,
	KIND,
	KIND_UNIT,
	WEIGHT_TYPE,
	SAMPLE_STACK,
	SAMPLE_WEIGHT,
	STACK_FRAME,
	STACK_PREFIX,
	FRAME_FUNC,
	FRAME_LINE,
	FRAME_COLUMN,
	FRAME_ADDRESS,
	FRAME_INLINED,
	FUNC_NAME,
	FUNC_FILE,
	FUNC_LINE,
	FUNC_COLUMN,
	STRING,
	SHARED_STRING,
	META, /* meta_keys[0]; the other keys follow */
};

static const char *const meta_keys[] = {"program", "mode",      "time_ns", "duration_ns",
					"lost",    "truncated", "pruned"};

static const struct incstack__json_place places[] = {
	{"threads.#", THREAD},
	{"threads.#.name", NAME},
	{"threads.#.kind", KIND},
	{"threads.#.kindUnit", KIND_UNIT},
	{"threads.#.samples.weightType", WEIGHT_TYPE},
	{"threads.#.samples.stack.#", SAMPLE_STACK},
	{"threads.#.samples.weight.#", SAMPLE_WEIGHT},
	{"threads.#.stackTable.frame.#", STACK_FRAME},
	{"threads.#.stackTable.prefix.#", STACK_PREFIX},
	{"threads.#.frameTable.func.#", FRAME_FUNC},
	{"threads.#.frameTable.line.#", FRAME_LINE},
	{"threads.#.frameTable.column.#", FRAME_COLUMN},
	{"threads.#.frameTable.address.#", FRAME_ADDRESS},
	{"threads.#.frameTable.inlineDepth.#", FRAME_INLINED},
	{"threads.#.funcTable.name.#", FUNC_NAME},
	{"threads.#.funcTable.fileName.#", FUNC_FILE},
	{"threads.#.funcTable.lineNumber.#", FUNC_LINE},
	{"threads.#.funcTable.columnNumber.#", FUNC_COLUMN},
	{"threads.#.stringArray.#", STRING},
	{"shared.stringArray.#", SHARED_STRING},
	{"meta.incstack.program", META},
	{"meta.incstack.mode", META + 1},
	{"meta.incstack.time_ns", META + 2},
	{"meta.incstack.duration_ns", META + 3},
	{"meta.incstack.lost", META + 4},
	{"meta.incstack.truncated", META + 5},
	{"meta.incstack.pruned", META + 6},
	{NULL, 0},
};

/* A column of numbers. NONE stands for null. */
struct numbers {
	uint32_t *at;
	size_t used, room;
};

struct firefox {
	struct incstack__json_profile made;
	bool thread_seen, shared;
	bool awaits_shared; /* a thread with functions had no strings, and none were read before */
	size_t strings;     /* in made.names before those of this thread; 0 if strings are shared */
	char *name, *kind, *kind_unit, *weight_type;
	struct numbers sample_stack, stack_frame, stack_prefix;
	struct numbers frame_func, frame_line, frame_inlined, func_name, func_file;
	struct incstack__json_weight *weights; /* of the samples; only the values are used */
	size_t weights_used, weights_room;
};

static int refuse(struct firefox *in, const char *why)
{
	return incstack__refuse(in->made.reader, why);
}

static int push(struct firefox *in, struct numbers *numbers,
		const struct incstack__json_event *event)
{
	uint32_t number = INCSTACK__NONE;
	int error = incstack__reserve((void **)&numbers->at, &numbers->room, numbers->used + 1,
				      sizeof(*numbers->at));

	if (!error && event->type != INCSTACK__JSON_NULL)
		error = incstack__json_index(&in->made, event, UINT32_MAX, &number);
	if (!error)
		numbers->at[numbers->used++] = number;
	return error;
}

/* Adds to a column that may be missing or contain anything. A value that is not an index counts as
 * null. */
static int push_hint(struct firefox *in, struct numbers *numbers,
		     const struct incstack__json_event *event)
{
	struct incstack__json_event hint = *event;

	if (event->type != INCSTACK__JSON_INTEGER || event->integer < 0 ||
	    event->integer >= UINT32_MAX)
		hint.type = INCSTACK__JSON_NULL;
	return push(in, numbers, &hint);
}

static int push_weight(struct firefox *in, const struct incstack__json_event *event)
{
	long double value = 1;
	int error = incstack__reserve((void **)&in->weights, &in->weights_room,
				      in->weights_used + 1, sizeof(*in->weights));

	if (event->type == INCSTACK__JSON_INTEGER)
		value = (long double)event->integer;
	else if (event->type == INCSTACK__JSON_DOUBLE)
		value = (long double)event->number;
	else if (event->type != INCSTACK__JSON_NULL)
		return refuse(in, "a weight that is no number");
	if (!error)
		in->weights[in->weights_used++].value = value;
	return error;
}

static void begin_thread(struct firefox *in)
{
	free(in->name);
	free(in->kind);
	free(in->kind_unit);
	free(in->weight_type);
	in->name = NULL;
	in->kind = NULL;
	in->kind_unit = NULL;
	in->weight_type = NULL;
	in->sample_stack.used = 0;
	in->stack_frame.used = 0;
	in->stack_prefix.used = 0;
	in->frame_func.used = 0;
	in->frame_line.used = 0;
	in->frame_inlined.used = 0;
	in->func_name.used = 0;
	in->func_file.used = 0;
	in->weights_used = 0;
	in->strings = in->shared ? 0 : in->made.names_used;
	in->thread_seen = true;
}

/* Returns row i of a column; NONE for null, and if the column is shorter. */
static uint32_t row(const struct numbers *column, size_t i)
{
	return i < column->used ? column->at[i] : INCSTACK__NONE;
}

/* Whether the thread has the string. Shared strings may follow all threads, and are checked then. */
static bool has_string(struct firefox *in, uint32_t string)
{
	in->awaits_shared |= !in->made.names_used;
	return in->shared || in->awaits_shared || string < in->made.names_used - in->strings;
}

/* Adds row i of the frame table to made.frames. Its name and file are indexes in made.names, which
 * has the strings of all threads, until resolve_strings() replaces them. */
static int take_frame(struct firefox *in, size_t i)
{
	struct incstack__frame_info info = {0};
	uint32_t func = in->frame_func.at[i], name, file, line = row(&in->frame_line, i);

	if (func >= in->func_name.used)
		return refuse(in, "a frame with a function that does not exist");
	name = in->func_name.at[func];
	file = row(&in->func_file, func);
	if (name == INCSTACK__NONE)
		return refuse(in, "a function without a name");
	if (!has_string(in, name) || (file != INCSTACK__NONE && !has_string(in, file)))
		return refuse(in, "a function with a string that is not in the table");
	info.name = (uint32_t)in->strings + name;
	info.file = file == INCSTACK__NONE ? 0 : (uint32_t)in->strings + file + 1;
	if (line && line <= INT32_MAX)
		info.line = (int32_t)line;
	if (row(&in->frame_inlined, i) != INCSTACK__NONE && row(&in->frame_inlined, i))
		info.flags = INCSTACK_OBJECT_VIRTUAL;
	return incstack__json_profile_frame(&in->made, &info);
}

/* Replaces the indexes in made.names by the numbers of names in the profile. */
static int resolve_strings(struct firefox *in)
{
	for (size_t i = 0; i < in->made.frames_used; i++) {
		struct incstack__frame_info *info = &in->made.frames[i];

		if (info->name >= in->made.names_used || info->file > in->made.names_used)
			return refuse(in, "a function with a string that is not in the table");
		info->name = in->made.names[info->name];
		if (info->file)
			info->file = in->made.names[info->file - 1] + 1;
	}
	return 0;
}

/* Makes a node for each row of the stack table, and replaces the row's frame by the number of the
 * node. */
static int make_nodes(struct firefox *in)
{
	struct incstack_profile *profile = in->made.reader->profile;
	uint64_t base = in->made.frames_used;
	int error = 0;

	for (size_t i = 0; i < in->frame_func.used && !error; i++)
		error = take_frame(in, i);
	if (error)
		return error;
	if (in->stack_prefix.used != in->stack_frame.used)
		return refuse(in, "a stack table whose columns differ in length");
	for (size_t i = 0; i < in->stack_frame.used; i++) {
		uint32_t prefix = in->stack_prefix.at[i], parent = INCSTACK_PROFILE_ROOT, frame;

		if (prefix != INCSTACK__NONE && prefix >= i)
			return refuse(in, "a stack that comes before its prefix");
		if (prefix != INCSTACK__NONE)
			parent = in->stack_frame.at[prefix];
		if (in->stack_frame.at[i] >= in->frame_func.used)
			return refuse(in, "a stack with a frame that does not exist");
		error = incstack__frame_placeholder(profile, base + in->stack_frame.at[i], &frame);
		if (!error)
			error = incstack__node_child(profile, parent, frame,
						     &in->stack_frame.at[i]);
		if (error)
			return error;
	}
	return 0;
}

/* Finds or adds the kind of the weights. Only files of ours have the members kindUnit and kind: a
 * thread for each kind has kindUnit, a thread of a timeline has both. */
static int thread_kind(struct firefox *in, uint32_t *kind)
{
	const char *type = in->weight_type ? in->weight_type : "samples";
	const bool is_ms = !strcmp(type, "tracing-ms"),
		   is_ns = in->kind_unit && !strcmp(in->kind_unit, "nanoseconds");
	const long double scale = is_ms && is_ns ? 1e6L : 1;

	if (in->kind && in->kind_unit) { /* a thread of a timeline */
		in->made.reader->profile->losses |= INCSTACK__LOSS_THREADS;
		return incstack__json_profile_same_kind(&in->made, in->kind, in->kind_unit, scale,
							kind);
	}
	if (in->kind_unit)
		return incstack__json_profile_own_kind(&in->made, in->name ? in->name : "",
						       in->kind_unit, scale, kind);
	if (in->name && *in->name)
		in->made.reader->profile->losses |= INCSTACK__LOSS_THREADS;
	if (!strcmp(type, "bytes"))
		return incstack__json_profile_kind(&in->made, "weight", "bytes", kind);
	if (is_ms)
		return incstack__json_profile_kind(&in->made, "time", "milliseconds", kind);
	return incstack__json_profile_kind(&in->made, "samples", "count", kind);
}

static int end_thread(struct firefox *in)
{
	uint32_t kind;
	int error;

	if (in->sample_stack.used && !in->stack_frame.used)
		return refuse(in, "a thread with samples and without stacks");
	if (in->weights_used && in->weights_used != in->sample_stack.used)
		return refuse(in, "a thread whose samples and weights differ in number");
	error = make_nodes(in);
	if (!error)
		error = thread_kind(in, &kind);
	for (size_t i = 0; i < in->sample_stack.used && !error; i++) {
		uint32_t stack = in->sample_stack.at[i];

		if (stack == INCSTACK__NONE)
			continue;
		if (stack >= in->stack_frame.used)
			return refuse(in, "a sample with a stack that does not exist");
		error = incstack__json_profile_weigh(&in->made, in->stack_frame.at[stack], kind,
						     in->weights_used ? in->weights[i].value : 1);
	}
	return error;
}

static int on_string(struct firefox *in, const struct incstack__json_event *event)
{
	if (event->type != INCSTACK__JSON_STRING)
		return refuse(in, "a string table with something else");
	if (event->id == STRING && in->awaits_shared)
		return refuse(in, "a thread without strings, where others have them");
	if (event->id == SHARED_STRING) {
		if (!in->shared && in->made.names_used)
			return refuse(in, "strings of threads and shared ones");
		in->shared = true;
	}
	return incstack__json_profile_name(&in->made, event->text, event->length);
}

/* Adds a value to its column. A detail that the profile does not keep is noted as a loss. */
static int on_table(struct firefox *in, const struct incstack__json_event *event)
{
	switch (event->id) {
	case SAMPLE_STACK:
		return push(in, &in->sample_stack, event);
	case SAMPLE_WEIGHT:
		return push_weight(in, event);
	case STACK_FRAME:
		return push(in, &in->stack_frame, event);
	case STACK_PREFIX:
		return push(in, &in->stack_prefix, event);
	case FRAME_FUNC:
		return push(in, &in->frame_func, event);
	case FRAME_LINE:
		return push_hint(in, &in->frame_line, event);
	case FRAME_INLINED:
		return push_hint(in, &in->frame_inlined, event);
	case FRAME_COLUMN:
	case FUNC_LINE:
	case FUNC_COLUMN:
		if (event->type != INCSTACK__JSON_NULL)
			in->made.reader->profile->losses |= INCSTACK__LOSS_FUNCTIONS;
		return 0;
	case FRAME_ADDRESS:
		if (event->type == INCSTACK__JSON_INTEGER && event->integer >= 0)
			in->made.reader->profile->losses |= INCSTACK__LOSS_MAPPINGS;
		return 0;
	case FUNC_FILE:
		return push_hint(in, &in->func_file, event);
	default:
		return push(in, &in->func_name, event);
	}
}

static int on_thread(struct firefox *in, const struct incstack__json_event *event)
{
	if (event->type == INCSTACK__JSON_END)
		return end_thread(in);
	if (event->type != INCSTACK__JSON_BEGIN)
		return refuse(in, "a thread that is no object");
	begin_thread(in);
	return 0;
}

static int on_json(void *context, const struct incstack__json_event *event)
{
	struct firefox *in = context;

	switch (event->id) {
	case THREAD:
		return on_thread(in, event);
	case NAME:
		return incstack__json_copy(event, &in->name);
	case KIND:
		return incstack__json_copy(event, &in->kind);
	case KIND_UNIT:
		return incstack__json_copy(event, &in->kind_unit);
	case WEIGHT_TYPE:
		return incstack__json_copy(event, &in->weight_type);
	case STRING:
	case SHARED_STRING:
		return on_string(in, event);
	default:
		if (event->id < META)
			return on_table(in, event);
		return incstack__json_profile_meta(&in->made, meta_keys[event->id - META], event);
	}
}

static void release(struct firefox *in)
{
	free(in->name);
	free(in->kind);
	free(in->kind_unit);
	free(in->weight_type);
	free(in->sample_stack.at);
	free(in->stack_frame.at);
	free(in->stack_prefix.at);
	free(in->frame_func.at);
	free(in->frame_line.at);
	free(in->frame_inlined.at);
	free(in->func_file.at);
	free(in->func_name.at);
	free(in->weights);
	incstack__json_profile_free(&in->made);
}

int incstack__read_firefox(struct incstack__reader *reader)
{
	struct firefox in = {.made = {.reader = reader}};
	const struct incstack__json_client client = {
		.places = places, .event = on_json, .context = &in};
	int error = incstack__profile_blank(&reader->profile);

	if (!error)
		error = incstack__json_read(reader, &client);
	if (!error && !in.thread_seen)
		error = refuse(&in, "no threads: this is not a processed Firefox profile");
	if (!error)
		error = resolve_strings(&in);
	if (!error)
		error = incstack__json_profile_settle(&in.made);
	release(&in);
	return error;
}
