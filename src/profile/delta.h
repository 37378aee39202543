/* SPDX-License-Identifier: MIT
 *
 * What grew and what shrank between two profiles, in the unit of their weights: by function, by line of the source,
 * and by context. Functions and contexts are matched by names, so that a new build of the program can be
 * compared. For the program incstack only. Conventions as in profile.h.
 */
#ifndef INCSTACK_PROFILE_DELTA_H
#define INCSTACK_PROFILE_DELTA_H

#include <stdbool.h>

#include <incstack/profile.h>

/* Two profiles whose contexts are matched. */
struct incstack__delta;

/* Matches all contexts of both profiles, which must not change before the delta is destroyed.
 * Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner of both. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__delta_create(const struct incstack_profile *before,
			   const struct incstack_profile *after, struct incstack__delta **delta);

/* Frees it; null is allowed.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
void incstack__delta_destroy(struct incstack__delta *delta);

/* Returns the profile that has the contexts of both, without weights.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
const struct incstack_profile *incstack__delta_contexts(const struct incstack__delta *delta);

/* A function, a line or a context whose own weight differs. */
struct incstack__change {
	const char *name; /* of the function, null-terminated; null: it is a context */
	const char *file; /* of the line; null: it is no line, or unknown */
	int32_t line;
	uint32_t node; /* of a context: its node in incstack__delta_contexts */
	uint64_t before, after;
	double by;             /* after - before, or that of their shares */
	uint32_t first, count; /* of a function: its lines; none if no line is known */
};

/* Changes, the largest first. Those of lines are ordered within each function. */
struct incstack__changes {
	struct incstack__change *at;
	size_t count;
};

/* The difference in one kind of weight. */
struct incstack__kind_delta {
	uint64_t before, after; /* of all contexts */
	struct incstack__changes functions, lines, contexts;
};

/* Finds what differs in a kind of weight, of which the profiles may have different numbers. With `shares`,
 * weights count relative to the total of their profile. What does not differ is left out. The caller frees the
 * result with incstack__kind_delta_free. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__delta_weigh(const struct incstack__delta *delta, uint32_t before, uint32_t after,
			  bool shares, struct incstack__kind_delta *of);
void incstack__kind_delta_free(struct incstack__kind_delta *of);

/* ---- JSON ---------------------------------------------------------------------- */

/* What is written of a kind. */
struct incstack__delta_shown {
	struct incstack_profile_kind kind;
	size_t functions, contexts; /* how many changes, the largest first */
	int is_exceeded;            /* of a limit: 0 or 1; -1: there is none */
	bool first;                 /* of all kinds */
};

/* Write an object with the differences: its begin, each kind, its end. Names are UTF-8. The caller looks for
 * errors of the stream. ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
void incstack__delta_json_begin(const char *before, const char *after, bool shares, FILE *stream);
int incstack__delta_json_kind(const struct incstack__delta *delta,
			      const struct incstack__kind_delta *of,
			      const struct incstack__delta_shown *shown, FILE *stream);
void incstack__delta_json_end(FILE *stream);

#endif
