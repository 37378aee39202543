/* SPDX-License-Identifier: MIT
 *
 * Turns a profile whose frames are functions and positions into one whose frames are names, files
 * and lines.
 */
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "module.h"

struct naming {
	struct incstack_profile *into;
	const struct incstack_profile *from;
	incstack_profile_source_fn *find;
	void *context;
};

static bool source_valid(const struct incstack_profile_source *source)
{
	return incstack__string_valid(source->name) && incstack__string_valid(source->file) &&
	       incstack__string_valid(source->module) && incstack__string_valid(source->build_id);
}

/* Finds the module and the place: those of the source, or else those that the frame has. */
static int find_code(const struct naming *naming, const struct incstack_profile_source *source,
		     uint32_t number, struct incstack__frame *frame)
{
	const struct incstack__code code = {source->module, source->build_id, source->address};

	if (!code.module && !code.build_id && !code.address)
		return incstack__code_copy(naming->from, &naming->from->frames[number],
					   naming->into, frame);
	return incstack__code_intern(naming->into, &code, frame);
}

static int name_frame(const struct naming *naming, uint32_t number, uint32_t *frame)
{
	struct incstack_profile_source source = {.kind = naming->from->frames[number].kind};
	struct incstack_profile_frame description = {.size = sizeof(description)};
	struct incstack__frame rest = {.place = 0};
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *text = incstack__frame_text(naming->from, number, buffer, &length);
	int error = 0;

	incstack__frame_public(naming->from, number, &description);
	if (!(description.flags & INCSTACK_PROFILE_LABEL))
		error = naming->find(naming->context, &description, &source);
	if (error)
		return error;
	if (source.kind > INCSTACK_KIND_C)
		return INCSTACK_EINVAL;
	if (!source_valid(&source))
		return INCSTACK_EFORMAT;
	rest.line = source.line > 0 ? source.line : 0;
	rest.kind = source.kind;
	rest.flags = description.flags & INCSTACK_OBJECT_VIRTUAL;
	error = find_code(naming, &source, number, &rest);
	if (error)
		return error;
	return incstack__frame_at(naming->into, source.name ? source.name : text,
				  source.name ? strlen(source.name) : length, source.file, &rest,
				  frame);
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
						     incstack__profile_self(from, i, k));
	return error;
}

int incstack__copy_meta(const struct incstack_profile *from, struct incstack_profile *into)
{
	struct incstack_profile_meta meta = {.size = sizeof(meta)};
	int error = incstack_profile_meta(from, &meta);

	if (!error)
		error = incstack_profile_set_meta(into, &meta);
	return error ? error : incstack__extra_copy(from, into);
}

int incstack_profile_name_frames(const struct incstack_profile *profile,
				 incstack_profile_source_fn *find, void *context,
				 struct incstack_profile **named)
{
	struct naming naming = {.from = profile, .find = find, .context = context};
	uint32_t *frames, *nodes;
	int error;

	if (!profile || !find || !named)
		return INCSTACK_EINVAL;
	error = incstack__create_like(profile, &naming.into);
	if (error)
		return error;
	frames = malloc((profile->frames_used + 1) * sizeof(*frames));
	nodes = malloc(profile->nodes_used * sizeof(*nodes));
	error = fill(&naming, frames, nodes);
	if (!error)
		error = incstack__copy_meta(profile, naming.into);
	if (!error)
		error = incstack__timeline_copy(profile, nodes, naming.into);
	if (!error)
		error = incstack__curve_copy(profile, nodes, naming.into);
	free(frames);
	free(nodes);
	if (error)
		incstack_profile_destroy(naming.into);
	else
		*named = naming.into;
	return error;
}
