/* SPDX-License-Identifier: MIT
 *
 * Changes the kind of a frame in place, at the top or in the middle of a stack, and throws
 * exceptions. A compiled frame is as large as the interpreted frames that it may become, so its
 * neighbours do not move. A frame that is replaced by a compiled one at a back edge does move.
 */
#include <stdlib.h>

#include "instrument.h"
#include "vm.h"

/* Turns a compiled frame into interpreted ones: one for each of its virtual frames from `from`
 * outward. frame->fp and frame->sp become those of the innermost. */
static void replace(struct frame *frame, int from)
{
	value words[SCOPES_MAX * 8 + SLOTS_MAX * 4];
	size_t used = 0;
	for (int i = frame->count - 1; i >= from; i--) {
		const struct virtual *v = &frame->frames[i];
		uint32_t live = v->method->locals + v->depth;
		for (uint32_t k = 0; k < live; k++)
			words[used++] = v->slots[-(int64_t)k];
	}
	const value *next = words;
	uintptr_t slot = (uintptr_t)frame->slot;
	for (int i = frame->count - 1; i >= from; i--) {
		const struct virtual *v = &frame->frames[i];
		uint32_t live = v->method->locals + v->depth;
		uintptr_t fp = slot - 8;
		*frame_word(fp, 0) = frame->fp;
		*frame_word(fp, FRAME_METHOD) = (uintptr_t)v->method;
		*frame_word(fp, FRAME_BCI) = (value)v->bci;
		*frame_word(fp, FRAME_DEPTH) = v->depth;
		for (uint32_t k = 0; k < v->method->slots; k++)
			*frame_word(fp, FRAME_SLOTS - (int64_t)k) = k < live ? *next++ : 0;
		frame->fp = fp;
		frame->sp = fp - frame_bytes(v->method);
		slot = frame->sp - 8;
		if (i > from)
			*(uintptr_t *)slot = stubs.returned;
	}
}

static void replace_youngest(struct fiber *f, struct frame *frame, int from)
{
	replace(frame, from);
	f->fp = frame->fp;
	set_sp(f, frame->sp);
	f->pc = stubs.returned;
}

/* Deoptimizes the youngest frame, at a poll. */
static void deopt_youngest(struct fiber *f, struct frame *frame)
{
	if (has_barrier(frame->slot))
		COUNT(deopts);
	replace_youngest(f, frame, 0);
	f->resume = stubs.resume_poll;
}

/* Deoptimizes a frame at once. Its callee has saved the frame pointer, so it can be changed there.
 * A frame whose return slot has a barrier cannot be replaced in this way, because the barrier knows
 * the frame by its compiled layout. */
static void deopt_eager(struct fiber *f, struct frame *frame, uintptr_t *saved_fp)
{
	uintptr_t *slot = (uintptr_t *)frame->sp - 1;
	if (has_barrier(frame->slot))
		COUNT(deopts);
	if (frame->lazy)
		lazy_remove(f, lazy_find(f, (uintptr_t)slot));
	replace(frame, 0);
	*saved_fp = frame->fp;
	incstack_stack_slot_write(f->stack, slot, stubs.returned);
}

/* Deoptimizes a frame later: it stays as it is until control returns to it. */
static void deopt_lazily(struct fiber *f, const struct frame *frame)
{
	uintptr_t *slot = (uintptr_t *)frame->sp - 1;
	if (frame->lazy)
		return;
	if (f->lazy_count == f->lazy_room) {
		f->lazy_room = f->lazy_room * 2 + LAZY_MAX;
		f->lazy = realloc(f->lazy, (size_t)f->lazy_room * sizeof(*f->lazy));
	}
	bool barrier = has_barrier(slot);
	if (barrier)
		COUNT(barrier_first);
	f->lazy[f->lazy_count++] = (struct lazy){(uintptr_t)slot, frame->pc, barrier, false};
	if (BUG(BUG_RAW_WRITE))
		*slot = stubs.deopt;
	else
		incstack_stack_slot_write(f->stack, slot, stubs.deopt);
}

/* Deoptimizes one of the youngest compiled frames. */
void deopt_random(struct fiber *f)
{
	struct frame frame;
	uintptr_t *saved_fp = NULL;
	uint32_t skip = random_below(&f->thread->random, 8);
	bool youngest = true;
	frame_first(f, &frame);
	do {
		if (frame.blob && !skip) {
			if (random_below(&f->thread->random, 4) == 0)
				method_set_interpreted(frame.blob->method);
			if (youngest)
				deopt_youngest(f, &frame);
			else if (!f->vm->schedule.lazily && saved_fp &&
				 !has_barrier((uintptr_t *)frame.sp - 1))
				deopt_eager(f, &frame, saved_fp);
			else if (f->lazy_count < LAZY_MAX)
				deopt_lazily(f, &frame);
			return;
		}
		skip -= skip > 0;
		youngest = false;
		saved_fp = frame.blob ? NULL : (uintptr_t *)frame.fp;
	} while (frame_next(f, &frame));
}

/* Deoptimizes the youngest frame, which C code has just executed an instruction for. */
void deopt_after_operation(struct fiber *f)
{
	struct frame frame;
	frame_first(f, &frame);
	if (has_barrier(frame.slot))
		COUNT(deopts);
	replace_youngest(f, &frame, 0);
}

/* The outermost scope may be an old version, which ends as it began. */
static bool is_outdated(const struct program *p, const struct blob *b)
{
	for (int i = 1; i < b->scope_count; i++)
		if (p->methods[b->scopes[i].method->id] != b->scopes[i].method)
			return true;
	return false;
}

bool deopt_outdated(struct fiber *f, bool at_poll)
{
	const struct program *p = f->vm->program;
	struct frame frame;
	bool youngest;
	if (f->epoch == f->vm->epoch)
		return false;
	f->epoch = f->vm->epoch;
	if (BUG(BUG_INLINED_STAYS) || f->linked || f->pc == stubs.base)
		return false;
	frame_first(f, &frame);
	youngest = frame.blob && is_outdated(p, frame.blob);
	if (youngest && at_poll) {
		deopt_youngest(f, &frame);
		frame_first(f, &frame);
	}
	while (frame_next(f, &frame))
		if (frame.blob && is_outdated(p, frame.blob))
			deopt_lazily(f, &frame);
	return youngest;
}

/* Called when control returns to a frame that is to be deoptimized. */
struct fiber *toy_deopt_return(struct fiber *f)
{
	struct frame frame;
	struct lazy *l = lazy_find(f, f->sp - 8);
	f->pc = l->pc;
	lazy_remove(f, l);
	frame_first(f, &frame);
	if (has_barrier(frame.slot))
		COUNT(deopts);
	replace_youngest(f, &frame, 0);
	return toy_returned(f);
}

/* Replaces the youngest frame, which is interpreted and is at a back edge, by a frame of the
 * compiled method b. The space that an adapter left in front of its return slot is removed, so the
 * slot moves. Returns null if there is no room. */
struct fiber *osr(struct fiber *f, const struct blob *b)
{
	const struct method *m = b->method;
	value locals[SLOTS_MAX];
	uintptr_t caller_fp = *frame_word(f->fp, 0), pc;
	uintptr_t *slot = (uintptr_t *)f->fp + 1, *to = slot;
	int32_t target = m->body[*frame_word(f->fp, FRAME_BCI)].a;
	pc = incstack_slot_read(slot);
	if (pc == stubs.returned || pc == stubs.called_back)
		to = (uintptr_t *)(caller_fp - frame_bytes(frame_method(caller_fp))) - 1;
	if ((uintptr_t)to - b->bytes < f->limit)
		return NULL;
	for (uint32_t i = 0; i < m->locals; i++)
		locals[i] = *frame_word(f->fp, FRAME_SLOTS - (int64_t)i);
	if (has_barrier(slot))
		COUNT(osr);
	if (to != slot) {
		*to = *slot;
		if (!BUG(BUG_OSR_UNTOLD))
			incstack_stack_frame_moved(f->stack, (uintptr_t)slot, (uintptr_t)to);
	}
	set_sp(f, (uintptr_t)to - b->bytes);
	f->fp = caller_fp;
	f->resume = b->code + b->offsets[target];
	for (uint32_t i = 0; i < m->locals; i++)
		((value *)f->sp)[b->scopes[0].base - i] = locals[i];
	return f;
}

/* ---- exceptions -------------------------------------------------------------------- */

static const struct handler *find_handler(const struct virtual *v)
{
	for (int32_t i = 0; i < v->method->handler_count; i++) {
		const struct handler *h = &v->method->handlers[i];
		if (v->bci >= h->from && v->bci < h->to)
			return h;
	}
	return NULL;
}

/* Pops the frames that are younger than `to`, which return to so many barriers. */
static void unwind(struct fiber *f, const struct frame *to, uint32_t barriers)
{
	uintptr_t sp = to->sp;
	if (barriers)
		COUNT(exceptions);
	if (f->linked) {
		linked_unwind(f, to->fp);
		return;
	}
	if (BUG(SLIP_UNWOUND_FIRST))
		set_sp(f, sp);
	bool silent = f->vm->schedule.silent_exits && random_below(&f->thread->random, 4) == 0;
	if (!silent && !BUG(BUG_NO_UNWINDING))
		incstack_stack_unwinding_to(f->stack, sp + (BUG(BUG_UNWINDS_TOO_FAR) ? 512 : 0));
	f->vanished += silent ? barriers : 0;
	for (int i = f->lazy_count - 1; i >= 0; i--)
		if (f->lazy[i].slot < sp)
			lazy_remove(f, &f->lazy[i]);
}

static struct fiber *catch (struct fiber *f, struct frame *frame, int at, const struct handler *h)
{
	if (frame->blob) {
		replace_youngest(f, frame, at);
	} else {
		f->fp = frame->fp;
		end_with_frame(f);
	}
	f->shadow -= at;
	instrument_unwound(f);
	*frame_word(f->fp, FRAME_BCI) = (value)h->target;
	*frame_word(f->fp, FRAME_DEPTH) = 0;
	*frame_word(f->fp, FRAME_SLOTS - (int64_t)h->local) = f->exception;
	f->throwing = false;
	f->resume = stubs.resume_interpreter;
	return f;
}

/* Returns to the native method that called; it sees f->throwing. */
static struct fiber *to_native(struct fiber *f, const struct frame *frame)
{
	f->fp = frame->fp;
	end_with_frame(f);
	instrument_unwound(f);
	f->resume = stubs.leave;
	return f;
}

/* Throws f->exception: control goes from the youngest frame to the next handler. */
struct fiber *throw_value(struct fiber *f)
{
	struct frame frame;
	bool youngest = true;
	uint32_t barriers = 0;
	if (f->linked || f->vm->schedule.silent_exits || f->fuel % 2)
		signals_drain(f); /* otherwise the exception is announced: see unwind() */
	oracle_look(f);
	frame_first(f, &frame);
	do {
		if (!youngest && frame.pc == stubs.called_back) {
			unwind(f, &frame, barriers);
			return to_native(f, &frame);
		}
		for (int i = 0; i < frame.count; i++) {
			const struct handler *h = find_handler(&frame.frames[i]);
			if (!h)
				continue;
			if (frame.blob)
				signals_drain(f); /* the frame will have another size */
			if (!youngest)
				unwind(f, &frame, barriers);
			return catch (f, &frame, i, h);
		}
		f->shadow -= frame.count;
		barriers += returns_to_barrier(f, frame.slot);
		youngest = false;
	} while (frame_next(f, &frame));
	unwind(f, &frame, barriers);
	if (!f->linked) {
		set_sp(f, frame.sp);
		f->fp = 0;
	}
	return toy_fiber_end(f);
}

/* Throws f->exception because a call has no room for its frame. A native caller sees the
 * exception first. */
struct fiber *throw_from_call(struct fiber *f)
{
	if (f->pc != stubs.called_back)
		return throw_value(f);
	f->resume = stubs.leave;
	return f;
}
