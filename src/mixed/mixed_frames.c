/* SPDX-License-Identifier: MIT
 *
 * The merge of two traces. Both are sorted: machine frames further out have higher addresses, and so have
 * the anchors of the interpreter's frames. So one pass suffices, which holds a place in each.
 */
#include <incstack/mixed.h>

typedef struct incstack_mixed_frames frames;
typedef struct incstack_frame_object machine_object;
typedef struct incstack_heap_object heap_object;

/* Where the walk is: frames->state. */
enum {
	IN_MACHINE, /* before next_machine */
	IN_RUN,     /* among the frames of `anchor` */
	IN_LOOSE,   /* the same, and no machine frame is known to run them */
};

/* Where an anchor is, seen from a machine frame. */
enum place { FURTHER_OUT, INSIDE, NOWHERE };

static const heap_object *find_anchor(const heap_object *o)
{
	while (o && !(o->frame.flags & INCSTACK_MIXED_ANCHOR))
		o = o->parent;
	return o;
}

/* Frames that were inlined into each other share an address: the anchor is in the outermost one. The end of a
 * frame is not known if it is the last one, or if the next one lies on another stack. */
static enum place place_of(const machine_object *m, uintptr_t anchor)
{
	const machine_object *caller = m->parent;
	if (anchor < m->address)
		return NOWHERE;
	if (!caller || anchor >= caller->address)
		return FURTHER_OUT;
	return INSIDE;
}

/* The state in which the next frame of the interpreter is shown; IN_MACHINE if a machine frame comes before. */
static uint32_t state_of_run(const frames *f)
{
	const machine_object *m = f->next_machine;
	if (!m) {
		const heap_object *o = f->next_heap;
		while (!f->anchor && o->parent)
			o = o->parent;
		return !f->anchor && o->frame.flags & INCSTACK_HEAP_BASE ? IN_RUN : IN_LOOSE;
	}
	if (!f->anchor)
		return IN_MACHINE;
	const enum place place = place_of(m, (uintptr_t)f->anchor->frame.function);
	if (place == FURTHER_OUT || (place == NOWHERE && f->named))
		return IN_MACHINE;
	if (place == NOWHERE || (f->expect && f->expect(f->context, m) == INCSTACK_MIXED_NEVER))
		return IN_LOOSE;
	return IN_RUN;
}

/* Shows the next frame of the interpreter, if the run has more. */
static int show_heap(frames *f)
{
	const heap_object *o = f->next_heap;
	if (!o || o == f->anchor)
		return 0;
	f->heap = o;
	f->machine = NULL;
	f->truncated |= (o->frame.flags & INCSTACK_HEAP_TRUNCATED) != 0;
	f->flags = f->state == IN_LOOSE ? INCSTACK_MIXED_LOOSE : 0;
	f->next_heap = o->parent;
	return 1;
}

/* The run has ended. Several may belong to one machine frame. */
static void end_run(frames *f)
{
	f->named |= f->state == IN_RUN;
	f->state = IN_MACHINE;
	f->next_heap = NULL;
	if (!f->anchor)
		return;
	f->truncated |= (f->anchor->frame.flags & INCSTACK_HEAP_TRUNCATED) != 0;
	f->next_heap = f->anchor->parent;
	f->anchor = find_anchor(f->next_heap);
}

static void show_machine(frames *f)
{
	const machine_object *m = f->next_machine;
	f->machine = m;
	f->heap = NULL;
	f->truncated |= (m->flags & INCSTACK_OBJECT_TRUNCATED) != 0;
	f->flags = f->named ? INCSTACK_MIXED_RUNS : 0;
	if (!f->named && f->expect && f->expect(f->context, m) == INCSTACK_MIXED_ALWAYS) {
		f->flags = INCSTACK_MIXED_LOOSE;
		f->loose++;
	}
	f->named = 0;
	f->next_machine = m->parent;
}

/* Begins a run if one is due here. */
static int begin_run(frames *f)
{
	if (!f->next_heap)
		return 0;
	f->state = state_of_run(f);
	f->loose += f->state == IN_LOOSE;
	return f->state != IN_MACHINE;
}

int incstack_mixed_frames_begin(struct incstack_mixed_frames *f,
				const struct incstack_mixed_trace *trace,
				incstack_mixed_expect_fn *expect, void *context)
{
	if (!f || !trace || !trace->machine || !trace->heap)
		return INCSTACK_EINVAL;
	*f = (frames){.next_machine = trace->machine->top,
		      .next_heap = trace->heap->top,
		      .anchor = find_anchor(trace->heap->top),
		      .expect = expect,
		      .context = context};
	return 0;
}

int incstack_mixed_frames_next(struct incstack_mixed_frames *f)
{
	if (!f)
		return INCSTACK_EINVAL;
	while (f->state != IN_MACHINE || begin_run(f)) {
		if (show_heap(f))
			return 1;
		end_run(f);
	}
	if (!f->next_machine)
		return 0;
	show_machine(f);
	return 1;
}
