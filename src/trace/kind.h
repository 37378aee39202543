/* SPDX-License-Identifier: MIT
 *
 * The kinds of stacks: what differs between a machine stack, a machine stack of unknown bounds, and
 * a stack that only the embedder can walk. A kind is a table of functions. The other files call
 * these functions and never ask what kind a stack has.
 */
#ifndef INCSTACK__KIND_H
#define INCSTACK__KIND_H

#include "stack.h"

/* How the embedder may be called: never (in a signal handler, signals.find_rule excepted); never,
 * but code.find_rule_quickly may take the place of a missing signals.find_rule; directly; or with
 * all registers saved (from the trampoline). */
enum ask { ASK_NEVER, ASK_QUICKLY, ASK_DIRECTLY, ASK_SAVED };

struct walker;
struct path;
struct incstack_frames;

struct incstack__stack_kind {
	uint32_t modes;        /* that such a stack can have: bits 1 << enum incstack_mode */
	uint32_t mode;         /* its first mode, if it cannot have the mode of the runtime */
	uint32_t slow_reasons; /* that always hold */

	/* ---- samples and walks --------------------------------------------------------------- */

	/* Whether a walk may begin at this top. */
	bool (*takes_top)(const struct incstack_top *top);
	/* Takes a sample within an operation. */
	int (*sample)(stack *s, uint64_t id, uint64_t weight, const struct incstack_top *top);
	/* Takes a sample in a signal handler, outside of an operation, from what the embedder has
	 * described. */
	int (*sample_described)(stack *s, uint64_t id, uint64_t weight,
				const struct incstack_top *top);
	/* Captures the frames from the poll to the first known one. Returns the object of the poll,
	 * or null if there is no room. */
	object *(*frames)(stack *s, const struct incstack_top *poll);
	/* walk_callers() in walk.h */
	object *(*walk)(const struct walker *w, struct path *p);
	/* Removes from the known chain the frames that were popped unannounced. They return whether
	 * the frames that stay known may be completed. The first function is for the owner that
	 * runs, and gets the frame of a public function. The second function is for an owner that
	 * was interrupted at `top`. */
	bool (*remove_popped)(stack *s, const uintptr_t *frame);
	bool (*remove_popped_at)(stack *s, const struct incstack_top *top);

	/* ---- barriers
	 * ------------------------------------------------------------------------- */

	/* The barrier of o, the youngest known object, was hit: captures the frame and moves the
	 * barrier towards the base. */
	void (*passed)(stack *s, object *o, uintptr_t fp, enum ask ask, uintptr_t plant_from);
	/* The embedder announces that the barrier on the frame was hit. */
	int (*announced)(stack *s, uintptr_t frame);
	/* Whether the barrier of o, which has one, still intercepts the return. */
	bool (*is_live)(const stack *s, const object *o);
	/* Lifts the barrier of o. `certain`: a walk from the running frame has met the frame of
	 * o. */
	void (*lift)(stack *s, object *o, bool certain);
	/* The frame of o, and with it its barrier, vanished unannounced. */
	void (*vanished)(stack *s, object *o);
	/* Lifts most barriers, because thunks are short. */
	void (*thin)(stack *s, const uintptr_t *frame);
	/* Forgets all barriers of a stack whose memory may be gone. */
	void (*abandon)(stack *s);

	/* ---- what others do to the stack
	 * ------------------------------------------------------- */

	/* Whether so many bytes at the address lie on the stack; if not, an error. */
	int (*holds)(const stack *s, uintptr_t address, size_t bytes);
	int (*frame_moved)(stack *s, uintptr_t old, uintptr_t new);
	int (*moved)(stack *s, uintptr_t low, uintptr_t high);
	/* Whether the operation that began at the stack pointer `operation` is over, given that the
	 * thread is or will be at sp. */
	bool (*left_behind)(const stack *s, uintptr_t operation, uintptr_t sp);

	/* ---- requests of signal handlers
	 * -------------------------------------------------------- */

	/* Whether the frame, whose caller may be null, is the frame that stays on the stack by the
	 * promise of `top`. */
	bool (*is_promised)(const object *frame, const object *caller,
			    const struct incstack_top *top);
	/* Whether the frame may be a caller of the interrupted frame. */
	bool (*may_have_called)(const object *frame, const struct incstack_top *top);

	/* ---- room
	 * ------------------------------------------------------------------------------- */

	/* The bytes of the stack that frames may have which are not captured, if the caller runs
	 * elsewhere. */
	uintptr_t (*open_bytes)(const stack *s);
	/* Makes room after a sample has found too little. */
	int (*more_room)(stack *s);

	/* ---- the frame iterator
	 * ------------------------------------------------------------------ */

	int (*frames_begin)(struct incstack_frames *frames, const struct incstack_top *top);
	int (*frames_next)(struct incstack_frames *frames);

	/* The number of an invariant that does not hold for one of the `most` youngest objects, or
	 * 0. */
	int (*broken)(const stack *s, size_t most);
};

static inline bool kind_has(const struct incstack__stack_kind *kind, uint32_t mode)
{
	return kind->modes >> mode & 1;
}

extern const struct incstack__stack_kind incstack__kind_machine;  /* the bounds are known */
extern const struct incstack__stack_kind incstack__kind_anywhere; /* a sample may be on any stack */
extern const struct incstack__stack_kind incstack__kind_embedder; /* with its own barriers */

#endif
