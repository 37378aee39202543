/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 2000
 *
 * Interposed functions are called with a stack that is 8 bytes off, as some code does that was
 * written by hand or generated. libc bears that. A SIGSEGV in the recorder would take the program's
 * handler another way than in a bare run.
 */
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls function(first, second, third) with a stack that is 8 bytes off. */
extern "C" intptr_t call_off(void *function, intptr_t first, intptr_t second, intptr_t third);
__asm__(".text\n.globl call_off\n.type call_off, @function\ncall_off:\n\t.cfi_startproc\n\t"
	"mov %rdi, %rax\n\tmov %rsi, %rdi\n\tmov %rdx, %rsi\n\tmov %rcx, %rdx\n\t"
	"sub $16, %rsp\n\t.cfi_adjust_cfa_offset 16\n\tcall *%rax\n\t"
	"add $16, %rsp\n\t.cfi_adjust_cfa_offset -16\n\tret\n\t.cfi_endproc\n"
	".size call_off, . - call_off\n");

/* The same with the frame pointer of the caller in use. */
#define OFF(function, ...) off((void *)(function), __VA_ARGS__)
static __attribute__((noinline)) intptr_t off(void *function, intptr_t first, intptr_t second = 0,
					      intptr_t third = 0)
{
	intptr_t result = call_off(function, first, second, third);
	__asm__ volatile("" : "+r"(result));
	return result;
}

static volatile sig_atomic_t trapped;

static void trap(int)
{
	trapped = 1;
	_exit(9);
}

static void release(intptr_t block)
{
	OFF(free, block);
}

static int allocate(int round)
{
	const intptr_t bytes = 20 + round % 50;
	void *aligned = nullptr;
	intptr_t block = OFF(malloc, bytes);

	if (block == 0)
		return 1;
	block = OFF(realloc, block, bytes * 20);
	release(block);
	release(OFF(calloc, 3, bytes));
	release(OFF(reallocarray, 0, 3, bytes));
	release(OFF(aligned_alloc, 64, 128));
	release(OFF(memalign, 64, bytes));
	release(OFF(valloc, bytes));
	release(OFF(pvalloc, bytes));
	if (OFF(posix_memalign, (intptr_t)&aligned, 64, bytes) != 0)
		return 2;
	release((intptr_t)aligned);
	void *(*const make)(size_t) = operator new;
	void (*const end)(void *) = operator delete;
	OFF(end, OFF(make, bytes));
	return 0;
}

static int descriptors()
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (OFF(dup2, fd, fd + 5) != fd + 5 || OFF(dup3, fd, fd + 6, O_CLOEXEC) != fd + 6)
		return 20;
	if (OFF(close, fd + 5) != 0 || (int)OFF(close, fd + 5) != -1)
		return 21;
	if (OFF(close_range, fd + 6, fd + 6, 0) != 0)
		return 22;
	close(fd);
	return OFF(prctl, PR_SET_TSC, PR_TSC_ENABLE) != 0 || OFF(syscall, SYS_getpid) != getpid()
		       ? 23
		       : 0;
}

static int look_up()
{
	Dl_info info;

	return OFF(dladdr, (intptr_t)&descriptors, (intptr_t)&info) == 0 ? 30 : 0;
}

static jmp_buf place;
static volatile int jumps;

static int jump()
{
	if (setjmp(place) == 0)
		OFF(longjmp, (intptr_t)place, 1);
	if (sigsetjmp(place, 1) == 0)
		OFF(siglongjmp, (intptr_t)place, 1);
	jumps = jumps + 1;
	return 0;
}

int main()
{
	struct sigaction action = {};
	int error = 0;

	action.sa_handler = trap;
	sigaction(SIGSEGV, &action, nullptr);
	for (int i = 0; i < 300 && error == 0; i++)
		error = allocate(i);
	error = error != 0 ? error : descriptors();
	error = error != 0 ? error : look_up();
	for (int i = 0; i < 20 && error == 0; i++)
		error = jump();
	return error;
}
