/* SPDX-License-Identifier: MIT
 *
 * Decodes a pc: one raw object becomes the virtual frames that the embedder finds at its pc.
 * Positions are captured raw and decoded at retrieve, which keeps samples short, unless the
 * rule or the top says that the position can be decoded only now.
 */
#include "decode.h"
#include "fault.h"

struct question {
	runtime *rt;
	const struct incstack_frame *frame;
	struct incstack_virtual_frame out[INCSTACK_VIRTUAL_MAX];
	int count;
};

static void ask_embedder(void *argument)
{
	struct question *q = argument;
	q->count =
		q->rt->embedder.code.decode(q->rt->context, q->frame, q->out, INCSTACK_VIRTUAL_MAX);
	if (FAULT(FAULT_VIRTUAL_DROPPED) && q->count > 1)
		q->count = 1;
	if (q->count > INCSTACK_VIRTUAL_MAX)
		q->count = INCSTACK_VIRTUAL_MAX;
}

/* The object for one more virtual frame: first o itself, then a new caller of `last`. */
static object *virtual_of(stack *s, object *o, object *last, bool grow)
{
	if (!last)
		return o;
	object *v = arena_object(
		s->runtime, &s->arena, grow,
		(object){NULL, 0, o->address, 0, INCSTACK_OBJECT_VIRTUAL | INCSTACK_OBJECT_FILLED});
	if (!v)
		return NULL;
	last->parent = v;
	return v;
}

/* Decodes o in place. Its inlined callers become objects between it and its parent. Returns the
 * outermost of these objects. If there is no memory, it returns null and leaves o unchanged. */
object *incstack__decode(stack *s, object *o, const struct incstack_frame *frame, enum ask ask,
			 bool grow)
{
	runtime *rt = s->runtime;
	struct question q; /* not zeroed, because memset may use vector registers */
	q.rt = rt;
	q.frame = frame;
	if (ask == ASK_SAVED)
		incstack__call_saved(ask_embedder, &q, rt->xsave_bytes);
	else
		ask_embedder(&q);
	const object before = *o;
	uint32_t ends = o->flags & (INCSTACK_OBJECT_BASE | INCSTACK_OBJECT_TRUNCATED);
	object *last = NULL;
	for (int i = 0; i < q.count; i++) {
		object *v = virtual_of(s, o, last, grow);
		if (!v) {
			*o = before;
			return NULL;
		}
		v->function = q.out[i].function;
		v->position = q.out[i].position;
		v->flags &= ~(uint32_t)INCSTACK_OBJECT_RAW;
		last = v;
	}
	if (!last)
		return o;
	o->flags &= ~ends;
	last->flags |= ends;
	last->parent = before.parent;
	return last;
}
