/* SPDX-License-Identifier: MIT
 *
 * Looks through functions that hand out memory: gives their own weights to their callers. Weights move one by one, each
 * straight to where it stays, before any node is removed. So what is below such a function keeps its weight.
 */
#include <stdlib.h>
#include <string.h>

#include "allocators.h"
#include "removal.h"
#include "filter.h"
#include "wrappers.h"
#include "pattern.h"

struct incstack__allocators {
	size_t count;        /* of functions */
	uint32_t *functions; /* the number of each frame's function */
	bool *is_known;      /* of each function: it hands out memory */
	bool *is_guessed;    /* known and guessed ones */
};

struct look {
	struct incstack_profile *profile;
	const struct incstack__allocators *of;
	uint32_t *caller; /* of each node: where its weight goes; of others itself */
	bool *kept;
	uint64_t *moved;   /* of each function: its own weight, of kind 0 */
	bool *has_moved;   /* of each function */
	uint32_t *a_frame; /* of each function */
};

static uint32_t function_of(const struct look *look, uint32_t node)
{
	return look->of->functions[look->profile->nodes[node].frame];
}

/* ---- which ---------------------------------------------------------------------------- */

static bool is_skipped(const struct incstack__patterns *skip, const char *name, size_t length)
{
	for (size_t i = 0; skip && i < skip->count; i++)
		if (incstack__pattern_function(skip->at[i], name, length))
			return true;
	return false;
}

static void find_known(const struct incstack_profile *profile, bool known,
		       const struct incstack__patterns *skip, struct incstack__allocators *found)
{
	for (uint32_t i = 0; i < profile->frames_used; i++) {
		char buffer[INCSTACK__FRAME_TEXT];
		size_t length;
		const char *text = incstack__frame_text(profile, i, buffer, &length);

		if (profile->frames[i].flags & INCSTACK_PROFILE_LABEL)
			continue;
		found->is_known[found->functions[i]] |=
			is_skipped(skip, text, length) ||
			(known && incstack__is_allocator(text, length));
	}
}

static int find(const struct incstack_profile *profile, bool known,
		const struct incstack__patterns *skip, struct incstack__allocators *found)
{
	int error = incstack__frame_functions(profile, &found->functions);

	if (error)
		return error;
	found->count = profile->names_used + profile->frames_used;
	found->is_known = calloc(found->count + 1, sizeof(*found->is_known));
	found->is_guessed = calloc(found->count + 1, sizeof(*found->is_guessed));
	if (!found->is_known || !found->is_guessed)
		return INCSTACK_ENOMEM;
	find_known(profile, known, skip, found);
	memcpy(found->is_guessed, found->is_known, found->count * sizeof(*found->is_known));
	return known ? incstack__guess_allocators(profile, found->functions, found->is_guessed) : 0;
}

int incstack__allocators_find(const struct incstack_profile *profile, bool known,
			      const struct incstack__patterns *skip,
			      struct incstack__allocators **found)
{
	struct incstack__allocators *made;
	int error;

	if (!profile || !found)
		return INCSTACK_EINVAL;
	made = calloc(1, sizeof(*made));
	error = made ? find(profile, known, skip, made) : INCSTACK_ENOMEM;
	if (error)
		incstack__allocators_free(made);
	else
		*found = made;
	return error;
}

void incstack__allocators_free(struct incstack__allocators *found)
{
	if (!found)
		return;
	free(found->functions);
	free(found->is_known);
	free(found->is_guessed);
	free(found);
}

/* ---- moving --------------------------------------------------------------------------- */

/* Finds where the weight of each node goes. Without a caller that is none of them, it stays. */
static void find_callers(struct look *look)
{
	for (uint32_t i = 1; i < look->profile->nodes_used; i++) {
		const uint32_t parent = look->profile->nodes[i].parent;

		look->caller[i] = i;
		if (look->of->is_guessed[function_of(look, i)])
			look->caller[i] = look->caller[parent];
	}
	for (uint32_t i = 1; i < look->profile->nodes_used; i++)
		if (look->caller[i] == INCSTACK_PROFILE_ROOT)
			look->caller[i] = i;
}

static void move(struct look *look, uint32_t node)
{
	const uint32_t kinds = look->profile->kinds, function = function_of(look, node);
	uint64_t *from = look->profile->weights + (size_t)node * kinds;
	uint64_t *to = look->profile->weights + (size_t)look->caller[node] * kinds;

	look->moved[function] += from[0];
	for (uint32_t k = 0; k < kinds; k++) {
		look->has_moved[function] |= from[k] != 0;
		to[k] += from[k];
		from[k] = 0;
	}
}

static void move_all(struct look *look)
{
	for (uint32_t i = 0; i < look->profile->frames_used; i++)
		look->a_frame[look->of->functions[i]] = i;
	for (uint32_t i = 1; i < look->profile->nodes_used; i++)
		if (look->caller[i] != i)
			move(look, i);
	/* What is left without a callee goes. */
	for (uint32_t i = (uint32_t)look->profile->nodes_used; i-- > 1;) {
		look->kept[i] |= look->caller[i] == i;
		look->kept[look->profile->nodes[i].parent] |= look->kept[i];
	}
}

/* ---- telling -------------------------------------------------------------------------- */

/* Copies the name of a function without parameters, as far as there is room for whole characters. */
static void copy_name(const struct look *look, uint32_t function, char text[INCSTACK__LOOKED_NAME])
{
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *name =
		incstack__frame_text(look->profile, look->a_frame[function], buffer, &length);

	length = incstack__function_base(name, length);
	if (length >= INCSTACK__LOOKED_NAME)
		for (length = INCSTACK__LOOKED_NAME - 1;
		     length && ((unsigned char)name[length] & 0xc0) == 0x80;)
			length--;
	memcpy(text, name, length);
	text[length] = 0;
}

/* Returns the place of a function among those that have more weight. */
static size_t place_of(const struct look *look, const uint32_t *heaviest, size_t used,
		       uint32_t function)
{
	while (used && look->moved[heaviest[used - 1]] < look->moved[function])
		used--;
	return used;
}

static void tell(const struct look *look, struct incstack__looked *looked)
{
	uint32_t heaviest[INCSTACK__LOOKED_MAX + 1];
	size_t used = 0;

	for (uint32_t i = 0; i < look->of->count; i++) {
		const size_t at = look->has_moved[i] ? place_of(look, heaviest, used, i)
						     : INCSTACK__LOOKED_MAX;

		looked->count += look->has_moved[i];
		if (at == INCSTACK__LOOKED_MAX)
			continue;
		memmove(heaviest + at + 1, heaviest + at, (used - at) * sizeof(*heaviest));
		heaviest[at] = i;
		used += used < INCSTACK__LOOKED_MAX;
	}
	for (size_t i = 0; i < used; i++) {
		looked->at[i].is_guessed = !look->of->is_known[heaviest[i]];
		copy_name(look, heaviest[i], looked->at[i].name);
	}
}

/* ---- all of it ------------------------------------------------------------------------ */

static int allocate(struct look *look)
{
	const size_t nodes = look->profile->nodes_used, functions = look->of->count + 1;

	look->moved = calloc(functions, sizeof(*look->moved));
	look->has_moved = calloc(functions, sizeof(*look->has_moved));
	look->a_frame = calloc(functions, sizeof(*look->a_frame));
	look->caller = calloc(nodes, sizeof(*look->caller));
	look->kept = calloc(nodes, sizeof(*look->kept));
	return look->moved && look->has_moved && look->a_frame && look->caller && look->kept
		       ? 0
		       : INCSTACK_ENOMEM;
}

static void release(struct look *look)
{
	free(look->moved);
	free(look->has_moved);
	free(look->a_frame);
	free(look->caller);
	free(look->kept);
}

int incstack__profile_look_through(struct incstack_profile *profile,
				   const struct incstack__allocators *functions,
				   struct incstack__looked *looked)
{
	struct look look = {.profile = profile, .of = functions};
	struct incstack__looked unseen;
	int error;

	if (!profile || !functions ||
	    functions->count != profile->names_used + profile->frames_used)
		return INCSTACK_EINVAL;
	looked = looked ? looked : &unseen;
	*looked = (struct incstack__looked){.count = 0};
	error = allocate(&look);
	if (!error) {
		find_callers(&look);
		move_all(&look);
		tell(&look, looked);
		error = incstack__nodes_remove(profile, look.kept, look.caller);
	}
	release(&look);
	return error;
}
