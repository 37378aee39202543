/* SPDX-License-Identifier: MIT
 *
 * Profiles of traces of heap.h and of mixed.h. Conventions as in profile.h.
 */
#ifndef INCSTACK_PROFILE_HEAP_H
#define INCSTACK_PROFILE_HEAP_H

#include <incstack/mixed.h>
#include <incstack/profile.h>

INCSTACK_BEGIN_C

/* Describes a frame of the interpreter in *frame. Before the call *frame is zero except for its size,
 * function and position; the last two are those of the frame of the trace (-1 if the position exceeds
 * INT32_MAX). The size must stay. The frame may get a name at once, or later from
 * incstack_profile_name_frames, to which function, position, kind and flags are passed on. Returns 1, or
 * 0 to leave the frame out. If all frames of a trace are left out, its weight goes to a frame named
 * "[left out]". */
typedef int incstack_profile_heap_frame_fn(void *context, const struct incstack_heap_frame *at,
					   struct incstack_profile_frame *frame);

/* Adds the traces of one retrieve to the profile. An object that several traces share is described once.
 * Each trace adds 1 to kind 0, and its weight to kind 1 if that exists. `describe` may be null. A trace whose
 * callers are unknown is added below a frame named "[truncated]". The tree is only read.
 * Errors: EINVAL, also for a frame that incstack_profile_add_node refuses; ENOMEM, EFORMAT; ELIMIT: 2^32
 * nodes; ERANGE: a total beyond INT64_MAX. After an error the traces before it remain added.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_heap_tree(struct incstack_profile *profile,
						const struct incstack_heap_tree *tree,
						incstack_profile_heap_frame_fn *describe,
						void *context);

/* The same for a frame of two stacks: at->machine or at->heap. Before the call, *frame has its
 * size, the function, the position and the flags of a machine frame. */
typedef int incstack_profile_mixed_frame_fn(void *context, const struct incstack_mixed_frames *at,
					    struct incstack_profile_frame *frame);

/* Adds the traces of two stacks, as add_heap_tree. A frame that the trace before has in the same place
 * is not described again. A trace in which the place of frames is not known (INCSTACK_MIXED_LOOSE) is
 * added below a frame named "[order unknown]", another one whose callers are unknown below "[truncated]".
 * `expect` is as for incstack_mixed_frames_begin and may be null.
 * Errors: as add_heap_tree.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_add_mixed_tree(struct incstack_profile *profile,
						 const struct incstack_mixed_tree *tree,
						 incstack_profile_mixed_frame_fn *describe,
						 incstack_mixed_expect_fn *expect, void *context);

INCSTACK_END_C

#endif
