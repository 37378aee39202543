/* SPDX-License-Identifier: MIT
 *
 * Writes the functions of the page, and where their frames are: in which file, line and module.
 */
#include <stdlib.h>

#include "packed.h"
#include "page.h"

enum { KIND_LABEL = 6 }; /* behind enum incstack_frame_kind */

/* A frame of the page is inlined, whatever else it is. */
static uint32_t kind_of(const struct incstack__frame *frame)
{
	if (frame->flags & INCSTACK_PROFILE_LABEL)
		return KIND_LABEL;
	return frame->flags & INCSTACK_OBJECT_VIRTUAL ? INCSTACK_KIND_INLINED : frame->kind;
}

/* Returns the number of the name of the module's file plus 1; 0: unknown. */
static uint32_t module_of(const struct incstack_profile *profile,
			  const struct incstack__frame *frame)
{
	return frame->module ? profile->modules.modules[frame->module - 1].file : 0;
}

/* Writes the number of a name in the page plus 1, or 0. */
static void put_name(struct incstack__packed *packed, struct incstack__page_numbers *numbers,
		     uint32_t name)
{
	incstack__packed_number(packed, name ? incstack__page_number(numbers, name - 1) + 1 : 0);
}

static void put_frames(struct incstack__page *page, const uint32_t *functions)
{
	struct incstack__packed packed;

	incstack__packed_begin(&packed, page->stream);
	for (uint32_t i = 0; i < page->frames.used; i++) {
		uint32_t number = page->frames.thing[i];
		const struct incstack__frame *frame = &page->profile->frames[number];

		incstack__packed_number(&packed,
					incstack__page_number(&page->functions, functions[number]));
		put_name(&packed, &page->files, frame->file);
		incstack__packed_number(&packed, frame->line > 0 ? (uint32_t)frame->line : 0);
		incstack__packed_number(&packed, kind_of(frame));
		put_name(&packed, &page->modules, module_of(page->profile, frame));
	}
	incstack__packed_end(&packed);
}

static void put_names(const struct incstack__page *page,
		      const struct incstack__page_numbers *numbers)
{
	const struct incstack_profile *profile = page->profile;

	for (uint32_t i = 0; i < numbers->used; i++) {
		const struct incstack__name *name = &profile->names[numbers->thing[i]];

		fputs(i ? ",\n" : "\n", page->stream);
		incstack__json_text(profile->texts + name->offset, name->length, page->stream);
	}
}

int incstack__write_frames(struct incstack__page *page)
{
	uint32_t *functions;
	int error = incstack__frame_functions(page->profile, &functions);

	if (error)
		return error;
	fputs(",\n\"frames\":", page->stream);
	put_frames(page, functions);
	fputs(",\n\"functions\":[", page->stream);
	for (uint32_t i = 0; i < page->functions.used; i++) {
		fputs(i ? ",\n" : "\n", page->stream);
		incstack__json_frame(page->profile, page->function_frame[page->functions.thing[i]],
				     page->stream);
	}
	fputs("],\n\"files\":[", page->stream);
	put_names(page, &page->files);
	fputs("],\n\"modules\":[", page->stream);
	put_names(page, &page->modules);
	putc_unlocked(']', page->stream);
	free(functions);
	return 0;
}
