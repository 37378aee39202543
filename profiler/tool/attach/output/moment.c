/* SPDX-License-Identifier: MIT
 *
 * Writes which pages of the process are in memory.
 */
#include <stdlib.h>

#include "file.h"
#include "tool/attach/process/ask.h"
#include "tool/pages.h"
#include "tracefile/notes.h"

void tool_attach_file_moment(struct tool_attach_file *file)
{
	const struct tool_pages_files files = {
		.maps = tool_attach_ask_maps(),
		.pagemap = tool_attach_ask_pages(TOOL_ATTACH_PAGEMAP),
		.rollup = tool_attach_ask_pages(TOOL_ATTACH_ROLLUP),
	};
	void *memory;
	struct incstack__moment_block *block = tool_pages_look(&files, &memory);

	if (block) {
		block->head.flags |= INCSTACK__MOMENT_OF_END;
		tool_attach_file_block(file, block, incstack__moment_seal(block));
	} else {
		tool_attach_file_note(file, INCSTACK__NOTE_NO_MOMENT);
	}
	free(memory);
}
