/* SPDX-License-Identifier: MIT
 *
 * incstack heap preload: locks_calls.so
 * incstack heap options: --follow-children
 * incstack heap traces: 3000
 * incstack heap is not checked
 * incstack cpu walkers: no
 *
 * A library stands in for the functions that call the kernel. No walker checks
 * the traces: libunwind, too, calls these functions, and would wait for the library's lock.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "locked.h"

static void use_memory(void)
{
	const size_t page = 4096;
	char *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, page, MADV_DONTNEED) != 0 ||
	    mprotect(memory, page, PROT_READ) != 0)
		abort();
	memory = mremap(memory, page, 2 * page, MREMAP_MAYMOVE);
	if (memory == MAP_FAILED || munmap(memory, 2 * page) != 0)
		abort();
}

static void use_functions(void)
{
	struct rlimit limit;
	stack_t signals;

	if (getpid() != syscall(SYS_getpid) || gettid() != syscall(SYS_gettid) ||
	    getrlimit(RLIMIT_NOFILE, &limit) != 0 || sigaltstack(NULL, &signals) != 0)
		abort();
	use_memory();
}
