/* SPDX-License-Identifier: MIT
 *
 * The mark of CPython 3.15, as the library's marks need it: see marks_3_15.h.
 */
#include "threads.h"

#if PY_VERSION_HEX >= 0x030f0000

#include <stdlib.h>

/* So many frames that fit badly are passed over before one of them is taken. */
enum { PATIENCE = 4 };

static bool is_shim(uintptr_t name)
{
	return ((const struct _PyInterpreterFrame *)name)->owner == FRAME_OWNED_BY_INTERPRETER;
}

/* Whether the interpreter's mark may be on the frame `before`, whose caller is `name`. Not on the youngest
 * frame, which may be taken to a generator. If the caller is a shim, the mark is lost when `before` returns. */
static bool can_have(struct thread *t, uintptr_t before, uintptr_t name)
{
	if (t->walked < 3 || t->youngest != name || is_shim(before))
		return false;
	return !is_shim(name) || ++t->marks.refused > PATIENCE;
}

static bool remember(struct marks *m, struct marked marked)
{
	if (m->count == m->room) {
		const uint32_t room = m->room ? 2 * m->room : 16;
		struct marked *more = realloc(m->set, room * sizeof(*more));
		if (!more)
			return false;
		m->set = more;
		m->room = room;
	}
	m->set[m->count++] = marked;
	return true;
}

static void forget(struct marks *m, uintptr_t name)
{
	uint32_t i = m->count;
	while (i > 0 && m->set[i - 1].name != name)
		i--;
	if (!i)
		return;
	m->count--;
	for (uint32_t j = i - 1; j < m->count; j++)
		m->set[j] = m->set[j + 1];
	if (m->next >= i)
		m->next--;
}

/* The library marks a caller of a frame that the mark has passed. All of them are known. */
static int set_known(struct thread *t, uintptr_t name)
{
	struct marks *m = &t->marks;
	size_t i = m->place + 1;
	while (i > 0 && t->steps[i - 1].frame.name != name)
		i--;
	return i && remember(m, (struct marked){name, i - 1}) ? 0 : -1;
}

/* The library sets or clears its mark of a frame. A negative result: the frame cannot have one. */
int marks_set(struct thread *t, uintptr_t name, int on)
{
	struct marks *m = &t->marks;
	const uintptr_t before = t->before;
	if (!on)
		return forget(m, name), 0;
	if (m->is_foreign)
		return -1;
	if (!t->walked)
		return set_known(t, name);
	if (m->is_new || !can_have(t, before, name) ||
	    !remember(m, (struct marked){name, SIZE_MAX}))
		return -1;
	t->state->last_profiled_frame = (struct _PyInterpreterFrame *)before;
	m->on = before;
	m->seq = t->state->last_profiled_frame_seq;
	m->is_new = true;
	return 0;
}

/* Nothing is known of what the library has marked. It learns that its marks were hit too often. */
static void give_up(struct thread *t)
{
	struct marks *m = &t->marks;
	uintptr_t name = incstack_heap_stack_marked(t->stack, 0);
	m->place = m->place && !m->is_new ? m->place - 1 : 0;
	if (name)
		incstack_heap_stack_returned(t->stack, name);
	incstack_heap_stack_lift(t->stack, 0);
	m->count = m->next = 0;
	m->on = 0;
	m->is_new = false;
}

/* The mark is on the frame with this place now: reports the returns to its callees' callers. */
static void report(struct thread *t)
{
	struct marks *m = &t->marks;
	while (m->count && m->set[m->count - 1].place >= m->place) {
		const uintptr_t name = m->set[--m->count].name;
		if (incstack_heap_stack_returned(t->stack, name))
			break;
	}
}

/* The interpreter's mark is not where it was set. */
static void look_again(struct thread *t)
{
	struct marks *m = &t->marks;
	const uintptr_t on = (uintptr_t)t->state->last_profiled_frame;
	const size_t moved = t->state->last_profiled_frame_seq - m->seq;
	const bool was_ours = m->on != 0;
	m->is_foreign = on && !was_ours;
	m->seq += moved;
	if (was_ours && on && !m->is_new && moved <= m->place &&
	    t->steps[m->place - moved].frame.name == on) {
		threads_counts.fired += moved != 0;
		m->place -= moved;
		m->on = on;
		if (t->steps[m->place].frame.kind != FRAMES_SHIM) {
			report(t);
			m->next = m->count;
			return;
		}
		threads_counts.gone++;
		t->state->last_profiled_frame = NULL;
	} else if (m->is_new && !moved && on == m->on) {
		t->state->last_profiled_frame = NULL; /* the sample that has set it has failed */
	} else if (was_ours) {
		m->is_foreign = on != 0;
	}
	threads_counts.foreign += m->is_foreign;
	if (was_ours)
		give_up(t);
}

void marks_look(struct thread *t)
{
	struct marks *m = &t->marks;
	t->walked = 0; /* the library calls because of a return */
	m->refused = 0;
	m->next = m->count;
	if ((uintptr_t)t->state->last_profiled_frame != m->on ||
	    t->state->last_profiled_frame_seq != m->seq || m->is_new)
		look_again(t);
}

/* Finds the places of what was marked in this sample. */
void marks_place(struct thread *t)
{
	struct marks *m = &t->marks;
	size_t i = t->depth;
	if (!m->is_new)
		return;
	while (i > 1 && t->steps[i - 1].frame.name != m->on)
		i--;
	m->place = i - 1;
	m->set[m->count - 1].place = i > 1 ? i - 2 : 0;
	m->is_new = t->steps[i - 1].frame.name != m->on;
}

/* Whether the thread state is still there. */
static bool is_alive(const struct thread *t)
{
	PyInterpreterState *interpreter = PyInterpreterState_Head();
	for (; interpreter; interpreter = PyInterpreterState_Next(interpreter))
		for (PyThreadState *state = PyInterpreterState_ThreadHead(interpreter); state;
		     state = PyThreadState_Next(state))
			if (state == t->state && state->id == t->id)
				return true;
	return false;
}

/* Takes the interpreter's mark away, if it is ours. */
void marks_lift(struct thread *t)
{
	const struct marks *m = &t->marks;
	if (!m->on || !t->state || !is_alive(t))
		return;
	const size_t moved = t->state->last_profiled_frame_seq - m->seq;
	const uintptr_t on = (uintptr_t)t->state->last_profiled_frame;
	if (!m->is_new && moved <= m->place && t->steps[m->place - moved].frame.name == on)
		t->state->last_profiled_frame = NULL;
}

void marks_free(struct marks *marks)
{
	free(marks->set);
}

#else

typedef int marks_need_no_code;

#endif
