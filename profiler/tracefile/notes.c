/* SPDX-License-Identifier: MIT
 *
 * The texts of the notes, as the report prints them.
 */
#include "notes.h"

#include <stddef.h>

static const char *const texts[INCSTACK__NOTE_COUNT] = {
	[INCSTACK__NOTE_FILE_CLOSED] =
		"the program closed the trace file, and it could not be opened again, because it "
		"was removed or may no longer be opened; recording stopped there",
	[INCSTACK__NOTE_FILE_FULL] = "the disk is full; recording stopped there",
	[INCSTACK__NOTE_FILE_LIMIT] =
		"the trace file reached the program's limit on file sizes (ulimit -f); recording "
		"stopped there",
	[INCSTACK__NOTE_NO_MEMORY] =
		"the recorder got no memory (ulimit -v?); some traces were refused and are counted "
		"as lost",
	[INCSTACK__NOTE_NO_SHARED_MEMORY] =
		"memory that outlives the process, in a file beside the trace file, could not be "
		"had or enlarged; if the process was killed, what it had not written is lost",
	[INCSTACK__NOTE_SECCOMP] =
		"the program entered a sandbox (seccomp) that forbids system calls of the "
		"recorder; recording stopped there",
	[INCSTACK__NOTE_NO_TSC] =
		"the program forbade the time-stamp counter; events were ordered by a counter",
	[INCSTACK__NOTE_FOREIGN_UNWINDER] =
		"the program or a library has an unwinder of its own, linked statically, whose "
		"exceptions cannot pass changed return addresses; mode validate from there on",
	[INCSTACK__NOTE_STACK_COPIED] =
		"the program has a runtime that copies stacks; mode validate from there on",
	[INCSTACK__NOTE_MANY_STALE] =
		"frames that had vanished came back (does the program copy stacks?); mode validate "
		"from there on",
	[INCSTACK__NOTE_STACK_MAPS] =
		"the program's garbage collector reads return addresses; mode validate",
	[INCSTACK__NOTE_SHADOW_STACK] =
		"the hardware guards return addresses (shadow stack); mode validate",
	[INCSTACK__NOTE_MANY_CONTEXTS] =
		"the program has more contexts (swapcontext) than the recorder keeps; the stacks "
		"of the others were walked fully",
	[INCSTACK__NOTE_THREAD_BUSY] =
		"a thread could not be stopped when the process ended; callers of its newest "
		"traces may be unknown",
	[INCSTACK__NOTE_UNLOADED] =
		"code was unloaded without notice; callers of its newest frames may be unknown",
	[INCSTACK__NOTE_MODULES] =
		"the list of loaded modules could not be kept (no memory?); some names are missing",
	[INCSTACK__NOTE_OWN_MALLOC] =
		"the program itself defines malloc; what it allocates with it is not recorded",
	[INCSTACK__NOTE_OWN_NEW] =
		"the program itself defines operator new; only what it takes from malloc is "
		"recorded",
	[INCSTACK__NOTE_NOT_STARTED] =
		"the recorder got no memory to start (ulimit -v?); nothing was recorded",
	[INCSTACK__NOTE_UNRECORDED] =
		"a child, or a program that was executed, could not be recorded: its trace file "
		"could not be made",
	[INCSTACK__NOTE_UNKNOWN_STACKS] =
		"the program also runs on stacks with unknown bounds, for example signal stacks, "
		"coroutines that it switches by itself, or its first stack if there is no /proc "
		"(chroot); these were walked fully",
	[INCSTACK__NOTE_NO_TIMER] =
		"a thread could not have a timer (ulimit -i counts them) or memory for its samples "
		"(ulimit -v); its time is missing",
	[INCSTACK__NOTE_ATTACHED] =
		"recorded from outside (-p): what was allocated before is not known, and "
		"\"at exit\" means at the end of the recording",
	[INCSTACK__NOTE_NEW_NOT_FOLLOWED] =
		"the program's operator new does not call malloc; its blocks are counted, but "
		"never as live",
	[INCSTACK__NOTE_WALL] =
		"wall-clock time: waiting threads count as much as running ones; child processes "
		"were not sampled",
	[INCSTACK__NOTE_WALL_CALLS] =
		"wall-clock time, measured around the calls of libc's functions that wait: waits "
		"in "
		"other system calls, for a page and for a processor are missing",
	[INCSTACK__NOTE_OUTSIDE] =
		"sampled from outside (-p): what the process did before and after is not known",
	[INCSTACK__NOTE_SPECIAL_ALLOCATOR] =
		"functions that only some allocators have (mallocx, mi_malloc, tc_malloc...) are "
		"called; their blocks are not recorded, and recorded ones that they free count as "
		"live",
	[INCSTACK__NOTE_FILE_QUOTA] =
		"the trace file reached a disk quota; recording stopped there",
	[INCSTACK__NOTE_FILE_ERROR] =
		"the trace file could not be written (an error of the file system); recording "
		"stopped there",
	[INCSTACK__NOTE_NO_DESCRIPTOR] =
		"the program took the trace file's descriptor and left none free (ulimit -n); "
		"recording stopped there",
	[INCSTACK__NOTE_SMALL_STACK] =
		"a stack was nearly used up or is smaller than 6 KiB, so no batch could be written "
		"there; what came then was dropped",
	[INCSTACK__NOTE_NO_LIBUNWIND] =
		"--crosscheck needs libunwind-x86_64.so.8, which could not be loaded; nothing was "
		"recorded",
	[INCSTACK__NOTE_NO_RECORDER] =
		"a program that was executed could not load the recorder (no memory: ulimit -v?) "
		"and was not recorded",
	[INCSTACK__NOTE_NEXT_UNRECORDED] =
		"the program that was executed last was not recorded: it is static, set-uid or of "
		"another libc, or LD_PRELOAD was taken from its environment, or it ended before "
		"its recording began",
	[INCSTACK__NOTE_UNRECORDED_FULL] =
		"a child, or a program that was executed, could not be recorded: the disk is full "
		"or a quota was reached",
	[INCSTACK__NOTE_UNRECORDED_LIMIT] =
		"a child, or a program that was executed, could not be recorded: its limit on file "
		"sizes (ulimit -f) is less than a trace file needs",
	[INCSTACK__NOTE_UNRECORDED_RIGHTS] =
		"a child, or a program that was executed, could not be recorded: it may not write "
		"where the trace file is",
	[INCSTACK__NOTE_UNRECORDED_MEMORY] =
		"a child, or a program that was executed, could not be recorded: there was no "
		"memory (ulimit -v?)",
	[INCSTACK__NOTE_UNRECORDED_OPEN] =
		"a child, or a program that was executed, could not be recorded: it had no free "
		"descriptor (ulimit -n)",
	[INCSTACK__NOTE_AUDITED] =
		"LD_AUDIT is set; if the audit library watches calls, they pass through a function "
		"of the dynamic linker whose callers are unknown to the recorder",
	[INCSTACK__NOTE_ALL_BY_MALLOC] =
		"an interpreter was told to take every object from malloc (PYTHONMALLOC, "
		"USE_ZEND_ALLOC)",
	[INCSTACK__NOTE_NO_MOMENT] =
		"which memory was resident is not known: the program has no /proc, no memory "
		"(ulimit -v?), or no room in its file (ulimit -f)",
	[INCSTACK__NOTE_BROKEN] =
		"an invariant of the recorder was broken, which is an error in incstack: please "
		"report it",
	[INCSTACK__NOTE_EVENTS_FORBIDDEN] =
		"the kernel permits no events here (sysctl kernel.perf_event_paranoid above 2, or "
		"a "
		"container's seccomp filter), so timers ticked, as often as the kernel's clock; "
		"sysctl kernel.perf_event_paranoid=1 permits them",
	[INCSTACK__NOTE_EVENTS_MISSING] =
		"this kernel has no events that can trap a thread safely (Linux 6.1 has them), so "
		"timers ticked, as often as the kernel's clock",
	[INCSTACK__NOTE_EVENTS_UNSAFE] =
		"the program is debugged, ignores SIGTRAP, or is a Go program, which events might "
		"disturb, so timers ticked, as often as the kernel's clock",
	[INCSTACK__NOTE_EVENTS_GIVEN_UP] =
		"the program uses SIGTRAP itself, so timers ticked from there on, as often as the "
		"kernel's clock",
	[INCSTACK__NOTE_EVENTS_RESTRICTED] =
		"the program loaded a seccomp filter, so timers ticked from there on, as often as "
		"the kernel's clock",
	[INCSTACK__NOTE_EVENTS_FEW] =
		"some threads could have no event of the kernel (ulimit -n, ulimit -l, or sysctl "
		"kernel.perf_event_mlock_kb), so their timers ticked, as often as the kernel's "
		"clock",
	[INCSTACK__NOTE_EVENTS_OF_USER] =
		"the kernel's events may not see time in the kernel (they may as root or with "
		"sysctl kernel.perf_event_paranoid=1, and Linux 6.15), so timers sampled it, as "
		"often as the kernel's clock",
};

const char *incstack__tracefile_note_text(unsigned note)
{
	return note < INCSTACK__NOTE_COUNT ? texts[note] : NULL;
}
