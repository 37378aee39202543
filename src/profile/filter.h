/* SPDX-License-Identifier: MIT
 *
 * Takes out of a profile what hides the answer: functions that only hand out memory, contexts that the reader does
 * not ask for, leaks that are known. For the program incstack only. Conventions as in profile.h.
 */
#ifndef INCSTACK_PROFILE_FILTER_H
#define INCSTACK_PROFILE_FILTER_H

#include <stdbool.h>

#include <incstack/profile.h>

/* Patterns with `*` for any text. One of a function must match the whole name, which may also be meant
 * without its parameters and without what the compiler adds (".constprop.0"). */
struct incstack__patterns {
	const char *const *at;
	size_t count;
};

/* ---- functions that hand out memory ---------------------------------------------- */

enum { INCSTACK__LOOKED_MAX = 6, INCSTACK__LOOKED_NAME = 64 };

/* Which functions were looked through. */
struct incstack__looked {
	struct {
		char name[INCSTACK__LOOKED_NAME]; /* without parameters; a long one is cut */
		bool is_guessed;
	} at[INCSTACK__LOOKED_MAX]; /* that had the most weight of kind 0 */
	size_t count;               /* of all; may be larger than INCSTACK__LOOKED_MAX */
};

/* The functions of a profile that hand out memory. Valid until a frame is added to the profile. */
struct incstack__allocators;

/* Finds the functions that `skip` names, and with `known` also those that are known to hand out memory (operator new,
 * xmalloc and so on) or that do what such functions do. They depend on all contexts, so look before any is taken
 * out. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__allocators_find(const struct incstack_profile *profile, bool known,
			      const struct incstack__patterns *skip,
			      struct incstack__allocators **found);
/* Frees them; null is allowed.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
void incstack__allocators_free(struct incstack__allocators *found);

/* Gives their own weights to their first caller that is none of them. Such a function stays where it has another
 * callee, and where it has no such caller. So totals do not change, nor do those of any other function with
 * its callees. *looked may be null. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_look_through(struct incstack_profile *profile,
				   const struct incstack__allocators *functions,
				   struct incstack__looked *looked);

/* ---- contexts -------------------------------------------------------------------- */

/* Keeps the contexts in which a function is, or with `outside` those in which none is. left_out[k] becomes the
 * weight of kind k that is no longer there. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_focus(struct incstack_profile *profile,
			    const struct incstack__patterns *functions, bool outside,
			    uint64_t left_out[INCSTACK_PROFILE_KINDS_MAX]);

/* Takes out the weight of one kind of all contexts in which the function, the source file or the module
 * of a frame matches a pattern as a whole. Sets how many contexts had how much weight. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_suppress(struct incstack_profile *profile, uint32_t kind,
			       const struct incstack__patterns *patterns, uint64_t *contexts,
			       uint64_t *weight);

#endif
