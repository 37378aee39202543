/* SPDX-License-Identifier: MIT
 *
 * Checks whether a running process can be profiled, and prints why it cannot.
 */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"
#include "tool/proc.h"
#include "tool/record/record.h"

int tool_attach_refuse(pid_t pid, const char *verb, const char *reason)
{
	fprintf(stderr, "incstack: cannot %s process %d: %s\n", verb, (int)pid, reason);
	return TOOL_STATUS_CANNOT_RUN;
}

static bool is_kernel_thread(pid_t pid)
{
	enum { PF_KTHREAD = 0x00200000 };

	return (tool_proc_stat(pid, "stat", TOOL_PROC_FLAGS) & PF_KTHREAD) != 0;
}

/* Root may be refused, too: in a container, or by a security module. */
static const char *reason_of_read(int error)
{
	if (error != EACCES && error != EPERM)
		return "its program cannot be read";
	return geteuid() == 0 ? "this system forbids root to read its program"
			      : "it belongs to another user, or has rights that you lack; run "
				"incstack as that user or as root";
}

/* The program must have 64-bit code for this processor. */
static int check_program(pid_t pid)
{
	union {
		Elf64_Ehdr header;
		char bytes[sizeof(Elf64_Ehdr) + 1]; /* and a zero byte */
	} program;
	size_t bytes;

	errno = 0;
	bytes = tool_proc_read(pid, "exe", program.bytes, sizeof(program.bytes));
	if (bytes < sizeof(program.header))
		return tool_attach_refuse(pid, "profile", reason_of_read(errno));
	if (memcmp(program.header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    program.header.e_ident[EI_CLASS] != ELFCLASS64 || program.header.e_machine != EM_X86_64)
		return tool_attach_refuse(pid, "profile", "its program is not for x86-64");
	return 0;
}

static int check(pid_t pid)
{
	char status[4096];
	char reason[96];
	int group;

	if (tool_proc_read(pid, "status", status, sizeof(status)) == 0) {
		fprintf(stderr, "incstack: no process %d\n", (int)pid);
		return TOOL_STATUS_NOT_FOUND;
	}
	group = atoi(tool_proc_field(status, "\nTgid:"));
	if (group != pid) {
		snprintf(reason, sizeof(reason), "it is a thread of process %d; use -p %d", group,
			 group);
		return tool_attach_refuse(pid, "profile", reason);
	}
	if (tool_proc_has_ended(status))
		return tool_attach_refuse(pid, "profile", "it has ended");
	if (is_kernel_thread(pid))
		return tool_attach_refuse(pid, "profile", "it is a thread of the kernel");
	return check_program(pid);
}

/* The descriptor is opened first, so that it is that of the process that is checked. */
int tool_attach_process(pid_t pid, int *pidfd)
{
	int error;
	int status;

	*pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	error = errno;
	status = check(pid);
	if (status != 0 || *pidfd >= 0)
		return status;
	return tool_attach_refuse(pid, "profile",
				  error == ENOSYS ? "that needs Linux 5.3 or newer"
						  : strerror(error));
}
