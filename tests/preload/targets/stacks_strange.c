/* SPDX-License-Identifier: MIT
 *
 * incstack heap walks fully
 * incstack heap says: the program also runs on stacks with unknown bounds
 *
 * A coroutine like those of small libraries: its stack is filled with a pattern, the address of an
 * exit function lies below the entry's, and registers are popped from the pattern. In the text,
 * right before the exit function, ends a function whose rule uses the frame pointer and so leads
 * into the pattern. The program allocates there, and on a stack that comes and goes, behind which
 * nothing is mapped.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 64 << 10, ROUNDS = 40 };

void switch_to(void **save, void *to);
extern const char coroutine_exit[];
__asm__(".text\n.globl switch_to\nswitch_to:\n\t.cfi_startproc\n\t"
	"push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
	"mov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n\t"
	".cfi_endproc\n"
	"fatal:\n\t.cfi_startproc\n\t.cfi_def_cfa rbp, 16\n\t.cfi_offset rbp, -16\n\t"
	"call switch_to\n\t.cfi_endproc\n"
	".globl coroutine_exit\ncoroutine_exit:\n\tud2\n");

static void *main_sp, *coroutine_sp;
static void *volatile keep;

static __attribute__((noinline)) void allocate(int depth)
{
	volatile char some[300];

	some[0] = 0;
	if (depth > 0)
		allocate(depth - 1);
	keep = malloc(100 + (size_t)some[0]);
	free(keep);
}

static void entry(void)
{
	for (int i = 0;; i++) {
		allocate(3 * i);
		switch_to(&coroutine_sp, main_sp);
	}
}

static void run(int paint)
{
	char *memory =
		mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t *sp = (uintptr_t *)(memory + BYTES) - 2;

	if (memory == MAP_FAILED || munmap(memory + BYTES, BYTES) != 0)
		exit(1);
	memset(memory, paint, BYTES);
	*--sp = (uintptr_t)coroutine_exit;
	*--sp = (uintptr_t)entry;
	coroutine_sp = sp - 6;
	for (int i = 0; i < 3; i++)
		switch_to(&main_sp, coroutine_sp);
	munmap(memory, BYTES);
}

int main(void)
{
	static const int paints[] = {0xa5, 0x00, 0xff, 0x7f};

	for (int i = 0; i < ROUNDS; i++)
		run(paints[i % 4]);
	return 0;
}
