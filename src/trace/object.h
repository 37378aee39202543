/* SPDX-License-Identifier: MIT
 *
 * Frame objects and traces: the private flags of an object, and what an object tells of its frame.
 *
 * The state of a stack is a chain of frame objects, youngest first: the callers that were known at
 * the last event. Above the youngest live barrier the chain is a memory that must be compared with
 * the stack (I11); from the barrier on it is certain, because no frame there can have run (I10).
 * Invariants are numbered in docs/invariants.md.
 */
#ifndef INCSTACK__OBJECT_H
#define INCSTACK__OBJECT_H

#include <incstack/incstack.h>

#include "arch/arch.h"

typedef struct incstack_frame_object object;
typedef struct incstack_trace trace;
typedef struct incstack_stack stack;
typedef struct incstack_runtime runtime;

_Static_assert(sizeof(object) == 32, "a frame object is 32 bytes");

/* The private flags of an object. In mode validate a raw object keeps its packed unwind rule in
 * `position`, until it is decoded. */
enum {
	OBJECT_BARRIER = 1u << 8, /* the return into this frame is intercepted */
	OBJECT_GAP = INCSTACK_OBJECT_GAP,
	OBJECT_DECODE_NOW = 1u << 10, /* never to be decoded after its capture */
	OBJECT_NO_BARRIER = 1u << 11, /* the return into it must not be intercepted */
	OBJECT_SHIFT = 14,            /* above the flags: the number of its barrier's thunk */
};
#define OBJECT_FLAGS ((1u << OBJECT_SHIFT) - 1)
#define OBJECT_ORDINARY ((uint32_t)(INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW))

/* The object of the caller's physical frame. Inlined frames are left out, because they share the
 * frame of their callee. */
static inline object *physical_parent(const object *o)
{
	object *p = (object *)o->parent;
	while (p && p->flags & INCSTACK_OBJECT_VIRTUAL)
		p = (object *)p->parent;
	return p;
}

/* The first object with a barrier, from o towards the base. */
static inline object *next_barrier(object *o)
{
	while (o && !(o->flags & OBJECT_BARRIER))
		o = physical_parent(o);
	return o;
}

static inline uintptr_t *object_slot(const object *o)
{
	return (uintptr_t *)(o->address - sizeof(uintptr_t));
}

/* The word in the return slot of o if o has a barrier. Otherwise 1, which no return slot
 * holds. */
static inline uintptr_t barrier_word(const object *o)
{
	return o && o->flags & OBJECT_BARRIER ? thunk_address(o->flags >> OBJECT_SHIFT) : 1;
}

#endif
