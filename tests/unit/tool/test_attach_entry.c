/* SPDX-License-Identifier: MIT
 *
 * Tests which instruction of a function gets the breakpoint. The code is given as bytes. An instruction
 * that is passed over must have the right length, and change none of rdi, rsi, rsp and rbp.
 */
#include <stdlib.h>
#include <string.h>

#include "tool/attach/process/entry.c"
#include "run_suite.h"

enum { FUNCTION = 0x1000 };

/* The code of the only object. Nothing follows it. */
static struct {
	unsigned char bytes[512];
	size_t count;
} code;

const unsigned char *tool_attach_object_code(const struct tool_attach_object *object,
					     uint64_t address, size_t bytes)
{
	const uint64_t at = address - FUNCTION;

	(void)object;
	return at <= code.count && bytes <= code.count - at ? code.bytes + at : NULL;
}

/* Adds an instruction, given in hexadecimal, and returns its length. */
static size_t add(const char *hex)
{
	const size_t before = code.count;
	char *end = NULL;

	for (; *hex != '\0'; hex = end)
		code.bytes[code.count++] = (unsigned char)strtoul(hex, &end, 16);
	return code.count - before;
}

static size_t chosen(void)
{
	const struct tool_attach_object object = {NULL};

	return tool_attach_entry(&object, FUNCTION) - FUNCTION;
}

static void begin(void)
{
	code.count = 0;
}

/* Enough bytes behind the instruction to look at; int3 is not known. */
static void pad(void)
{
	add("cc cc cc cc cc cc cc cc");
}

/* What may stand before the breakpoint. */
static const char *const passed_over[] = {
	"f3 0f 1e fa",                /* endbr64 */
	"48 85 ff",                   /* test rdi, rdi */
	"48 85 c0",                   /* test rax, rax */
	"4d 85 ff",                   /* test r15, r15 */
	"48 81 ff 00 10 00 00",       /* cmp rdi, 0x1000 */
	"49 81 ff 00 10 00 00",       /* cmp r15, 0x1000 */
	"48 83 fe 08",                /* cmp rsi, 8 */
	"49 83 f8 08",                /* cmp r8, 8 */
	"48 3b b8 10 00 00 00",       /* cmp rdi, [rax + 0x10] */
	"48 3b 83 10 00 00 00",       /* cmp rax, [rbx + 0x10] */
	"48 89 f8",                   /* mov rax, rdi */
	"48 89 f1",                   /* mov rcx, rsi */
	"48 8b 05 00 10 00 00",       /* mov rax, [rip + 0x1000] */
	"48 8b 0d 00 10 00 00",       /* mov rcx, [rip + 0x1000] */
	"48 8b 15 00 10 00 00",       /* mov rdx, [rip + 0x1000] */
	"48 c1 e8 03",                /* shr rax, 3 */
	"48 c1 e9 03",                /* shr rcx, 3 */
	"48 81 e0 f0 ff ff ff",       /* and rax, -16 */
	"48 81 e1 f0 ff ff ff",       /* and rcx, -16 */
	"25 ff ff 00 00",             /* and eax, 0xffff */
	"48 01 c8",                   /* add rax, rcx */
	"48 01 f9",                   /* add rcx, rdi */
	"64 48 03 04 25 00 00 00 00", /* add rax, fs:[0] */
};

/* What the kernel does itself. */
static const char *const cheap[] = {
	"55",                /* push rbp */
	"50",                /* push rax */
	"57",                /* push rdi */
	"41 57",             /* push r15 */
	"74 10",             /* je */
	"7f 10",             /* jg */
	"0f 84 00 01 00 00", /* je, far */
	"0f 8f 00 01 00 00", /* jg, far */
};

/* What must not be passed over: they change an argument, the stack, memory or another register that the
 * function still needs, or have another length than those that look like them. */
static const char *const others[] = {
	"48 89 c7",                   /* mov rdi, rax */
	"48 89 c6",                   /* mov rsi, rax */
	"48 89 c2",                   /* mov rdx, rax */
	"48 89 c4",                   /* mov rsp, rax */
	"48 89 e5",                   /* mov rbp, rsp */
	"49 89 c0",                   /* mov r8, rax */
	"48 89 07",                   /* mov [rdi], rax */
	"48 8b 3d 00 10 00 00",       /* mov rdi, [rip + 0x1000] */
	"48 8b 35 00 10 00 00",       /* mov rsi, [rip + 0x1000] */
	"4c 8b 05 00 10 00 00",       /* mov r8, [rip + 0x1000] */
	"48 8b 07",                   /* mov rax, [rdi] */
	"48 85 07",                   /* test [rdi], rax */
	"48 81 3f 00 10 00 00",       /* cmp qword [rdi], 0x1000 */
	"48 81 c7 00 10 00 00",       /* add rdi, 0x1000 */
	"48 81 ec 00 10 00 00",       /* sub rsp, 0x1000 */
	"48 83 ec 08",                /* sub rsp, 8 */
	"48 83 c7 08",                /* add rdi, 8 */
	"48 3b 84 24 10 00 00 00",    /* cmp rax, [rsp + 0x10], which is longer */
	"48 3b 47 10",                /* cmp rax, [rdi + 0x10], which is shorter */
	"48 c1 ef 03",                /* shr rdi, 3 */
	"48 c1 e0 03",                /* shl rax, 3 */
	"48 81 e7 f0 ff ff ff",       /* and rdi, -16 */
	"48 81 e4 f0 ff ff ff",       /* and rsp, -16 */
	"48 01 c7",                   /* add rdi, rax */
	"48 01 c4",                   /* add rsp, rax */
	"48 01 07",                   /* add [rdi], rax */
	"64 48 03 3c 25 00 00 00 00", /* add rdi, fs:[0] */
	"64 48 8b 04 25 00 00 00 00", /* mov rax, fs:[0] */
	"f3 0f 1e fb",                /* endbr32 */
	"f3 90",                      /* pause */
	"e9 00 01 00 00",             /* jmp */
	"eb 10",                      /* jmp, near */
	"e8 00 01 00 00",             /* call */
	"ff 25 00 10 00 00",          /* jmp [rip + 0x1000] */
	"c3",                         /* ret */
	"cc",                         /* int3 */
	"41 89 c0",                   /* mov r8d, eax */
	"0f 94 c0",                   /* sete al */
};

/* ---- a decoder of few instructions, made from the manual of the processor and not from the table ---- */

struct instruction {
	unsigned char rex, opcode, mod, reg, rm; /* reg and rm with the bits of rex */
	const unsigned char *rest;               /* behind the byte that has mod, reg and rm */
};

/* rax, rcx and rdx may change. */
static int is_free(unsigned reg)
{
	return reg <= 2;
}

/* The bytes of the address, or 0 if it has a form that is not known here. */
static size_t address_bytes(const struct instruction *i)
{
	if (i->mod == 3)
		return 1;
	if (i->mod == 0 && (i->rm & 7) == 4)
		return i->rest[0] == 0x25 ? 6 : 0;
	if ((i->rm & 7) == 4)
		return 0;
	if (i->mod == 0)
		return i->rm == 5 || i->rm == 13 ? 5 : 1;
	return i->mod == 1 ? 2 : 5;
}

/* Returns the length of one with REX.W that changes nothing but free registers and the flags; else 0. */
static size_t length_with_rex(const unsigned char *at)
{
	const struct instruction i = {at[0],
				      at[1],
				      at[2] >> 6,
				      (unsigned char)((at[2] >> 3 & 7) | (at[0] & 4) << 1),
				      (unsigned char)((at[2] & 7) | (at[0] & 1) << 3),
				      at + 3};
	const size_t address = address_bytes(&i);
	const unsigned operation = i.reg & 7;

	if (address == 0)
		return 0;
	switch (i.opcode) {
	case 0x39: /* cmp, test */
	case 0x3b:
	case 0x85:
		return 2 + address;
	case 0x8b: /* mov, add to a register */
	case 0x03:
		return is_free(i.reg) ? 2 + address : 0;
	case 0x89: /* mov, add to a register or to memory */
	case 0x01:
		return i.mod == 3 && is_free(i.rm) ? 2 + address : 0;
	case 0x81: /* add, or, adc, sbb, and, sub, xor with a number; cmp */
		return operation == 7 || (i.mod == 3 && is_free(i.rm)) ? 6 + address : 0;
	case 0x83:
		return operation == 7 || (i.mod == 3 && is_free(i.rm)) ? 3 + address : 0;
	case 0xc1: /* shifts */
		return i.mod == 3 && is_free(i.rm) ? 3 + address : 0;
	default:
		return 0;
	}
}

static size_t length_if_harmless(const unsigned char *at)
{
	if (memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0)
		return 4;
	if (at[0] == 0x25)
		return 5;
	if (at[0] == 0x64 && (at[1] & 0xf8) == 0x48) {
		const size_t length = length_with_rex(at + 1);

		return length != 0 ? 1 + length : 0;
	}
	return (at[0] & 0xf8) == 0x48 ? length_with_rex(at) : 0;
}

/* Changes up to two bits of the first five bytes. What is still passed over must be harmless. */
static void change_bits(size_t length)
{
	enum { BITS = 5 * 8 };
	unsigned char before[sizeof(code.bytes)];

	memcpy(before, code.bytes, sizeof(before));
	for (size_t one = 0; one < BITS; one++) {
		for (size_t two = one; two < BITS; two++) {
			memcpy(code.bytes, before, sizeof(before));
			code.bytes[one / 8] ^= (unsigned char)(1u << one % 8);
			if (two != one)
				code.bytes[two / 8] ^= (unsigned char)(1u << two % 8);
			if (length_of(code.bytes) != 0)
				ck_assert_uint_eq(length_of(code.bytes),
						  length_if_harmless(code.bytes));
		}
	}
	memcpy(code.bytes, before, sizeof(before));
	ck_assert_uint_eq(length_of(code.bytes), length);
}

#define EACH(list) (int)(sizeof(list) / sizeof((list)[0]))

START_TEST(what_the_kernel_does_itself_gets_the_breakpoint)
{
	begin();
	add(cheap[_i]);
	pad();
	ck_assert_uint_eq(chosen(), 0);
	begin();
	add("f3 0f 1e fa");
	add(cheap[_i]);
	pad();
	ck_assert_uint_eq(chosen(), 4);
}
END_TEST

START_TEST(harmless_instructions_are_passed_over)
{
	size_t length;

	begin();
	length = add(passed_over[_i]);
	add("55");
	pad();
	ck_assert_uint_eq(chosen(), length);
}
END_TEST

START_TEST(only_harmless_instructions_are_passed_over)
{
	size_t length;

	begin();
	length = add(passed_over[_i]);
	pad();
	ck_assert_uint_eq(length_if_harmless(code.bytes), length);
	change_bits(length);
}
END_TEST

START_TEST(several_are_passed_over)
{
	size_t length;

	begin();
	length = add(passed_over[_i]);
	for (int i = 0; i < 5; i++)
		length += add(passed_over[(_i + i) % EACH(passed_over)]);
	add("0f 84 00 01 00 00");
	pad();
	ck_assert_uint_eq(chosen(), length);
}
END_TEST

/* The first instruction is always a right place. */
START_TEST(any_other_instruction_is_not_passed_over)
{
	begin();
	add(others[_i]);
	add("55");
	pad();
	ck_assert_uint_eq(chosen(), 0);
	begin();
	add("48 85 ff");
	add(others[_i]);
	add("55");
	pad();
	ck_assert_uint_eq(chosen(), 0);
}
END_TEST

/* The first 16 are looked at. */
START_TEST(long_beginnings_are_not_searched)
{
	for (int count = 14; count <= 18; count++) {
		begin();
		for (int i = 0; i < count; i++)
			add("48 85 ff");
		add("55");
		pad();
		ck_assert_uint_eq(chosen(), count < 16 ? 3u * (unsigned)count : 0);
	}
}
END_TEST

START_TEST(nothing_beyond_the_code_is_read)
{
	begin();
	ck_assert_uint_eq(chosen(), 0);
	add("48 85 ff 55");
	ck_assert_uint_eq(chosen(), 0);
	add("90 90 90");
	ck_assert_uint_eq(chosen(), 0);
	add("90");
	ck_assert_uint_eq(chosen(), 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("attach entry");
	TCase *all = tcase_create("all");

	tcase_add_loop_test(all, what_the_kernel_does_itself_gets_the_breakpoint, 0, EACH(cheap));
	tcase_add_loop_test(all, harmless_instructions_are_passed_over, 0, EACH(passed_over));
	tcase_add_loop_test(all, only_harmless_instructions_are_passed_over, 0, EACH(passed_over));
	tcase_add_loop_test(all, several_are_passed_over, 0, EACH(passed_over));
	tcase_add_loop_test(all, any_other_instruction_is_not_passed_over, 0, EACH(others));
	tcase_add_test(all, long_beginnings_are_not_searched);
	tcase_add_test(all, nothing_beyond_the_code_is_read);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
