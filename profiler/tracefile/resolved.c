/* SPDX-License-Identifier: MIT
 *
 * Reads the names that a trace file has itself. Everything is checked once. Nothing is copied.
 */
#include "resolved.h"

#include <stdbool.h>
#include <string.h>

static struct incstack__tracefile_resolved_code code_at(const struct incstack__resolved *resolved,
							uint32_t number)
{
	struct incstack__tracefile_resolved_code code;

	memcpy(&code, resolved->codes + (size_t)number * sizeof(code), sizeof(code));
	return code;
}

static struct incstack__tracefile_resolved_frame frame_at(const struct incstack__resolved *resolved,
							  uint32_t number)
{
	struct incstack__tracefile_resolved_frame frame;

	memcpy(&frame, resolved->frames + (size_t)number * sizeof(frame), sizeof(frame));
	return frame;
}

/* Finds the three tables. Returns whether they fill the payload. */
static bool take_tables(struct incstack__resolved *resolved, const unsigned char *payload,
			size_t length)
{
	struct incstack__tracefile_resolved *head = &resolved->head;
	uint64_t codes;
	uint64_t frames;

	if (length < sizeof(*head))
		return false;
	memcpy(head, payload, sizeof(*head));
	codes = (uint64_t)head->codes * sizeof(struct incstack__tracefile_resolved_code);
	frames = (uint64_t)head->frames * sizeof(struct incstack__tracefile_resolved_frame);
	if (sizeof(*head) + codes + frames + head->text_bytes != length)
		return false;
	resolved->codes = payload + sizeof(*head);
	resolved->frames = resolved->codes + codes;
	resolved->texts = (const char *)resolved->frames + frames;
	return head->text_bytes > 0 && resolved->texts[head->text_bytes - 1] == 0 &&
	       head->remarks < head->text_bytes;
}

static bool are_codes_right(const struct incstack__resolved *resolved)
{
	for (uint32_t i = 0; i < resolved->head.codes; i++) {
		const struct incstack__tracefile_resolved_code code = code_at(resolved, i);

		if (code.count == 0 || code.first > resolved->head.frames ||
		    code.count > resolved->head.frames - code.first ||
		    (i > 0 && code.code <= code_at(resolved, i - 1).code))
			return false;
	}
	return true;
}

static bool are_frames_right(const struct incstack__resolved *resolved)
{
	for (uint32_t i = 0; i < resolved->head.frames; i++) {
		const struct incstack__tracefile_resolved_frame frame = frame_at(resolved, i);

		if (frame.name >= resolved->head.text_bytes ||
		    frame.file >= resolved->head.text_bytes || frame.line > INT32_MAX)
			return false;
	}
	return true;
}

const char *incstack__resolved_read(struct incstack__resolved *resolved,
				    const unsigned char *payload, size_t length)
{
	struct incstack__resolved found = {0};

	if (!take_tables(&found, payload, length) || !are_codes_right(&found) ||
	    !are_frames_right(&found))
		return "the names in the file are malformed";
	*resolved = found;
	return NULL;
}

uint32_t incstack__resolved_find(const struct incstack__resolved *resolved, uint64_t code,
				 uint32_t *first)
{
	uint32_t low = 0;
	uint32_t high = resolved->head.codes;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct incstack__tracefile_resolved_code found = code_at(resolved, middle);

		*first = found.first;
		if (found.code == code)
			return found.count;
		if (found.code < code)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

struct incstack__resolved_frame incstack__resolved_frame(const struct incstack__resolved *resolved,
							 uint32_t number)
{
	const struct incstack__tracefile_resolved_frame frame = frame_at(resolved, number);

	return (struct incstack__resolved_frame){resolved->texts + frame.name,
						 resolved->texts + frame.file, frame.line};
}

const char *incstack__resolved_remarks(const struct incstack__resolved *resolved)
{
	return resolved->texts ? resolved->texts + resolved->head.remarks : "";
}
