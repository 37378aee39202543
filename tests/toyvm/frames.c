/* SPDX-License-Identifier: MIT
 *
 * Walks the frames of a fiber for the VM, and describes them to the library: unwind rules,
 * positions, patched returns. This is the embedding.
 */
#include "vm.h"

static bool has_frame_pointer(uintptr_t pc)
{
	return pc == stubs.returned || pc == stubs.called_back;
}

static void read_pointed(struct frame *frame)
{
	frame->slot = (uintptr_t *)frame->fp + 1;
	frame->count = 1;
	frame->frames[0] = (struct virtual){
		frame_method(frame->fp), (int32_t)*frame_word(frame->fp, FRAME_BCI),
		(uint32_t)*frame_word(frame->fp, FRAME_DEPTH), frame_word(frame->fp, FRAME_SLOTS)};
}

static void read_compiled(struct frame *frame)
{
	const struct blob *b = frame->blob;
	const struct site *site = blob_site(b, frame->pc);
	frame->slot = (uintptr_t *)(frame->sp + b->bytes);
	frame->count = 0;
	int32_t bci = site->bci;
	uint32_t depth = site->depth;
	for (int i = site->scope; i >= 0; i = b->scopes[i].parent) {
		const struct scope *s = &b->scopes[i];
		frame->frames[frame->count++] =
			(struct virtual){s->method, bci, depth, (value *)frame->sp + s->base};
		bci = s->bci;
		depth = s->depth;
	}
}

static bool read_frame(struct frame *frame)
{
	if (frame->pc == stubs.base)
		return false;
	frame->blob = has_frame_pointer(frame->pc) ? NULL : code_find(frame->pc);
	if (frame->blob)
		read_compiled(frame);
	else
		read_pointed(frame);
	return true;
}

void frame_first(struct fiber *f, struct frame *frame)
{
	frame->pc = f->pc;
	frame->sp = f->sp;
	frame->fp = f->fp;
	frame->lazy = false;
	read_frame(frame);
}

struct lazy *lazy_find(struct fiber *f, uintptr_t slot)
{
	for (int i = 0; i < f->lazy_count; i++)
		if (f->lazy[i].slot == slot)
			return &f->lazy[i];
	return NULL;
}

void lazy_remove(struct fiber *f, struct lazy *l)
{
	*l = f->lazy[--f->lazy_count];
}

bool frame_next(struct fiber *f, struct frame *frame)
{
	if (!frame->blob)
		frame->fp = *frame_word(frame->fp, 0);
	frame->pc = BUG(BUG_RAW_READ) ? *frame->slot : incstack_slot_read(frame->slot);
	frame->sp = (uintptr_t)(frame->slot + 1);
	frame->lazy = frame->pc == stubs.deopt;
	if (frame->lazy)
		frame->pc = lazy_find(f, (uintptr_t)frame->slot)->pc;
	return read_frame(frame);
}

bool returns_to_barrier(const struct fiber *f, const uintptr_t *slot)
{
	return f->linked ? linked_barrier((uintptr_t)(slot - 1)) : has_barrier(slot);
}

/* ---- what the library asks ------------------------------------------------------ */

static int find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	const struct blob *b = code_find(address);
	const struct mark *mark = b ? blob_mark(b, address) : NULL;
	if (b)
		*rule = (struct incstack_rule){INCSTACK_RULE_SP,
					       (mark && mark->bare ? 0 : (int32_t)b->bytes) + 8, 8,
					       0, 0};
	else if (address == stubs.base || address == stubs.base - 1)
		rule->kind = INCSTACK_RULE_END;
	else if (has_frame_pointer(address) || has_frame_pointer(address + 1))
		*rule = (struct incstack_rule){INCSTACK_RULE_FP, 16, 8, 16,
					       BUG(BUG_DECODED_LATE) ? 0
								     : INCSTACK_RULE_DECODE_NOW};
	else
		return INCSTACK_EUNWIND;
	return 0;
}

/* Returns what a look-up may find that forgets to subtract 1 from a return address. */
static uintptr_t next_call(uintptr_t pc)
{
	const struct blob *b = code_find(pc);
	const struct site *site = b ? blob_site(b, pc) + 1 : NULL;
	return b && site < b->sites + b->site_count ? b->code + site->offset : pc;
}

_Thread_local struct fiber *fiber_looked_at;

/* The frames that a method has inlined, as it were. Their positions are below -1. */
static int decode_more(const struct frame *seen, struct incstack_virtual_frame *out, int max)
{
	const uint64_t method = seen->frames[0].method->id;
	const int more = has_more_frames(method) ? fiber_looked_at->vm->schedule.more_frames : 0;
	for (int i = 1; i <= more && i < max; i++)
		out[i] = (struct incstack_virtual_frame){method, -1 - i, 0};
	return 1 + more;
}

static uint32_t kind_of(const struct frame *frame)
{
	if (frame->blob)
		return INCSTACK_KIND_COMPILED;
	return frame->frames[0].method->native ? INCSTACK_KIND_WRAPPER : INCSTACK_KIND_INTERPRETED;
}

/* The frames at an instruction that a signal has interrupted. */
static int decode_mark(const struct blob *b, const struct mark *mark,
		       struct incstack_virtual_frame *out)
{
	int count = 0, scope = mark->scope;
	for (int32_t bci = mark->bci; scope >= 0;) {
		out[count++] = (struct incstack_virtual_frame){b->scopes[scope].method->id, bci, 0};
		bci = b->scopes[scope].bci;
		scope = b->scopes[scope].parent;
	}
	out[count - 1].kind = INCSTACK_KIND_COMPILED;
	return count;
}

static int decode(void *context, const struct incstack_frame *frame,
		  struct incstack_virtual_frame *out, int max)
{
	(void)context;
	const struct blob *b = frame->flags & INCSTACK_FRAME_EXACT ? code_find(frame->pc) : NULL;
	if (frame->pc >> 63) { /* position_number() */
		const uint64_t key = frame->pc << 1 >> 1;
		out[0] = (struct incstack_virtual_frame){key >> 32, (int32_t)key,
							 INCSTACK_KIND_INTERPRETED};
		return 1;
	}
	if (b && blob_mark(b, frame->pc))
		return decode_mark(b, blob_mark(b, frame->pc), out);
	struct frame seen = {.pc = frame->pc, .sp = frame->sp, .fp = frame->fp};
	if (fiber_looked_at->linked)
		seen.fp = seen.sp;
	if (BUG(BUG_NEXT_CALL))
		seen.pc = next_call(seen.pc);
	if (has_frame_pointer(seen.pc) && !seen.fp)
		return INCSTACK_EUNWIND; /* too late: the frame that held the position is gone */
	if (!read_frame(&seen)) {
		out[0] = (struct incstack_virtual_frame){0, 0, 0};
		return 1;
	}
	for (int i = 0; i < seen.count && i < max; i++)
		out[i] = (struct incstack_virtual_frame){seen.frames[i].method->id,
							 seen.frames[i].bci, kind_of(&seen)};
	if (seen.count == 1)
		return decode_more(&seen, out, max);
	return BUG(BUG_INLINED_FORGOTTEN) ? 1 : seen.count;
}

static uintptr_t logical_pc(void *context, uintptr_t slot, uintptr_t pc)
{
	(void)context;
	if (incstack_slot_read((const uintptr_t *)slot) != pc)
		COUNT(mismatches); /* the library must know the return address at every moment */
	return pc == stubs.deopt && !BUG(BUG_STUB_AS_POSITION)
		       ? lazy_find(fiber_looked_at, slot)->pc
		       : pc;
}

/* Called when the library makes more thunks. No unwinder needs to know them, because only the
 * library and the VM walk these stacks. */
static int no_unwinder(void *context, const void *info, size_t bytes)
{
	(void)context;
	(void)info;
	(void)bytes;
	return 0;
}

const struct incstack_embedder embedder = {
	.size = sizeof(struct incstack_embedder),
	.code.find_rule = find_rule,
	.signals.find_rule = find_rule,
	.signals.interrupted = signals_interrupted,
	.code.decode = decode,
	.code.logical_pc = logical_pc,
	.code.register_unwind_info = no_unwinder,
};

const struct incstack_stack_walker linked_walker = {
	.size = sizeof(struct incstack_stack_walker),
	.caller = linked_caller,
	.arm = linked_arm,
	.disarm = linked_disarm,
};
