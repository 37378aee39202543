/* SPDX-License-Identifier: MIT
 *
 * The clocks, and short pauses. The program may have a library that changes what libc's functions
 * for that do: libfaketime makes a clock of another year, or a clock that runs a thousand times as
 * fast. The trace file then looked older than the run, and threads got no time to hold still. So
 * the kernel's functions are called directly, a clock's in the vDSO.
 */
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "elf/elf_layout.h"
#include "elf/symbols.h"
#include "kernel.h"
#include "recorder/system/system.h"

static int (*read_clock)(clockid_t clock, struct timespec *now);

/* The header of the vDSO is at the beginning of its lowest segment. */
void incstack__clock_find(void)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	const uintptr_t at = (uintptr_t)header;
	const ElfW(Phdr) * segments;
	struct incstack__elf_layout layout;
	struct incstack__elf_symbols symbols;
	const ElfW(Sym) *symbol = NULL;
	uintptr_t bias;

	if (!header)
		return;
	segments = (const ElfW(Phdr) *)(at + header->e_phoff);
	layout = incstack__elf_layout(0, segments, header->e_phnum);
	bias = at - layout.low;
	if (layout.dynamic != 0 &&
	    incstack__elf_symbols_read(&symbols, INCSTACK__ELF_WHOLE_MEMORY, bias,
				       (const void *)(bias + layout.dynamic)))
		symbol = incstack__elf_symbol(&symbols, "__vdso_clock_gettime");
	if (symbol)
		read_clock = (__typeof__(read_clock))(bias + symbol->st_value);
}

int incstack__clock(clockid_t clock, struct timespec *now)
{
	if (read_clock)
		return read_clock(clock, now);
	return (int)incstack__system_call(SYS_clock_gettime, clock, now);
}

void incstack__nap(long ns)
{
	const struct timespec pause = {.tv_nsec = ns};

	incstack__system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}
