/* SPDX-License-Identifier: MIT
 *
 * Reads the text of `perf script`. A sample is a line with its command, thread, time, period and event, then a
 * line for each frame, innermost first, then an empty line. The command becomes the outermost frame, because
 * a file may have several processes. Each event is a kind of weight, and the last kind counts samples.
 */
#include <stdlib.h>
#include <string.h>

#include "foreign.h"

enum {
	SAMPLES = INCSTACK_PROFILE_KINDS_MAX -
		  1, /* while the file is read: the kind of their number */
	FRAMES_MOST = 1 << 16,
};

struct perf {
	struct incstack__reader *reader;
	struct incstack__lines lines;
	char *event[SAMPLES]; /* names of the kinds */
	uint32_t events;
	bool in_sample;
	uint32_t command; /* a frame */
	uint32_t kind;
	uint64_t period;
	struct incstack__frame *frames; /* of the current sample, innermost first */
	size_t depth, frames_room;
};

static int refuse(struct perf *in, const char *why)
{
	return incstack__refuse(in->reader, why);
}

/* ---- the head of a sample ---- */

/* Takes a word off the line. It is empty at the end of the line. */
static struct incstack__line take_word(struct incstack__line *line)
{
	struct incstack__line word;

	incstack__line_skip_spaces(line);
	word = (struct incstack__line){line->text, 0};
	while (line->length && *line->text != ' ' && *line->text != '\t') {
		line->text++;
		line->length--;
		word.length++;
	}
	return word;
}

/* "1009.406182:" */
static bool is_time(struct incstack__line word)
{
	uint64_t number;

	return incstack__line_number(&word, 10, &number) && incstack__line_skip(&word, ".") &&
	       incstack__line_number(&word, 10, &number) && incstack__line_skip(&word, ":") &&
	       !word.length;
}

/* "[001]", "7067" or "7067/7068" */
static bool is_thread(struct incstack__line word)
{
	uint64_t number;

	(void)incstack__line_skip(&word, "[");
	if (!incstack__line_number(&word, 10, &number))
		return false;
	if (incstack__line_skip(&word, "/"))
		(void)incstack__line_number(&word, 10, &number);
	(void)incstack__line_skip(&word, "]");
	return !word.length;
}

/* Shortens the command by its last word if this is a thread or a processor. */
static void cut_thread(struct incstack__line *command)
{
	size_t end = command->length, begin;

	while (end && command->text[end - 1] == ' ')
		end--;
	for (begin = end; begin && command->text[begin - 1] != ' ';)
		begin--;
	if (begin && is_thread((struct incstack__line){command->text + begin, end - begin}))
		end = begin;
	while (end && command->text[end - 1] == ' ')
		end--;
	command->length = end;
}

/* Takes the command and the time off a line. A command may contain spaces. */
static bool take_command(struct incstack__line *line, struct incstack__line *command)
{
	const char *first = line->text;
	struct incstack__line word;

	do {
		word = take_word(line);
		if (!word.length)
			return false;
	} while (!is_time(word));
	*command = (struct incstack__line){first, (size_t)(word.text - first)};
	cut_thread(command); /* the processor */
	cut_thread(command);
	return command->length > 0;
}

bool incstack__perf_script_head(struct incstack__line line)
{
	struct incstack__line command;

	incstack__line_skip_spaces(&line);
	return take_command(&line, &command);
}

static int find_event(struct perf *in, struct incstack__line name)
{
	for (in->kind = 0; in->kind < in->events; in->kind++)
		if (strlen(in->event[in->kind]) == name.length &&
		    !memcmp(in->event[in->kind], name.text, name.length))
			return 0;
	if (in->events == SAMPLES)
		return refuse(in, "more than 15 kinds of events");
	if (!incstack__text_valid(name.text, name.length))
		return refuse(in, "an event's name is not UTF-8");
	in->event[in->events] = strndup(name.text, name.length);
	return in->event[in->events++] ? 0 : INCSTACK_ENOMEM;
}

/* "250000 cpu-clock:pppH:", of which the number may be missing */
static int take_event(struct perf *in, struct incstack__line *line)
{
	struct incstack__line word = take_word(line), digits = word;

	in->period = 1;
	if (incstack__line_number(&digits, 10, &in->period) && !digits.length)
		word = take_word(line);
	else
		in->period = 1;
	if (word.length < 2 || word.text[word.length - 1] != ':')
		return refuse(in, "a sample without an event");
	word.length--;
	return find_event(in, word);
}

/* ---- the frames of a sample ---- */

static int add_frame(struct perf *in, const struct incstack__foreign_frame *described)
{
	struct incstack__frame_info info;
	int error = incstack__foreign_names(in->reader, described, &info);

	if (!error && in->depth == FRAMES_MOST)
		return refuse(in, "a sample with more than 65536 frames");
	if (!error)
		error = incstack__reserve((void **)&in->frames, &in->frames_room, in->depth + 1,
					  sizeof(*in->frames));
	if (!error)
		in->frames[in->depth++] = (struct incstack__frame){.position = -1,
								   .key = info.name,
								   .file = info.file,
								   .line = info.line,
								   .flags = info.flags};
	return error;
}

/* Cuts "+0x1f" off the end of a name. */
static void cut_offset(struct incstack__line *name)
{
	const char *plus = memrchr(name->text, '+', name->length);
	struct incstack__line offset;
	uint64_t number;

	if (!plus)
		return;
	offset = (struct incstack__line){plus, name->length - (size_t)(plus - name->text)};
	if (incstack__line_skip(&offset, "+0x") && incstack__line_number(&offset, 16, &number) &&
	    !offset.length)
		name->length = (size_t)(plus - name->text);
}

/* Splits "main+0x1f (/usr/bin/cat)". A function without a name is called after its file. */
static struct incstack__foreign_frame frame_of(struct incstack__line text)
{
	static const char inlined[] = "(inlined)", unknown[] = "[unknown]";
	struct incstack__foreign_frame frame = {.name = text};
	size_t bracket = text.length;

	while (bracket &&
	       !(text.text[bracket - 1] == '(' && bracket > 1 && text.text[bracket - 2] == ' '))
		bracket--;
	if (bracket < 2)
		return frame;
	frame.name.length = bracket - 2;
	if (text.length - bracket + 1 == sizeof(inlined) - 1 &&
	    !memcmp(text.text + bracket - 1, inlined, sizeof(inlined) - 1))
		frame.flags = INCSTACK_OBJECT_VIRTUAL;
	cut_offset(&frame.name);
	if (frame.name.length == sizeof(unknown) - 1 &&
	    !memcmp(frame.name.text, unknown, frame.name.length) && text.text[bracket] != '[' &&
	    text.length > bracket + 1) {
		const struct incstack__line path = {text.text + bracket, text.length - bracket - 1};
		const char *slash = memrchr(path.text, '/', path.length);

		frame.name = path;
		if (slash && slash + 1 < path.text + path.length)
			frame.name = (struct incstack__line){
				slash + 1, path.length - (size_t)(slash + 1 - path.text)};
	}
	return frame;
}

/* "55d0c4a3b1d0 main+0x1f (/usr/bin/cat)" */
static int take_frame(struct perf *in, struct incstack__line line)
{
	struct incstack__foreign_frame frame;

	incstack__line_skip_spaces(&line);
	(void)incstack__line_skip(&line, "0x");
	(void)incstack__line_skip_digits(&line);
	incstack__line_skip_spaces(&line);
	frame = frame_of(line);
	return add_frame(in, &frame);
}

/* A line of `perf script -F +srcline` belongs to the frame above it. */
static int take_source(struct perf *in, struct incstack__line line, bool *is_source)
{
	struct incstack__foreign_frame position = {0};
	struct incstack__frame_info info;
	int error;

	incstack__line_skip_spaces(&line);
	*is_source = in->depth > 0 && !memchr(line.text, ' ', line.length) &&
		     incstack__foreign_position(line, &position);
	if (!*is_source)
		return 0;
	error = incstack__foreign_names(in->reader, &position, &info);
	in->frames[in->depth - 1].file = info.file;
	in->frames[in->depth - 1].line = info.line;
	return error;
}

/* ---- samples ---- */

static int end_sample(struct perf *in)
{
	uint32_t node, frame;
	int error;

	if (!in->in_sample)
		return 0;
	in->in_sample = false;
	error = incstack__node_child(in->reader->profile, INCSTACK_PROFILE_ROOT, in->command,
				     &node);
	for (size_t i = in->depth; i-- > 0 && !error;) {
		error = incstack__frame_intern(in->reader->profile, &in->frames[i], &frame);
		if (!error)
			error = incstack__node_child(in->reader->profile, node, frame, &node);
	}
	if (!error)
		error = incstack__weigh(in->reader, node, in->kind, in->period);
	return error ? error : incstack__weigh(in->reader, node, SAMPLES, 1);
}

static int begin_sample(struct perf *in, struct incstack__line line)
{
	struct incstack__foreign_frame command = {0};
	struct incstack__line word, rest;
	int error;

	if (!take_command(&line, &command.name))
		return refuse(in, "a sample without command and time; use the output of perf "
				  "script without -F");
	error = take_event(in, &line);
	if (!error)
		error = incstack__foreign_intern(in->reader, &command, &in->command);
	in->in_sample = true;
	in->depth = 0;
	incstack__line_skip_spaces(&line);
	rest = line;
	word = take_word(&line);
	/* Without -g, the only frame is on this line; behind a tracepoint are its fields. */
	if (!error && rest.length && rest.text[rest.length - 1] == ')' &&
	    incstack__line_skip_digits(&word) >= 4 && !word.length)
		error = take_frame(in, rest);
	return error;
}

static int on_line(struct perf *in, struct incstack__line line)
{
	const bool is_indented = line.length && (*line.text == ' ' || *line.text == '\t');
	bool is_source = false;
	int error;

	if (!line.length || *line.text == '#')
		return end_sample(in);
	/* A short command is indented, too, so a frame is known by the tab. */
	if (is_indented && *line.text == '\t')
		return in->in_sample ? take_frame(in, line)
				     : refuse(in, "a frame without a sample");
	if (is_indented && in->in_sample) {
		error = take_source(in, line, &is_source);
		if (error || is_source)
			return error;
	}
	error = end_sample(in);
	if (error)
		return error;
	if (is_indented)
		incstack__line_skip_spaces(&line);
	return begin_sample(in, line);
}

/* ---- kinds ---- */

static const char *unit_of(const char *event)
{
	return strstr(event, "cpu-clock") || strstr(event, "task-clock") ? "nanoseconds" : "count";
}

/* Copies the weights of the kinds that the file has. */
static void take_weights(const struct perf *in, uint64_t *kept)
{
	const struct incstack_profile *from = in->reader->profile;

	for (size_t node = 0; node < from->nodes_used; node++) {
		const uint64_t *weights = &from->weights[node * INCSTACK_PROFILE_KINDS_MAX];

		memcpy(kept, weights, in->events * sizeof(*kept));
		kept += in->events;
		*kept++ = weights[SAMPLES];
	}
}

/* Leaves the profile with the kinds that the file has. */
static int name_kinds(struct perf *in)
{
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];
	struct incstack_profile *profile = in->reader->profile;
	const size_t weights = profile->nodes_used * (in->events + 1);
	uint64_t *kept = calloc(weights, sizeof(*kept));
	int error = kept ? 0 : INCSTACK_ENOMEM;

	for (uint32_t i = 0; i < in->events; i++)
		kinds[i] = (struct incstack_profile_kind){in->event[i], unit_of(in->event[i])};
	kinds[in->events] = (struct incstack_profile_kind){"samples", "count"};
	if (!error)
		take_weights(in, kept);
	if (!error)
		error = incstack__profile_set_kinds(profile, kinds, in->events + 1);
	if (!error)
		memcpy(profile->weights, kept, weights * sizeof(*kept));
	profile->total[in->events] = profile->total[SAMPLES];
	free(kept);
	return error;
}

static int read_all(struct perf *in)
{
	struct incstack__line line = {"", 0};
	int error = 0;

	while (!error && line.text) {
		error = incstack__lines_next(&in->lines, &line);
		if (!error)
			error = line.text ? on_line(in, line) : end_sample(in);
	}
	if (!error && !in->events)
		return refuse(in, "no samples: not the text of perf script");
	return error ? error : name_kinds(in);
}

int incstack__read_perf_script(struct incstack__reader *reader)
{
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];
	struct perf in = {.reader = reader, .lines = {.reader = reader}};
	int error;

	for (int i = 0; i < INCSTACK_PROFILE_KINDS_MAX; i++)
		kinds[i] = (struct incstack_profile_kind){"samples", "count"};
	error = incstack_profile_create(kinds, INCSTACK_PROFILE_KINDS_MAX, &reader->profile);
	if (!error)
		error = read_all(&in);
	incstack__lines_free(&in.lines);
	for (uint32_t i = 0; i < in.events; i++)
		free(in.event[i]);
	free(in.frames);
	return error;
}
