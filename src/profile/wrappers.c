/* SPDX-License-Identifier: MIT
 *
 * Guesses which functions hand out memory. Such a function
 * - says it by its name,
 * - has at least three callers, which get memory of three sizes: the caller chooses the size, which the maker of one
 *   kind of object does not let its callers do,
 * - and nine of ten allocations below it are its own or those of other such functions.
 * What is behind a chain of such functions has the callers of the chain.
 */
#include "wrappers.h"

#include <stdlib.h>
#include <string.h>

#include "allocators.h"

enum { CALLERS = 3 };

/* A function whose name says that it hands out memory. */
struct candidate {
	uint32_t caller[CALLERS];
	uint64_t size[CALLERS]; /* of what the caller got on average */
	uint32_t callers;
	double handed,
		all; /* allocations: by candidates only, and all that are below; recursion adds again */
};

struct search {
	const struct incstack_profile *profile;
	const uint32_t *functions;
	uint32_t bytes, calls; /* kinds */
	bool *sounds;          /* of each function: it may be such a function */
	uint32_t *caller;      /* of each node: the first node that is none, itself included */
	uint64_t *handed[2]; /* of each node: bytes and allocations that only candidates lead to */
	uint64_t *all;       /* of each node: allocations */
	struct candidate *candidates; /* of each function */
};

static int find_kind(const struct incstack_profile *profile, const char *name, uint32_t *number)
{
	for (*number = 0; *number < profile->kinds; ++*number)
		if (!strcmp(incstack__text(profile, profile->kind_name[*number]), name))
			return 0;
	return -1;
}

static uint32_t function_of(const struct search *s, uint32_t node)
{
	return s->functions[s->profile->nodes[node].frame];
}

static bool is_candidate(const struct search *s, uint32_t node)
{
	return node != INCSTACK_PROFILE_ROOT && s->sounds[function_of(s, node)];
}

static void find_candidates(struct search *s, const bool *is_allocator)
{
	const struct incstack_profile *profile = s->profile;

	for (uint32_t i = 0; i < profile->frames_used; i++) {
		const uint32_t function = s->functions[i];
		char buffer[INCSTACK__FRAME_TEXT];
		size_t length;
		const char *text = incstack__frame_text(profile, i, buffer, &length);

		if (!s->sounds[function])
			s->sounds[function] = is_allocator[function] ||
					      incstack__sounds_like_allocator(text, length);
	}
}

/* Adds up what is below each node. A parent comes before its children. */
static void sum_up(struct search *s)
{
	for (uint32_t i = 1; i < s->profile->nodes_used; i++)
		s->caller[i] = is_candidate(s, i) ? s->caller[s->profile->nodes[i].parent] : i;
	for (uint32_t i = (uint32_t)s->profile->nodes_used; i-- > 1;) {
		const uint32_t parent = s->profile->nodes[i].parent;
		const uint64_t calls = incstack__profile_self(s->profile, i, s->calls);

		s->all[i] += calls;
		s->all[parent] += s->all[i];
		s->handed[0][i] += incstack__profile_self(s->profile, i, s->bytes);
		s->handed[1][i] += calls;
		if (!is_candidate(s, i))
			continue;
		s->handed[0][parent] += s->handed[0][i];
		s->handed[1][parent] += s->handed[1][i];
	}
}

/* Notes the caller of a node, if both it and the size that it got are new. */
static void note_caller(struct candidate *of, uint32_t caller, uint64_t size)
{
	for (uint32_t i = 0; i < of->callers; i++)
		if (of->caller[i] == caller || of->size[i] == size)
			return;
	if (of->callers == CALLERS)
		return;
	of->caller[of->callers] = caller;
	of->size[of->callers++] = size;
}

static void judge(struct search *s, bool *is_allocator)
{
	const size_t functions = s->profile->names_used + s->profile->frames_used;

	for (uint32_t i = 1; i < s->profile->nodes_used; i++) {
		struct candidate *of = &s->candidates[function_of(s, i)];

		if (!is_candidate(s, i))
			continue;
		of->all += (double)s->all[i];
		of->handed += (double)s->handed[1][i];
		if (s->handed[1][i] && s->caller[i] != INCSTACK_PROFILE_ROOT)
			note_caller(of, function_of(s, s->caller[i]),
				    s->handed[0][i] / s->handed[1][i]);
	}
	for (size_t i = 0; i < functions; i++) {
		const struct candidate *of = &s->candidates[i];

		is_allocator[i] |= of->callers == CALLERS && of->handed >= 0.9 * of->all;
	}
}

static int allocate(struct search *s)
{
	const size_t nodes = s->profile->nodes_used;
	const size_t functions = s->profile->names_used + s->profile->frames_used + 1;

	s->sounds = calloc(functions, sizeof(*s->sounds));
	s->candidates = calloc(functions, sizeof(*s->candidates));
	s->caller = calloc(nodes, sizeof(*s->caller));
	s->handed[0] = calloc(nodes, sizeof(*s->handed[0]));
	s->handed[1] = calloc(nodes, sizeof(*s->handed[1]));
	s->all = calloc(nodes, sizeof(*s->all));
	return s->sounds && s->candidates && s->caller && s->handed[0] && s->handed[1] && s->all
		       ? 0
		       : INCSTACK_ENOMEM;
}

int incstack__guess_allocators(const struct incstack_profile *profile, const uint32_t *functions,
			       bool *is_allocator)
{
	struct search s = {.profile = profile, .functions = functions};
	int error;

	if (find_kind(profile, "allocated", &s.bytes) ||
	    find_kind(profile, "allocations", &s.calls))
		return 0; /* nothing tells how large allocations are */
	error = allocate(&s);
	if (!error) {
		find_candidates(&s, is_allocator);
		sum_up(&s);
		judge(&s, is_allocator);
	}
	free(s.sounds);
	free(s.candidates);
	free(s.caller);
	free(s.handed[0]);
	free(s.handed[1]);
	free(s.all);
	return error;
}
