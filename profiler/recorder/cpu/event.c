/* SPDX-License-Identifier: MIT
 *
 * Events of the kernel that make their thread trap whenever the thread has used CPU time for an
 * interval. The kernel raises the trap when the thread returns to the program's code. So no system call
 * is interrupted, and no queue of signals can be full. At most one trap is pending (D134).
 *
 * An event ends with the last reference to its file. A page of memory to which the file is mapped is
 * one, so the descriptor is closed at once. A child of fork does not inherit the page, an exec unmaps it.
 */
#include <elf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

#include "recorder/cpu/ticks.h"
#include "recorder/recording/recording.h"
#include "recorder/system/kernel.h"
#include "recorder/system/signal.h"
#include "recorder/system/system.h"

enum { PAGE = 4096 };

/* Versions of Linux. Before the first, a trap that a thread blocks ends the process. From the second on,
 * a trap in the kernel waits until the system call ends, and an event can be closed meanwhile. Before it,
 * only events that tick in the program's code alone are safe: their traps never wait. */
enum { BLOCKED_TRAPS = 6 << 8 | 1, TRAPS_IN_KERNEL = 6 << 8 | 15 };

static bool ticks_in_kernel; /* whether an event may, as far as the version goes */

static int open_event(bool sees_kernel)
{
	struct perf_event_attr event;

	memset(&event, 0, sizeof(event));
	event.size = sizeof(event);
	event.type = PERF_TYPE_SOFTWARE;
	event.config = PERF_COUNT_SW_CPU_CLOCK;
	event.sample_period =
		sees_kernel ? incstack__recording.interval : incstack__event_period_of_user();
	event.exclude_kernel = !sees_kernel;
	event.exclude_hv = 1;
	event.sigtrap = 1;
	event.remove_on_exec = 1;
	event.sig_data = incstack__trap_mark();
	return (int)incstack__kernel_call(SYS_perf_event_open, &event, 0, -1, -1,
					  PERF_FLAG_FD_CLOEXEC);
}

uint64_t incstack__event_period_of_user(void)
{
	return incstack__recording.interval / 2;
}

/* The process may have changed its user since the recording began. */
void *incstack__event_open(bool *sees_kernel)
{
	void *page;
	int fd = ticks_in_kernel ? open_event(true) : -1;

	*sees_kernel = fd >= 0;
	if (fd < 0)
		fd = open_event(false);
	if (fd < 0)
		return NULL;
	page = incstack__kernel_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	incstack__kernel_close(fd);
	return page == MAP_FAILED ? NULL : page;
}

/* A child of vfork shares the memory, but the page belongs to the parent's event. */
void incstack__event_close(void *event)
{
	if (event && incstack__kernel_getpid() == incstack__recording.pid)
		incstack__kernel_munmap(event, PAGE);
}

/* Returns the version that the text begins with, as the constants above have it; 0: there is none. */
static int version_in(const char *text)
{
	char *end;
	const long major = strtol(text, &end, 10);

	return *end == '.' ? (int)(major << 8) + atoi(end + 1) : 0;
}

static int version_of_kernel(void)
{
	struct utsname name;

	return incstack__kernel_call(SYS_uname, &name) == 0 ? version_in(name.release) : 0;
}

static bool is_traced(void)
{
	static const char head[] = "\nTracerPid:\t";
	char text[4096];
	const char *at;

	incstack__record_read_small("/proc/self/status", text, sizeof(text));
	at = strstr(text, head);
	return at && atoi(at + sizeof(head) - 1) != 0;
}

/* Whether the segment has a note of the Go linker. */
static bool has_go_note(const char *at, size_t bytes)
{
	while (bytes >= sizeof(Elf64_Nhdr) + 4) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
		const size_t size = sizeof(*note) + (((size_t)note->n_namesz + 3) & ~(size_t)3) +
				    (((size_t)note->n_descsz + 3) & ~(size_t)3);

		if (note->n_namesz == 4 && memcmp(note + 1, "Go", 3) == 0)
			return true;
		if (size > bytes)
			break;
		at += size;
		bytes -= size;
	}
	return false;
}

/* Go's runtime takes all signals by the system call, which the stub cannot see. */
static bool is_go(void)
{
	const Elf64_Phdr *segments = (const Elf64_Phdr *)getauxval(AT_PHDR);
	const size_t count = segments ? getauxval(AT_PHNUM) : 0;
	uintptr_t bias = 0;

	for (size_t i = 0; i < count; i++)
		if (segments[i].p_type == PT_PHDR)
			bias = (uintptr_t)segments - segments[i].p_vaddr;
	for (size_t i = 0; i < count; i++)
		if (segments[i].p_type == PT_NOTE &&
		    has_go_note((const char *)(bias + segments[i].p_vaddr), segments[i].p_memsz))
			return true;
	return false;
}

/* Whether the program may meet a trap of ours. An ignored SIGTRAP is inherited by the programs that this one
 * executes, which a handler of ours would change. */
static bool might_disturb(void)
{
	struct incstack__signal_action there;

	return incstack__signal_action(SIGTRAP, NULL, &there) != 0 ||
	       (uintptr_t)there.handler != (uintptr_t)SIG_DFL || is_traced() || is_go();
}

static enum incstack__tracefile_note reason_of(int error)
{
	return error == EPERM || error == EACCES ? INCSTACK__NOTE_EVENTS_FORBIDDEN
						 : INCSTACK__NOTE_EVENTS_MISSING;
}

bool incstack__events_permitted(bool wanted, enum incstack__tracefile_note *why)
{
	const int version = version_of_kernel();
	bool sees_kernel;
	void *event;

	*why = INCSTACK__NOTE_EVENTS_MISSING;
	if (version < BLOCKED_TRAPS)
		return false;
	*why = INCSTACK__NOTE_EVENTS_UNSAFE;
	if (!wanted && might_disturb())
		return false;
	ticks_in_kernel = version >= TRAPS_IN_KERNEL;
	event = incstack__event_open(&sees_kernel);
	if (!event)
		*why = reason_of(errno);
	incstack__event_close(event);
	return event != NULL;
}
