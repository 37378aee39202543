/* SPDX-License-Identifier: MIT
 *
 * The full walk with libunwind: slow, and the reference with which incremental traces are
 * compared. It shares only the unwind tables with the rules. libunwind gets an address space of
 * ours, which finds the table of an address without the dynamic linker's lock. libunwind's own
 * search waits for that lock while it holds a lock of its own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <libunwind.h>

#include <incstack/native.h>

#include "native.h"

/* A function of libunwind that no header declares: reads the entry of an address from a sorted
 * index. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
					      unw_dyn_info_t *table, unw_proc_info_t *info,
					      int need, void *arg);

/* ---- the address space: this process ---------------------------------------------- */

struct walk {
	unw_addr_space_t space;
	ucontext_t *context;
	/* Readable memory: code with its tables, and pages about which the kernel was asked. */
	struct incstack__native_index code;
	struct incstack__native_pages pages;
	bool lost; /* an address has no table: reads are refused, so that libunwind cannot guess */
};

static bool readable(struct walk *walk, uintptr_t address)
{
	return address - walk->code.low < walk->code.high - walk->code.low ||
	       incstack__native_pages_readable(&walk->pages, address);
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need,
			  void *arg)
{
	struct walk *walk = arg;
	unw_dyn_info_t table = {.format = UNW_INFO_FORMAT_REMOTE_TABLE, .end_ip = UINTPTR_MAX};
	struct incstack__native_index *index = &walk->code;
	int result = -UNW_ENOINFO;

	if (incstack__native_find_index(ip, index)) {
		table.u.rti.segbase = index->base;
		table.u.rti.table_data = index->entries;
		table.u.rti.table_len = index->count;
		result = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need, arg);
	}
	walk->lost = walk->lost || result < 0;
	return result;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
		      void *arg)
{
	struct walk *walk = arg;

	(void)space;
	if (write || walk->lost || !readable(walk, address))
		return -UNW_EINVAL;
	memcpy(value, (const void *)address, sizeof(*value));
	return 0;
}

/* The register with that libunwind number, which is its DWARF number. */
static greg_t *register_of(ucontext_t *context, unw_regnum_t number)
{
	static const int places[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	if (number < 0 || number >= (unw_regnum_t)(sizeof(places) / sizeof(places[0])))
		return NULL;
	return &context->uc_mcontext.gregs[places[number]];
}

static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write,
		      void *arg)
{
	const struct walk *walk = arg;
	const greg_t *place = register_of(walk->context, number);

	(void)space;
	if (write || !place)
		return -UNW_EBADREG;
	*value = (unw_word_t)*place;
	return 0;
}

/* In the first space libunwind caches no rules, because code may be loaded and unloaded. */
static unw_addr_space_t shared_space;
static unw_addr_space_t remembering_space;

static __attribute__((noinline)) unw_addr_space_t make_space(unw_addr_space_t *made,
							     unw_caching_policy_t policy)
{
	const unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
	};

	return incstack__native_space_make(made, accessors, policy);
}

/* Abandons the address spaces, because a thread of the parent may have left their locks held. */
void incstack__native_walk_forked(void)
{
	__atomic_store_n(&shared_space, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&remembering_space, NULL, __ATOMIC_RELEASE);
}

/* ---- the walk ---------------------------------------------------------------------- */

static int read_frame(unw_cursor_t *cursor, struct incstack_frame *frame)
{
	unw_word_t pc;
	unw_word_t sp;
	unw_word_t fp;

	if (unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 || unw_get_reg(cursor, UNW_REG_SP, &sp) < 0 ||
	    unw_get_reg(cursor, UNW_X86_64_RBP, &fp) < 0)
		return INCSTACK_EUNWIND;
	frame->pc = pc;
	frame->sp = sp;
	frame->fp = fp;
	/* libunwind 1.6 returns true for the interrupted frame, not for the kernel's. */
	frame->flags = unw_is_signal_frame(cursor) > 0 ? INCSTACK_FRAME_EXACT : 0;
	frame->reserved = 0;
	return 0;
}

/* Walks past a thunk, or past the trampoline if a signal has interrupted it, to the frame `at`. libunwind
 * does not know thunks that were made at run time, so a new walk begins with the registers of that
 * frame. rbx may be the trampoline's, so a caller whose frame is found by rbx ends the walk. In the
 * first frame of a walk, libunwind looks up the pc itself, not the byte before it. So it gets the
 * address of that byte, because a call may be the last instruction of its function. */
static int pass_thunk(unw_cursor_t *cursor, struct walk *walk, const struct incstack_frame *at)
{
	static const unw_regnum_t saved[] = {UNW_X86_64_RBX, UNW_X86_64_R12, UNW_X86_64_R13,
					     UNW_X86_64_R14, UNW_X86_64_R15};
	if (!at->pc)
		return INCSTACK_EUNWIND;
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++) {
		unw_word_t value;
		if (unw_get_reg(cursor, saved[i], &value) < 0)
			return INCSTACK_EUNWIND;
		*register_of(walk->context, saved[i]) = (greg_t)value;
	}
	*register_of(walk->context, UNW_X86_64_RBP) = (greg_t)at->fp;
	*register_of(walk->context, UNW_X86_64_RIP) = (greg_t)(at->pc - 1);
	*register_of(walk->context, UNW_X86_64_RSP) = (greg_t)at->sp;
	return unw_init_remote(cursor, walk->space, walk) < 0 ? INCSTACK_EUNWIND : 0;
}

/* The result of a walk that cannot go on, which may be because a guess of libunwind led to memory
 * that cannot be read. What was found is kept. */
static int ended(int count)
{
	return count > 0 ? count : INCSTACK_EUNWIND;
}

/* Walks from the cursor's frame, which is that of the function that called getcontext. */
static int go(unw_cursor_t *cursor, struct walk *walk, struct incstack_frame *frames, int max)
{
	int count = 0;

	while (count < max && unw_step(cursor) > 0) {
		struct incstack_frame frame;

		if (read_frame(cursor, &frame) < 0)
			return ended(count);
		if (count > 0 && frame.flags & INCSTACK_FRAME_EXACT)
			frames[count - 1].flags |= INCSTACK_FRAME_SIGNAL;
		if (incstack__frame_pass_trampoline(&frame) && pass_thunk(cursor, walk, &frame) < 0)
			return ended(count);
		if (!frame.pc) /* the return address of a coroutine's outermost frame */
			break;
		frames[count++] = frame;
	}
	return count;
}

/* Walks from the frame of the function that called getcontext. That frame is left out. */
static int walk_from(ucontext_t *context, unw_addr_space_t space, struct incstack_frame *frames,
		     int max)
{
	struct walk walk = {.space = space, .context = context};
	unw_cursor_t cursor;

	if (unw_init_remote(&cursor, space, &walk) < 0)
		return INCSTACK_EUNWIND;
	return go(&cursor, &walk, frames, max);
}

int incstack_native_walk(struct incstack_frame *frames, int max)
{
	unw_addr_space_t space = make_space(&shared_space, UNW_CACHE_NONE);
	ucontext_t context;

	if (!frames || max <= 0)
		return INCSTACK_EINVAL;
	if (!space)
		return INCSTACK_ENOMEM;
	if (getcontext(&context) != 0)
		return INCSTACK_EUNWIND;
	return walk_from(&context, space, frames, max);
}

static bool has_interrupted(const struct incstack_frame *frames, int count)
{
	for (int i = 0; i < count; i++)
		if (frames[i].flags & (INCSTACK_FRAME_EXACT | INCSTACK_FRAME_SIGNAL))
			return true;
	return false;
}

/* libunwind finds cached rules by the pc alone. The rule of an interrupted instruction may differ
 * from that of a return to the same address, so no rule of such a walk is kept. */
int incstack__native_walk_remembering(struct incstack_frame *frames, int max, bool forget)
{
	unw_addr_space_t space = make_space(&remembering_space, UNW_CACHE_GLOBAL);
	ucontext_t context;
	int count;

	if (!space)
		return INCSTACK_ENOMEM;
	if (forget)
		unw_flush_cache(space, 0, 0);
	if (getcontext(&context) != 0)
		return INCSTACK_EUNWIND;
	count = walk_from(&context, space, frames, max);
	if (!has_interrupted(frames, count))
		return count;
	unw_flush_cache(space, 0, 0);
	return incstack_native_walk(frames, max);
}
