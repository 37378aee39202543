/* SPDX-License-Identifier: MIT
 *
 * Preloaded by a test: from the FAIL_FROMth allocation on that code of the agent makes, every
 * FAIL_EVERYth fails. Those of the JVM succeed.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

static atomic_uintptr_t low, high; /* the agent, once it was seen */
static atomic_long calls;
static long from, every;

__attribute__((constructor)) static void read_environment(void)
{
	from = atol(getenv("FAIL_FROM"));
	every = atol(getenv("FAIL_EVERY"));
}

static uintptr_t end_of(uintptr_t base)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)base;
	const ElfW(Phdr) *parts = (const ElfW(Phdr) *)(base + header->e_phoff);
	uintptr_t end = base;

	for (int i = 0; i < header->e_phnum; i++)
		if (parts[i].p_type == PT_LOAD && base + parts[i].p_vaddr + parts[i].p_memsz > end)
			end = base + parts[i].p_vaddr + parts[i].p_memsz;
	return end;
}

static int is_agent(uintptr_t caller)
{
	Dl_info info;

	if (low)
		return caller >= low && caller < high;
	if (!dladdr((void *)caller, &info) || !info.dli_fname ||
	    !strstr(info.dli_fname, "libincstack-java"))
		return 0;
	high = end_of((uintptr_t)info.dli_fbase);
	low = (uintptr_t)info.dli_fbase;
	return 1;
}

static int fails(const void *caller)
{
	return is_agent((uintptr_t)caller) && ++calls >= from && calls % every == 0;
}

void *malloc(size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}
