/* SPDX-License-Identifier: MIT
 *
 * The step from a frame to its caller where no unwind rule describes the code: by the frame pointer, which
 * compilers at run time and Go keep. Nobody knows whether the register is one. So the rules say by a flag that
 * they are guesses (INCSTACK_RULE_BY_POINTER), and where such a step leads is checked.
 */
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "frame_pointer.h"
#include "native.h"

enum { PUSH = 0x55, RETURN = 0xc3, RETURN_BYTES = 0xc2 };

static struct incstack_rule rule_of(enum incstack_rule_kind kind, int32_t cfa, uint16_t fp)
{
	return (struct incstack_rule){.kind = kind,
				      .cfa_offset = cfa,
				      .ra_offset = sizeof(uint64_t),
				      .fp_offset = fp,
				      .flags = INCSTACK_RULE_NO_BARRIER | INCSTACK_RULE_BY_POINTER};
}

bool incstack__native_is_call(const unsigned char code[INCSTACK__NATIVE_CALL_MOST])
{
	return incstack__native_follows_call((uintptr_t)(code + INCSTACK__NATIVE_CALL_MOST));
}

struct incstack_rule incstack__native_pointer_rule(void)
{
	return rule_of(INCSTACK_RULE_FP, 2 * sizeof(uint64_t), 2 * sizeof(uint64_t));
}

/* ---- interrupted code -------------------------------------------------------------------- */

/* push %rbp; mov %rsp,%rbp, in both encodings. */
enum { SETUP = 4 };
static bool is_setup(const unsigned char *at)
{
	static const unsigned char moves[][SETUP - 1] = {{0x48, 0x89, 0xe5}, {0x48, 0x8b, 0xec}};

	return at[0] == PUSH && (memcmp(at + 1, moves[0], SETUP - 1) == 0 ||
				 memcmp(at + 1, moves[1], SETUP - 1) == 0);
}

/* Whether the code that is called sets up no frame pointer before the pc. If the pc were in another function, which
 * has one, the bytes in between would have its setup. */
static bool has_no_frame(const struct incstack__native_reader *reader, uint64_t start, uint64_t pc)
{
	enum { MOST = 4096 };
	unsigned char code[MOST];
	const size_t bytes = (size_t)(pc - start);

	if (start > pc || pc - start > sizeof(code) ||
	    !reader->code(reader->context, start, code, bytes))
		return false;
	for (size_t i = 0; i + SETUP <= bytes; i++)
		if (is_setup(code + i))
			return false;
	return true;
}

/* Whether the youngest word of the stack is a return address behind a direct call to the function that has the pc,
 * and this function has not set up its frame, or has none. */
static bool is_return_slot(const struct incstack__native_reader *reader, uint64_t pc, uint64_t sp)
{
	enum { CALL = 0xe8, CALL_BYTES = 5 };
	unsigned char call[CALL_BYTES];
	int32_t distance;
	uint64_t back;

	if (!reader->word(reader->context, sp, &back) ||
	    !reader->code(reader->context, back - CALL_BYTES, call, sizeof(call)) ||
	    call[0] != CALL)
		return false;
	memcpy(&distance, call + 1, sizeof(distance));
	return has_no_frame(reader, back + (uint64_t)(int64_t)distance, pc);
}

/* The bytes of interrupted code: one before the instruction, and some of it. The return comes after pop %rbp. */
enum { BEFORE = 1, CODE = BEFORE + SETUP };

struct incstack_rule incstack__native_pointer_rule_at(const struct incstack__native_reader *reader,
						      uint64_t pc, uint64_t sp)
{
	unsigned char code[CODE];
	const unsigned char *at = code + BEFORE;

	if (!reader->code(reader->context, pc - BEFORE, code, sizeof(code)))
		return incstack__native_pointer_rule();
	if (is_setup(code))
		return rule_of(INCSTACK_RULE_SP, 2 * sizeof(uint64_t), 2 * sizeof(uint64_t));
	if (at[0] == RETURN || at[0] == RETURN_BYTES || is_setup(at) ||
	    is_return_slot(reader, pc, sp))
		return rule_of(INCSTACK_RULE_SP, sizeof(uint64_t), 0);
	return incstack__native_pointer_rule();
}

/* ---- code of this process --------------------------------------------------------------- */

/* Another thread may unmap the code at any time, so the kernel copies it. */
bool incstack__native_copy(void *to, uintptr_t from, size_t bytes)
{
	const struct iovec here = {to, bytes};
	const struct iovec there = {(void *)from, bytes};

	return incstack__system_call(SYS_process_vm_readv, incstack__system_call(SYS_getpid), &here,
				     1L, &there, 1L, 0L) == (long)bytes;
}

bool incstack__native_copied_follows_call(uintptr_t pc)
{
	unsigned char code[INCSTACK__NATIVE_CALL_MOST];

	return incstack__native_copy(code, pc - sizeof(code), sizeof(code)) &&
	       incstack__native_is_call(code);
}

static bool copy_code(void *context, uint64_t address, void *to, size_t bytes)
{
	(void)context;
	return incstack__native_copy(to, address, bytes);
}

static bool copy_word(void *context, uint64_t address, uint64_t *to)
{
	return copy_code(context, address, to, sizeof(*to));
}

struct incstack_rule incstack__native_pointer_rule_here(uintptr_t pc, uintptr_t sp)
{
	const struct incstack__native_reader reader = {.code = copy_code, .word = copy_word};

	return incstack__native_pointer_rule_at(&reader, pc, sp);
}
