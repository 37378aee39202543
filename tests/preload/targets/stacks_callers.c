/* SPDX-License-Identifier: MIT
 *
 * Calls dlopen, dlsym and similar functions by tail calls. They search on behalf of their caller,
 * which they identify by the return address of the function that jumped to them. Only the
 * program's own RUNPATH leads to the library.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

extern const char __executable_start[], etext[]; /* of the linker */

static int depth;

static __attribute__((noinline)) void deep(int level)
{
	void *volatile block = level == 0 ? malloc(32) : NULL;

	if (level > 0)
		deep(level - 1);
	free(block);
}

__attribute__((used)) void work(void)
{
	for (int i = 0; i < 9; i++)
		deep(depth);
}

/* Functions that work, and end with a jump to the other one. */
#define WORK_THEN(name, target) \
	__asm__(".text\n.type " #name ", @function\n.globl " #name "\n" #name ":\n" \
		"\t.cfi_startproc\n\tpushq %rdi\n\t.cfi_adjust_cfa_offset 8\n" \
		"\tpushq %rsi\n\t.cfi_adjust_cfa_offset 8\n" \
		"\tpushq %rdx\n\t.cfi_adjust_cfa_offset 8\n\tcall work\n" \
		"\tpopq %rdx\n\t.cfi_adjust_cfa_offset -8\n" \
		"\tpopq %rsi\n\t.cfi_adjust_cfa_offset -8\n" \
		"\tpopq %rdi\n\t.cfi_adjust_cfa_offset -8\n\tjmp " #target "@PLT\n" \
		"\t.cfi_endproc\n\t.size " #name ", . - " #name "\n")
void *work_then_dlopen(const char *name, int flags);
void *work_then_dlmopen(Lmid_t list, const char *name, int flags);
void *work_then_dlsym(void *handle, const char *name);
void *work_then_dlvsym(void *handle, const char *name, const char *version);
void *work_then_answer(void);
WORK_THEN(work_then_dlopen, dlopen);
WORK_THEN(work_then_dlmopen, dlmopen);
WORK_THEN(work_then_dlsym, dlsym);
WORK_THEN(work_then_dlvsym, dlvsym);
WORK_THEN(work_then_answer, who_called);

/* The object that its caller is in. */
__attribute__((used, noinline)) void *who_called(void)
{
	Dl_info info;

	return dladdr(__builtin_return_address(0), &info) != 0 ? info.dli_fbase : NULL;
}

static int loaded(void *library)
{
	return library != NULL && dlclose(library) == 0;
}

static int nothing(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	(void)data;
	return 0;
}

/* As the program's own unwinder would: it asks for what is loaded, then reads the stack. */
static __attribute__((noinline)) int reads_the_stack(void)
{
	uintptr_t caller;

	work();
	dl_iterate_phdr(nothing, NULL);
	caller = (uintptr_t)__builtin_return_address(0);
	return caller >= (uintptr_t)__executable_start && caller < (uintptr_t)etext;
}

static int round_trip(const void *self)
{
	if (!loaded(work_then_dlopen("stacks_throwing.so", RTLD_NOW)))
		return 2;
	if (!loaded(work_then_dlmopen(LM_ID_BASE, "stacks_throwing.so", RTLD_NOW)))
		return 3;
	if (work_then_dlsym(RTLD_NEXT, "getpid") == NULL)
		return 4;
	if (work_then_dlsym(RTLD_DEFAULT, "getpid") == NULL)
		return 5;
	if (work_then_dlvsym(RTLD_NEXT, "getpid", "GLIBC_2.2.5") == NULL)
		return 6;
	if (work_then_dlsym(RTLD_NEXT, "no_such_function") != NULL || dlerror() == NULL)
		return 7;
	if (!reads_the_stack())
		return 9;
	return work_then_answer() == self && dlerror() == NULL ? 0 : 8;
}

int main(void)
{
	Dl_info self;

	if (dlerror() != NULL || dladdr((void *)work, &self) == 0)
		return 1;
	for (depth = 0; depth < 12; depth++) {
		int failed = round_trip(self.dli_fbase);

		if (failed != 0)
			return failed;
	}
	return 0;
}
