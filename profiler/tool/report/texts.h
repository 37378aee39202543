/* SPDX-License-Identifier: MIT
 *
 * Texts, each different one stored once, so that equal texts are one pointer.
 */
#ifndef INCSTACK_TOOL_TEXTS_H
#define INCSTACK_TOOL_TEXTS_H

#include <stdint.h>

#include "base/table.h"

struct tool_texts {
	char **texts;
	uint32_t count;
	struct incstack__table table;
};

/* Returns 0 or INCSTACK_ENOMEM. */
int tool_texts_init(struct tool_texts *texts);
void tool_texts_free(struct tool_texts *texts);

/* Returns the only copy of the text, valid until tool_texts_free(); or TOOL_NO_MEMORY. */
const char *tool_text(struct tool_texts *texts, const char *text);

#define TOOL_NO_MEMORY "[out of memory]"

/* Returns the array with room for one more element. The array grows when its count is 0 or a power
 * of two. Returns null if there is no memory. The array stays as it was then. */
void *tool_with_room(void *array, uint32_t count, size_t element);

#endif
