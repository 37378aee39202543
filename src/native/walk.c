/* SPDX-License-Identifier: MIT
 *
 * The full walk with libunwind: slow, and the reference that incremental traces
 * are compared with. It shares nothing with the rules but the tables. libunwind is given an
 * address space of ours, in which the table of an address is found without the dynamic
 * linker's lock: its own search waits for that lock with one of libunwind's held.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <libunwind.h>

#include <incstack/native.h>

#include "native.h"

/* Of libunwind, and in no header: reads the entry of an address from a sorted index. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
					      unw_dyn_info_t *table, unw_proc_info_t *info,
					      int need, void *arg);

/* ---- the address space: this process ---------------------------------------------- */

struct walk {
	unw_addr_space_t space;
	ucontext_t *context;
	/* What can be read: code with its tables, and pages that the kernel was asked about. */
	struct incstack__native_index code;
	uintptr_t low, high;
	bool lost; /* an address has no table: what libunwind guesses then is not read */
};

static bool readable(struct walk *walk, uintptr_t address)
{
	const uintptr_t page = address & ~(uintptr_t)4095;

	if (address - walk->code.low < walk->code.high - walk->code.low ||
	    (address >= walk->low && address < walk->high))
		return true;
	if (address % sizeof(uintptr_t) != 0 || !incstack__page_readable(page))
		return false;
	walk->low = page == walk->high ? walk->low : page;
	walk->high = page + 4096;
	return true;
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

/* libunwind's numbers are DWARF's. */
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

static unw_addr_space_t shared_space;

static __attribute__((noinline)) unw_addr_space_t walk_space(void)
{
	const unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
	};

	return incstack__native_space_make(&shared_space, accessors);
}

/* Its lock may have been held. The space is lost. */
void incstack__native_walk_forked(void)
{
	__atomic_store_n(&shared_space, NULL, __ATOMIC_RELEASE);
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
	/* libunwind 1.6 says it of the frame behind the kernel's: the interrupted. */
	frame->flags = unw_is_signal_frame(cursor) > 0 ? INCSTACK_FRAME_EXACT : 0;
	frame->reserved = 0;
	return 0;
}

/* libunwind knows nothing of thunks that were made at run time: behind a thunk the
 * walk starts anew, with the registers of the frame that the thunk stands for. There,
 * libunwind looks up the address that it is given, and not the one before it: so it is
 * given that one, for a call may be the last instruction of its function. */
static int pass_thunk(unw_cursor_t *cursor, struct walk *walk, struct incstack_frame *at)
{
	static const unw_regnum_t saved[] = {UNW_X86_64_RBX, UNW_X86_64_RBP, UNW_X86_64_R12,
					     UNW_X86_64_R13, UNW_X86_64_R14, UNW_X86_64_R15};
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++) {
		unw_word_t value;
		if (unw_get_reg(cursor, saved[i], &value) < 0)
			return INCSTACK_EUNWIND;
		*register_of(walk->context, saved[i]) = (greg_t)value;
	}
	const uintptr_t pc = at->pc;
	at->pc = incstack_slot_read(&pc);
	*register_of(walk->context, UNW_X86_64_RIP) = (greg_t)(at->pc - 1);
	*register_of(walk->context, UNW_X86_64_RSP) = (greg_t)at->sp;
	return unw_init_remote(cursor, walk->space, walk) < 0 ? INCSTACK_EUNWIND : 0;
}

/* Where libunwind guesses, it may step to what cannot be read. */
static int ended(int count)
{
	return count > 0 ? count : INCSTACK_EUNWIND;
}

/* Goes on from the cursor's frame, which is the walk function itself. */
static int go(unw_cursor_t *cursor, struct walk *walk, struct incstack_frame *frames, int max)
{
	int count = 0;

	while (count < max && unw_step(cursor) > 0) {
		struct incstack_frame frame;

		if (read_frame(cursor, &frame) < 0)
			return ended(count);
		if (incstack__thunk_contains(frame.pc) && pass_thunk(cursor, walk, &frame) < 0)
			return ended(count);
		if (!frame.pc) /* what the outermost frame of a coroutine returns to */
			break;
		if (count > 0 && frame.flags & INCSTACK_FRAME_EXACT)
			frames[count - 1].flags |= INCSTACK_FRAME_SIGNAL;
		frames[count++] = frame;
	}
	return count;
}

int incstack_native_walk(struct incstack_frame *frames, int max)
{
	unw_addr_space_t space = walk_space();
	ucontext_t context;
	struct walk walk = {.space = space, .context = &context};
	unw_cursor_t cursor;

	if (!frames || max <= 0)
		return INCSTACK_EINVAL;
	if (!space)
		return INCSTACK_ENOMEM;
	if (getcontext(&context) != 0 || unw_init_remote(&cursor, space, &walk) < 0)
		return INCSTACK_EUNWIND;
	return go(&cursor, &walk, frames, max);
}
