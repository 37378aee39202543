/* SPDX-License-Identifier: MIT
 *
 * Makes profiles smaller. For the program incstack and the agent for Java only. Conventions as in profile.h.
 */
#ifndef INCSTACK_PROFILE_REDUCE_H
#define INCSTACK_PROFILE_REDUCE_H

#include <incstack/profile.h>

/* Creates a profile without recursion: a call of a function that is already among its callers becomes
 * a part of the youngest such caller. So no context has a function twice, the own weight of each
 * function stays, and a profile of deep recursion becomes small. The functions in between, which led to
 * the call, no longer have its weight among their callees. Functions are the same if their names are
 * equal. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_fold_recursion(const struct incstack_profile *profile,
				     struct incstack_profile **folded);

/* Removes every context whose total is, in every kind, below the profile's total divided by
 * `parts`. Their weights go to a frame "[smaller contexts]" below the caller that stays, so no
 * other function's own weight changes. meta.pruned counts them.
 * Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_prune(struct incstack_profile *profile, uint64_t parts);

/* Makes the profile have at most `nodes` nodes (3 or more). Light contexts are replaced by one frame
 * "[smaller contexts]" below their caller, which has their weights. So no other context changes its weight,
 * with or without callees. A context is light if its total is, in every kind, below a part of the
 * profile's total; the part is the smallest one that suffices, or up to twice as large. If even the
 * heaviest contexts are too many, those that were added last are replaced. Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_shrink(struct incstack_profile *profile, uint32_t nodes);

/* Removes all nodes and weights. Frames, names and their numbers stay. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
int incstack__profile_clear(struct incstack_profile *profile);

#endif
