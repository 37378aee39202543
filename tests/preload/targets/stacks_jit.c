/* SPDX-License-Identifier: MIT
 *
 * incstack heap says: frames are unknown
 *
 * Code made at run time without unwind rules. Traces through it are truncated; those before and
 * after are complete. Its VM finds this code on the stack by the return addresses that lead into
 * it, so these are not changed.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nest.h"

typedef void code(void (*callee)(void));

static code *jitted;

/* sub $40, %rsp; call *%rdi; add $40, %rsp; ret: no frame pointer to guess by. */
static const unsigned char bytes[] = {0x48, 0x83, 0xec, 40, 0xff, 0xd7, 0x48, 0x83, 0xc4, 40, 0xc3};

static void deeper(void)
{
	nest(3, allocate);
}

/* Whether the function that a call in the code has led to would return there. */
static void look(const uintptr_t *frame)
{
	if (((const volatile uintptr_t *)frame)[1] - (uintptr_t)jitted >= sizeof(bytes))
		abort();
}

/* After everything that was recorded so far is completed, down to the code: what a dlclose does. */
static void allocate_and_write(void)
{
	allocate();
	dlclose(dlopen(NULL, RTLD_NOW));
}

__attribute__((noinline)) static void runtime_call(void)
{
	const uintptr_t *const frame = __builtin_frame_address(0);

	for (int level = 0; level < 12; level++) {
		nest(level, allocate);
		look(frame);
		nest(level, allocate_and_write);
		look(frame);
	}
}

static void through(void)
{
	allocate();
	jitted(deeper);
	allocate();
	jitted(allocate);
	jitted(runtime_call);
}

int main(void)
{
	for (int round = 0; round < 200; round++) {
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			return 1;
		memcpy(page, bytes, sizeof(bytes));
		memcpy(&jitted, &page, sizeof(page));
		nest(round % 12, allocate);
		nest(round % 7, through);
		nest(9, allocate);
		munmap(page, 4096);
	}
	return 0;
}
