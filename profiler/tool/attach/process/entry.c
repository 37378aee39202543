/* SPDX-License-Identifier: MIT
 *
 * Chooses the instruction at the beginning of a function that gets the breakpoint. A push or a jump
 * is cheap, because the kernel emulates it. Any other instruction it executes elsewhere and stops
 * behind it, which costs a virtual machine ten times as much. Up to the chosen instruction the
 * arguments, the stack pointer and the frame pointer must not have changed, so only instructions
 * that are known here are skipped.
 */
#include <string.h>

#include "entry.h"

enum { BYTES = 5, PASSED_MOST = 16 };

/* Instructions that change only rax, rcx, rdx and the flags. `mask` says which bits of the first bytes
 * count. */
static const struct passed {
	unsigned char length;
	unsigned char bytes[BYTES];
	unsigned char mask[BYTES];
} passed[] = {
	{4, {0xf3, 0x0f, 0x1e, 0xfa}, {0xff, 0xff, 0xff, 0xff}}, /* endbr64 */
	{3, {0x48, 0x85, 0xc0}, {0xfa, 0xff, 0xc0}},             /* test register, register */
	{7, {0x48, 0x81, 0xf8}, {0xfe, 0xff, 0xf8}},             /* cmp register, number */
	{4, {0x48, 0x83, 0xf8}, {0xfe, 0xff, 0xf8}},
	{7, {0x48, 0x3b, 0x80}, {0xff, 0xff, 0xc4}}, /* cmp register, word at a register + number */
	{3, {0x48, 0x89, 0xc0}, {0xff, 0xff, 0xc6}}, /* mov rax or rcx, register */
	{7, {0x48, 0x8b, 0x05}, {0xff, 0xff, 0xf7}}, /* mov rax or rcx, word at rip + number */
	{7, {0x48, 0x8b, 0x15}, {0xff, 0xff, 0xff}}, /* mov rdx, word at rip + number */
	{4, {0x48, 0xc1, 0xe8}, {0xff, 0xff, 0xfe}}, /* shr rax or rcx, number */
	{7, {0x48, 0x81, 0xe0}, {0xff, 0xff, 0xfe}}, /* and rax or rcx, number */
	{5, {0x25}, {0xff}},                         /* and eax, number */
	{3, {0x48, 0x01, 0xc0}, {0xff, 0xff, 0xc6}}, /* add rax or rcx, register */
	{9,
	 {0x64, 0x48, 0x03, 0x04, 0x25},
	 {0xff, 0xff, 0xff, 0xff, 0xff}}, /* add rax, word of the thread */
};

static size_t length_of(const unsigned char *code)
{
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		bool differs = false;

		for (int j = 0; j < BYTES; j++)
			differs |= ((code[j] ^ passed[i].bytes[j]) & passed[i].mask[j]) != 0;
		if (!differs)
			return passed[i].length;
	}
	return 0;
}

/* push register; jump if a condition holds */
static bool is_cheap(const unsigned char *code)
{
	return (code[0] & 0xf8) == 0x50 || (code[0] == 0x41 && (code[1] & 0xf8) == 0x50) ||
	       (code[0] & 0xf0) == 0x70 || (code[0] == 0x0f && (code[1] & 0xf0) == 0x80);
}

uint64_t tool_attach_entry(const struct tool_attach_object *object, uint64_t address)
{
	uint64_t at = address;

	for (int i = 0; i < PASSED_MOST; i++) {
		const unsigned char *code = tool_attach_object_code(object, at, BYTES);

		if (!code)
			return address;
		if (is_cheap(code))
			return at;
		if (length_of(code) == 0)
			return address;
		at += length_of(code);
	}
	return address;
}
