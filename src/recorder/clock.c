/* SPDX-License-Identifier: MIT
 *
 * The clocks, and short pauses. The program may have a library that changes what libc's functions for
 * that do: libfaketime makes the clock of another year, or one that runs a thousand times as fast. The
 * trace file then looked older than the run, and threads got no time to hold still. So the kernel's
 * functions are called directly, a clock's in the vDSO.
 */
#define _GNU_SOURCE
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "base/elf_symbol.h"
#include "recorder.h"

static int (*read_clock)(clockid_t clock, struct timespec *now);

void incstack__clock_find(void)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Phdr) * segment;
	const ElfW(Dyn) *dynamic = NULL;
	uintptr_t bias = 0;
	struct incstack__elf_tables tables;
	const ElfW(Sym) *symbol = NULL;

	if (header == NULL)
		return;
	segment = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (segment[i].p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)((const char *)header + segment[i].p_offset);
		if (segment[i].p_type == PT_LOAD)
			bias = (uintptr_t)header + segment[i].p_offset - segment[i].p_vaddr;
	}
	if (incstack__elf_tables_read(bias, dynamic, &tables))
		symbol = incstack__elf_symbol(&tables, "__vdso_clock_gettime");
	if (symbol != NULL)
		read_clock = (__typeof__(read_clock))(bias + symbol->st_value);
}

int incstack__clock(clockid_t clock, struct timespec *now)
{
	if (read_clock != NULL)
		return read_clock(clock, now);
	return (int)incstack__system_call(SYS_clock_gettime, clock, now);
}

void incstack__nap(long ns)
{
	const struct timespec pause = {.tv_nsec = ns};

	incstack__system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}
