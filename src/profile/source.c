/* SPDX-License-Identifier: MIT
 *
 * Turns a profile whose frames are methods and positions into one whose frames are names, files
 * and lines.
 */
#include <stdlib.h>
#include <string.h>

#include "merge.h"

struct naming {
	struct incstack_profile *into;
	const struct incstack_profile *from;
	incstack_profile_source_fn *find;
	void *context;
};

static bool source_valid(const struct incstack_profile_source *source)
{
	return incstack__string_valid(source->name) && incstack__string_valid(source->file);
}

static void public_frame(const struct incstack_profile *profile, uint32_t number,
			 struct incstack_profile_frame *frame)
{
	const struct incstack__frame *f = &profile->frames[number];

	*frame = (struct incstack_profile_frame){
		.method = f->method, .bci = f->bci, .flags = f->flags};
	if (f->file)
		frame->file = incstack__text(profile, f->file - 1);
	if (f->name == INCSTACK__NONE)
		return;
	frame->name = incstack__text(profile, f->name);
	frame->name_length = profile->names[f->name].length;
}

static int name_frame(const struct naming *naming, uint32_t number, uint32_t *frame)
{
	struct incstack_profile_source source = {0};
	struct incstack_profile_frame description;
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *text = incstack__frame_text(naming->from, number, buffer, &length);
	uint32_t inlined = naming->from->frames[number].flags & INCSTACK_OBJECT_VIRTUAL;
	int error = 0;

	public_frame(naming->from, number, &description);
	if (!(description.flags & INCSTACK_PROFILE_LABEL))
		error = naming->find(naming->context, &description, &source);
	if (error)
		return error;
	if (!source_valid(&source))
		return INCSTACK_EFORMAT;
	return incstack__frame_in(naming->into, source.name ? source.name : text,
				  source.name ? strlen(source.name) : length, source.file,
				  source.line > 0 ? source.line : -1, inlined, frame);
}

static int fill(const struct naming *naming, uint32_t *frames, uint32_t *nodes)
{
	const struct incstack_profile *from = naming->from;
	int error = frames && nodes ? 0 : INCSTACK_ENOMEM;

	for (uint32_t i = 0; i < from->frames_used && !error; i++)
		error = name_frame(naming, i, &frames[i]);
	if (!error)
		error = incstack__map_nodes(naming->into, from, frames, nodes);
	for (uint32_t i = 0; i < from->nodes_used && !error; i++)
		for (uint32_t k = 0; k < from->kinds && !error; k++)
			error = incstack__node_weigh(naming->into, nodes[i], k,
						     incstack_profile_self(from, i, k));
	return error;
}

static int copy_meta(const struct incstack_profile *from, struct incstack_profile *into)
{
	struct incstack_profile_meta meta;
	int error = incstack_profile_meta(from, &meta);

	return error ? error : incstack_profile_set_meta(into, &meta);
}

int incstack_profile_in_source(const struct incstack_profile *profile,
			       incstack_profile_source_fn *find, void *context,
			       struct incstack_profile **in_source)
{
	struct naming naming = {.from = profile, .find = find, .context = context};
	uint32_t *frames, *nodes;
	int error;

	if (!profile || !find || !in_source)
		return INCSTACK_EINVAL;
	error = incstack__create_like(profile, &naming.into);
	if (error)
		return error;
	frames = malloc((profile->frames_used + 1) * sizeof(*frames));
	nodes = malloc(profile->nodes_used * sizeof(*nodes));
	error = fill(&naming, frames, nodes);
	if (!error)
		error = copy_meta(profile, naming.into);
	free(frames);
	free(nodes);
	if (error)
		incstack_profile_destroy(naming.into);
	else
		*in_source = naming.into;
	return error;
}
