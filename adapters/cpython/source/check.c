/* SPDX-License-Identifier: MIT
 *
 * The check mode. The walk shares nothing with the library: it follows Python's own chain from the youngest
 * frame, and asks Python for the instruction where Python can tell.
 */
#include "check.h"

static int32_t instruction_of(uintptr_t name, const struct incstack_heap_frame *f)
{
#if PY_VERSION_HEX >= 0x030c0000
	if (f->kind != FRAMES_SHIM)
		return PyUnstable_InterpreterFrame_GetLasti((struct _PyInterpreterFrame *)name) /
		       (int)sizeof(_Py_CODEUNIT);
#endif
	(void)name;
	return (int32_t)f->position;
}

/* Whether the step is the frame, and *context its context. That of the caller replaces it. */
static bool is_right(const struct step *step, uintptr_t name, uint32_t *context)
{
	struct incstack_heap_frame f = {0};
	frames_walk(name, &f);
	if (step->frame.name != name || step->frame.function != f.function ||
	    step->frame.kind != f.kind || (int32_t)step->frame.position != instruction_of(name, &f))
		return false;
	if (f.kind == FRAMES_SHIM)
		return true;
	const PyCodeObject *code = (const PyCodeObject *)(uintptr_t)f.function;
	if (frames_is_incomplete(code, &f))
		return true;
	const struct context *c = &contexts[*context];
	*context = c->parent;
	return c->code == codes_number(code) && (c->place & ~CONTEXTS_ENTRY) == f.position;
}

void check_context(const struct thread *t, uint32_t context, uint64_t *compared,
		   uint64_t *mismatches)
{
	size_t i = t->depth;
	uintptr_t name = frames_top(t->state);
	bool is_same = context != CONTEXTS_LOST;
	if (!name)
		return;
	for (; is_same && name; name = frames_next_of(name))
		is_same = i > 0 && is_right(&t->steps[--i], name, &context);
	*compared += 1;
	*mismatches += !is_same || i != 0 || context != CONTEXTS_ROOT;
}
