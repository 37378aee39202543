/* SPDX-License-Identifier: MIT
 *
 * Samples of the frames of a thread, and the context of each frame.
 */
#include "threads.h"

#include <pthread.h>
#include <stdlib.h>

#include "lock.h"

struct threads_counts threads_counts;
struct thread *threads;

static struct incstack_heap *heap;
static uint64_t
	freed; /* how often the library has given memory back: addresses of objects may mean others */
static uint64_t forgotten; /* how many code objects have died: their addresses may mean others */
static uint64_t session;   /* threads of an earlier recording are not used again */

/* The states that a thread of the system has used; the last one first. */
static __thread struct thread *own __attribute__((tls_model("initial-exec")));
static __thread uint64_t own_session __attribute__((tls_model("initial-exec")));

/* ---- what the library asks -------------------------------------------------------------- */

static uintptr_t walk(void *unused, void *identity, uintptr_t name, struct incstack_heap_frame *f)
{
	struct thread *t = identity;
	(void)unused;
	t->walked++;
	if (MARKS_MODE == INCSTACK_HEAP_BARRIER) {
		t->before = t->youngest;
		t->youngest = name;
		if (marks_is_next(&t->marks, name))
			f->flags = INCSTACK_HEAP_MARKED;
	}
	return frames_walk(name, f);
}

static int mark(void *unused, void *identity, uintptr_t name, int on)
{
	(void)unused;
	return marks_set(identity, name, on);
}

/* Not Python's allocators, which call us. */
static void *memory(void *unused, void *old, size_t bytes)
{
	(void)unused;
	if (!old)
		return malloc(bytes);
	free(old);
	freed++;
	return NULL;
}

/* ---- threads ---------------------------------------------------------------------------- */

static void release(struct thread *t)
{
	marks_lift(t);
	marks_free(&t->marks);
	if (t->older)
		t->older->younger = t->younger;
	if (t->younger)
		t->younger->older = t->older;
	else
		threads = t->older;
	incstack_heap_stack_destroy(t->stack);
	free(t->steps);
	free(t);
}

/* A thread of the system has ended, and Python's states of it before. */
static void end(void *unused)
{
	(void)unused;
	lock_take();
	while (own_session == session && own) {
		struct thread *t = own;
		own = t->next;
		t->state = NULL;
		release(t);
	}
	lock_give();
}

static pthread_key_t ending; /* its destructor is `end` */
static bool is_watched;

bool threads_open(void)
{
	const struct incstack_heap_options options = {.size = sizeof(options),
						      .walk = walk,
						      .mark = mark,
						      .memory = memory,
						      .mode = MARKS_MODE};
	if (!is_watched && pthread_key_create(&ending, end) == 0)
		is_watched = true;
	session++;
	threads_counts = (struct threads_counts){0};
	return incstack_heap_create(&options, &heap) == 0;
}

void threads_close(void)
{
	while (threads)
		release(threads);
	incstack_heap_destroy(heap);
	heap = NULL;
	session++;
}

static struct thread *create(PyThreadState *state)
{
	struct thread *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->state = state;
	t->id = state->id;
	if (incstack_heap_stack_create(heap, t, &t->stack)) {
		free(t);
		return NULL;
	}
	if (is_watched)
		pthread_setspecific(ending, heap);
	t->older = threads;
	if (threads)
		threads->younger = t;
	return threads = t;
}

/* States of the thread of the system that have another number now are gone. */
static struct thread *find_slowly(PyThreadState *state)
{
	if (own_session != session)
		own = NULL;
	own_session = session;
	for (struct thread **link = &own; *link; link = &(*link)->next) {
		struct thread *t = *link;
		if (t->state != state)
			continue;
		*link = t->next;
		if (t->id == state->id) {
			t->next = own;
			return own = t;
		}
		t->state = NULL; /* nothing of it may be written */
		release(t);
		break;
	}
	struct thread *t = create(state);
	if (t) {
		t->next = own;
		own = t;
	}
	return t;
}

/* Returns what is known of a state of the calling thread; null if there is no memory. */
struct thread *threads_find(PyThreadState *state)
{
	struct thread *t = own;
	if (own_session == session && t && t->state == state && t->id == state->id)
		return t;
	return find_slowly(state);
}

/* A code object has died. No frame runs it, but remembered ones may have its address. */
void threads_forget_code(void)
{
	forgotten++;
}

/* The state that the calling thread has used last, or null. */
struct thread *threads_own(void)
{
	return own_session == session ? own : NULL;
}

/* ---- a sample --------------------------------------------------------------------------- */

static bool make_room(struct thread *t, size_t depth)
{
	if (depth <= t->room)
		return true;
	const size_t room = 2 * depth + 64;
	struct step *more = realloc(t->steps, room * sizeof(*more));
	if (!more)
		return false;
	t->steps = more;
	t->room = room;
	return true;
}

static bool is_alike(const struct incstack_heap_frame *a, const struct incstack_heap_frame *b)
{
	return a->function == b->function && a->position == b->position && a->kind == b->kind;
}

/* Whether the addresses of objects that are known still mean the same. The library has given memory back, perhaps
 * only that of objects which it did not need after all. */
static bool look_whether_in_place(struct thread *t)
{
	struct incstack_heap_stats stats = {.size = sizeof(stats)};
	incstack_heap_stack_stats(t->stack, &stats);
	const bool are_moved = t->copies != stats.copies;
	t->copies = stats.copies;
	t->freed = freed;
	return !are_moved;
}

static inline bool are_in_place(struct thread *t)
{
	return t->freed == freed || look_whether_in_place(t);
}

/* Returns the number of frames of the sample. *walked, how many the library has asked for, becomes how many objects
 * that are. The last of them is a known one, or the outermost. */
static size_t count_frames(const struct thread *t, const struct incstack_heap_object *top,
			   bool are_known, uint32_t *walked)
{
	const struct incstack_heap_object *last = top;
	uint32_t n = 1;
	if (MARKS_MODE == INCSTACK_HEAP_VALIDATE)
		return *walked;
	for (; n < *walked && last->parent; n++)
		last = last->parent;
	*walked = n;
	if (!last->parent)
		return n;
	if (are_known)
		for (size_t i = t->depth; i > 0; i--)
			if (t->steps[i - 1].object == last)
				return i - 1 + n;
	size_t depth = n;
	for (; last->parent; last = last->parent)
		depth++;
	return depth;
}

/* Writes the frames of a sample over those of the one before. Returns how many of the outermost are as before. A
 * frame that looks like the one that was there keeps its context for now. */
static size_t write_steps(struct thread *t, const struct incstack_heap_object *top, size_t depth,
			  bool are_known)
{
	const struct incstack_heap_object *o = top;
	size_t i = depth;
	for (; i > 0 && o; i--, o = o->parent) {
		struct step *step = &t->steps[i - 1];
		const bool was_there = i <= t->depth;
		const bool is_known =
			MARKS_MODE == INCSTACK_HEAP_VALIDATE || depth - i + 1 >= t->walked;
		const bool is_like = was_there && is_alike(&step->frame, &o->frame);
		if (is_like && is_known && are_known && step->object == o)
			break;
		if (!is_like)
			step->context = THREADS_UNKNOWN;
		step->object = o;
		step->frame = o->frame;
	}
	t->depth = i && !o ? 0 : depth;
	return i;
}

static uint32_t find_contexts(struct thread *t, size_t known)
{
	uint32_t context = known ? t->steps[known - 1].context : CONTEXTS_ROOT;
	bool is_new = false; /* a frame further out is another one */
	bool is_entry = !known || t->steps[known - 1].frame.kind == FRAMES_SHIM;
	for (size_t i = known; i < t->depth; i++) {
		struct step *step = &t->steps[i];
		is_new |= step->context == THREADS_UNKNOWN;
		if (is_new)
			step->context = contexts_child(context, &step->frame,
						       is_entry || step->frame.kind & FRAMES_ENTRY);
		context = step->context;
		is_entry = step->frame.kind == FRAMES_SHIM;
	}
	return context;
}

/* Nothing of the steps can be used. */
static void forget_steps(struct thread *t)
{
	t->depth = 0;
	t->forgotten = forgotten;
}

/* Takes a sample of the frames that the calling thread has now. Returns their context. */
uint32_t threads_context(struct thread *t)
{
	const uintptr_t top = frames_top(t->state);
	const struct incstack_heap_object *object;
	if (!top)
		return CONTEXTS_OUTSIDE;
	if (t->forgotten != forgotten)
		forget_steps(t);
	marks_look(t);
	threads_counts.samples++;
	t->walked = 0;
	t->youngest = 0;
	if (incstack_heap_stack_trace(t->stack, top, &object)) {
		threads_counts.lost++;
		t->depth = 0;
		return CONTEXTS_LOST;
	}
	threads_counts.walked += t->walked;
	const bool are_known = are_in_place(t);
	const size_t depth = count_frames(t, object, are_known, &t->walked);
	if (!make_room(t, depth)) {
		t->depth = 0;
		return CONTEXTS_LOST;
	}
	const size_t known = write_steps(t, object, depth, are_known);
	if (!t->depth) { /* more frames than the library walks */
		threads_counts.lost++;
		return CONTEXTS_LOST;
	}
	const uint32_t context = find_contexts(t, known);
	marks_place(t);
	return context;
}
