/* SPDX-License-Identifier: MIT
 *
 * Checks whether a process survives the return of a probed function. A sandbox may end it: since Linux 6.11 the
 * code to which it returns makes a system call, and before 6.14 a sandbox ended the process for it. A
 * child of the tool is tested.
 */
#include <fcntl.h>
#include <link.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes.h"
#include "sandbox.h"
#include "tool/attach/process/process.h"
#include "tool/proc.h"

enum { TIMES = 20 }; /* the kernel may change a breakpoint after some hits */

/* Newer kernels replace its first instruction by a call of their own. */
__attribute__((noinline)) static void victim(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00" ::: "memory");
}

struct place {
	uintptr_t address;
	uint64_t offset;
};

/* Finds where the address is in the file of the tool, which is the first object. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *context)
{
	struct place *place = context;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uintptr_t at = place->address - info->dlpi_addr - segment->p_vaddr;

		if (segment->p_type == PT_LOAD && at < segment->p_filesz)
			place->offset = at + segment->p_offset;
	}
	(void)size;
	return 1;
}

/* In this sandbox only read, write and exit are allowed. */
__attribute__((noreturn)) static void run(int from)
{
	char word;

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0 || read(from, &word, 1) != 1)
		syscall(SYS_exit, 1);
	for (int i = 0; i < TIMES; i++)
		victim();
	for (;;)
		syscall(SYS_exit, 0);
}

static bool try_return(pid_t child, int to)
{
	struct place place = {.address = (uintptr_t)victim};
	int status = 1;
	int probe;

	dl_iterate_phdr(find_offset, &place);
	probe = tool_attach_probe_event(child, "/proc/self/exe", place.offset, true);
	if (probe < 0 || write(to, "", 1) != 1)
		kill(child, SIGKILL);
	if (waitpid(child, &status, 0) != child)
		status = 1;
	if (probe >= 0)
		close(probe);
	return probe < 0 || status == 0; /* without a probe; its own error is reported later */
}

/* Whether this kernel lets a process in a sandbox (seccomp) return through a probe. */
static bool is_safe(void)
{
	int pipe_of[2];
	bool survived = false;
	pid_t child;

	if (pipe2(pipe_of, O_CLOEXEC) != 0)
		return false;
	child = fork();
	if (child == 0)
		run(pipe_of[0]);
	if (child > 0)
		survived = try_return(child, pipe_of[1]);
	close(pipe_of[0]);
	close(pipe_of[1]);
	return survived;
}

int tool_attach_process_may_return(pid_t pid)
{
	char status[4096];

	tool_proc_read(pid, "status", status, sizeof(status));
	if (strstr(tool_proc_field(status, "\nx86_Thread_features:"), "shstk"))
		return tool_attach_refuse(
			pid, "profile",
			"its return addresses are guarded by the hardware (shadow stack)");
	if (!is_safe())
		return tool_attach_refuse(
			pid, "profile",
			"on this kernel a probed function ends a process that is in a "
			"sandbox (seccomp); use Linux 6.14 or newer, or before 6.11");
	return 0;
}
