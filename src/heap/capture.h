/* SPDX-License-Identifier: MIT
 *
 * The walk that captures frames.
 */
#ifndef INCSTACK__HEAP_CAPTURE_H
#define INCSTACK__HEAP_CAPTURE_H

#include "barriers.h"

/* Where a walk has ended. An error is negative. */
enum end {
	END_KNOWN = 0,  /* at the youngest barrier: the callers are known */
	END_PLANTED,    /* at a new barrier with a gap */
	END_BASE,       /* at the outermost frame */
	END_CUT,        /* in the middle: the last object is truncated */
	END_TOP_MARKED, /* at the top, which has a mark: nothing was captured */
};

/* What a look from the top has met first. An error is negative. */
enum looked {
	LOOKED_KNOWN = 0, /* the frame of the youngest barrier */
	LOOKED_UNTIL,     /* the frame at which it was to end */
	LOOKED_OVER,      /* neither of them: no barrier is left */
};

struct walk {
	const object **link; /* where the pointer to the first object goes */
	uintptr_t name;      /* the first frame */
	uint32_t limit;      /* frames to walk over before a mark is set */
	uint32_t upto;       /* barriers that may be met; the walk changes it */
	bool is_top;         /* the first frame is running */
	uint32_t frames;     /* captured: set by the walk */
	const object *old;   /* the known object that was met: set by the walk */
};

int incstack__heap_capture_rest(stack *s, struct walk *w, object *o, uintptr_t name, bool marks);
int incstack__heap_capture(stack *s, struct walk *w);
int incstack__heap_complete(stack *s, uint32_t from);
int incstack__heap_passed(stack *s, struct barrier b, uint32_t beyond);
int incstack__heap_look(stack *s, uintptr_t top, uintptr_t until);
int incstack__heap_serve_top(stack *s, const frame *f, uintptr_t caller);

#endif
