/* SPDX-License-Identifier: MIT
 *
 * Frames and kinds of other programs' files.
 */
#include "foreign.h"

#include <string.h>

int incstack__foreign_heap(struct incstack__reader *reader)
{
	static const struct incstack_profile_kind kinds[] = {
		[INCSTACK__FOREIGN_ALLOCATED] = {"allocated", "bytes"},
		[INCSTACK__FOREIGN_ALLOCATIONS] = {"allocations", "count"},
		[INCSTACK__FOREIGN_PEAK] = {"live at peak", "bytes"},
		[INCSTACK__FOREIGN_LIVE] = {"live at exit", "bytes"},
	};

	return incstack_profile_create(kinds, INCSTACK__FOREIGN_KINDS, &reader->profile);
}

bool incstack__foreign_position(struct incstack__line text, struct incstack__foreign_frame *frame)
{
	const char *colon = memrchr(text.text, ':', text.length);
	struct incstack__line digits;
	uint64_t line;

	if (!colon)
		return false;
	digits = (struct incstack__line){colon + 1, text.length - (size_t)(colon + 1 - text.text)};
	if (!incstack__line_number(&digits, 10, &line) || digits.length)
		return false;
	frame->file = (struct incstack__line){text.text, (size_t)(colon - text.text)};
	frame->line = line <= INT32_MAX ? (int32_t)line : 0;
	return true;
}

/* Returns the last " (" of a text, or null. */
static const char *last_bracket(struct incstack__line text)
{
	for (size_t i = text.length; i > 1; i--)
		if (text.text[i - 1] == '(' && text.text[i - 2] == ' ')
			return text.text + i - 2;
	return NULL;
}

struct incstack__foreign_frame incstack__foreign_valgrind(struct incstack__line text)
{
	struct incstack__foreign_frame frame = {0};
	const char *bracket;
	uint64_t address;

	if (incstack__line_skip(&text, "0x"))
		(void)incstack__line_number(&text, 16, &address);
	(void)incstack__line_skip(&text, ":");
	incstack__line_skip_spaces(&text);
	bracket = text.length && text.text[text.length - 1] == ')' ? last_bracket(text) : NULL;
	if (bracket) {
		const size_t before = (size_t)(bracket - text.text);

		(void)incstack__foreign_position(
			(struct incstack__line){bracket + 2, text.length - before - 3}, &frame);
		text.length = before;
	}
	if (text.length != 3 || memcmp(text.text, "???", 3) != 0)
		frame.name = text;
	return frame;
}

/* Interns a text. An empty text is *number 0, another one its number + 1. */
static int intern(struct incstack__reader *reader, struct incstack__line text, uint32_t *number)
{
	int error;

	*number = 0;
	if (!text.length)
		return 0;
	if (!incstack__text_valid(text.text, text.length))
		return incstack__refuse(reader, "a name is not UTF-8, or has a NUL byte");
	error = incstack__name_intern(reader->profile, text.text, text.length, number);
	++*number;
	return error;
}

int incstack__foreign_names(struct incstack__reader *reader,
			    const struct incstack__foreign_frame *described,
			    struct incstack__frame_info *info)
{
	static const char unknown[] = "[unknown]";
	const struct incstack__line name =
		described->name.length ? described->name
				       : (struct incstack__line){unknown, sizeof(unknown) - 1};
	uint32_t number;
	int error = intern(reader, name, &number);

	*info = (struct incstack__frame_info){
		.name = number - 1, .line = described->line, .flags = described->flags};
	return error ? error : intern(reader, described->file, &info->file);
}

int incstack__foreign_intern(struct incstack__reader *reader,
			     const struct incstack__foreign_frame *described, uint32_t *frame)
{
	struct incstack__frame_info info;
	int error = incstack__foreign_names(reader, described, &info);
	const struct incstack__frame key = {.position = -1,
					    .line = info.line,
					    .flags = info.flags,
					    .key = info.name,
					    .file = info.file};

	return error ? error : incstack__frame_intern(reader->profile, &key, frame);
}

int incstack__foreign_program(struct incstack__reader *reader, const char *program)
{
	const struct incstack_profile_meta meta = {.size = sizeof(meta), .program = program};

	return incstack__string_valid(program) ? incstack_profile_set_meta(reader->profile, &meta)
					       : 0;
}
