/* SPDX-License-Identifier: MIT
 *
 * Notes: what the recorder could not do, or did differently than requested, and why. Each is one
 * bit in the counters area of the trace file. It is set while the process runs, so it survives
 * whatever ends the process. The report prints one line for each.
 */
#ifndef INCSTACK_TRACEFILE_NOTES_H
#define INCSTACK_TRACEFILE_NOTES_H

#include <stdint.h>

enum incstack__tracefile_note {
	INCSTACK__NOTE_FILE_CLOSED,       /* the program closed the trace file; it is gone */
	INCSTACK__NOTE_FILE_FULL,         /* the disk is full */
	INCSTACK__NOTE_FILE_LIMIT,        /* RLIMIT_FSIZE */
	INCSTACK__NOTE_NO_MEMORY,         /* the recorder's own memory, for example RLIMIT_AS */
	INCSTACK__NOTE_NO_SHARED_MEMORY,  /* what a killed process had not written is lost */
	INCSTACK__NOTE_SECCOMP,           /* the program forbade system calls that we need */
	INCSTACK__NOTE_NO_TSC,            /* the program forbade the time-stamp counter */
	INCSTACK__NOTE_FOREIGN_UNWINDER,  /* mode validate from there on */
	INCSTACK__NOTE_STACK_COPIED,      /* a runtime that copies stacks: validate */
	INCSTACK__NOTE_MANY_STALE,        /* frames came back that had vanished: validate */
	INCSTACK__NOTE_STACK_MAPS,        /* a collector reads return addresses: validate */
	INCSTACK__NOTE_SHADOW_STACK,      /* the hardware guards return addresses: validate */
	INCSTACK__NOTE_MANY_CONTEXTS,     /* some were walked fully */
	INCSTACK__NOTE_THREAD_BUSY,       /* a thread could not be stopped at the end */
	INCSTACK__NOTE_UNLOADED,          /* code was unloaded without notice */
	INCSTACK__NOTE_MODULES,           /* a list of modules could not be made */
	INCSTACK__NOTE_OWN_MALLOC,        /* the program defines malloc: its calls are not seen */
	INCSTACK__NOTE_OWN_NEW,           /* the program defines operator new */
	INCSTACK__NOTE_NOT_STARTED,       /* the file is there, but nothing was recorded */
	INCSTACK__NOTE_UNRECORDED,        /* a child or the next program has no file */
	INCSTACK__NOTE_UNKNOWN_STACKS,    /* walked fully */
	INCSTACK__NOTE_BROKEN,            /* a debug build found an invariant broken */
	INCSTACK__NOTE_NO_TIMER,          /* a thread could not have a timer */
	INCSTACK__NOTE_ATTACHED,          /* the process ran before and after */
	INCSTACK__NOTE_NEW_NOT_FOLLOWED,  /* operator new does not call malloc */
	INCSTACK__NOTE_WALL,              /* time in which threads wait was also sampled */
	INCSTACK__NOTE_OUTSIDE,           /* CPU: the process ran before and after */
	INCSTACK__NOTE_SPECIAL_ALLOCATOR, /* functions that only its allocator has are not seen */
	INCSTACK__NOTE_FILE_QUOTA,        /* the trace file reached a quota */
	INCSTACK__NOTE_FILE_ERROR,        /* it could not be written for another reason */
	INCSTACK__NOTE_NO_DESCRIPTOR,     /* no descriptor was free to open the trace file again */
	INCSTACK__NOTE_SMALL_STACK,       /* a stack had too little room to write a batch */
	INCSTACK__NOTE_NO_LIBUNWIND,      /* --crosscheck cannot work: nothing was recorded */
	INCSTACK__NOTE_NO_RECORDER,       /* the next program could not load the recorder */
	INCSTACK__NOTE_NEXT_UNRECORDED,   /* the next program never tried to */
	INCSTACK__NOTE_UNRECORDED_FULL,   /* as UNRECORDED: disk full, or a quota */
	INCSTACK__NOTE_UNRECORDED_LIMIT,  /* RLIMIT_FSIZE */
	INCSTACK__NOTE_UNRECORDED_RIGHTS, /* the directory may not be written */
	INCSTACK__NOTE_UNRECORDED_MEMORY, /* no memory to begin */
	INCSTACK__NOTE_UNRECORDED_OPEN,   /* no descriptor was free */
	INCSTACK__NOTE_AUDITED,           /* LD_AUDIT: callers may be unknown */
	INCSTACK__NOTE_ALL_BY_MALLOC,     /* an interpreter takes all its objects from malloc */
	INCSTACK__NOTE_EVENTS_FORBIDDEN,  /* CPU: the kernel permits no events: timers */
	INCSTACK__NOTE_EVENTS_MISSING,    /* CPU: the kernel has no events that are safe: timers */
	INCSTACK__NOTE_EVENTS_UNSAFE,     /* CPU: the program may use SIGTRAP: timers */
	INCSTACK__NOTE_EVENTS_GIVEN_UP, /* CPU: the program began to use it: timers from there on */
	INCSTACK__NOTE_EVENTS_RESTRICTED, /* CPU: it loaded a seccomp filter: timers from there on */
	INCSTACK__NOTE_EVENTS_FEW,        /* CPU: some threads could have no event */
	INCSTACK__NOTE_EVENTS_OF_USER,    /* CPU: events see no time in the kernel */
	INCSTACK__NOTE_NO_MOMENT,         /* the pages could not be looked at, or written */
	INCSTACK__NOTE_WALL_CALLS,        /* also the waits in calls of libc's functions */
	INCSTACK__NOTE_COUNT,
};

/* Returns the line for the report, or null for a bit that this version does not know. */
const char *incstack__tracefile_note_text(unsigned note);

#endif
