/* SPDX-License-Identifier: MIT
 *
 * What the preloaded stub and the recorder behind it say to each other. The stub
 * is in the target's global scope and therefore links nothing but libc; the
 * recorder carries libunwind and is opened with RTLD_LOCAL, so that the target
 * never binds a name to it.
 */
#ifndef INCSTACK_PRELOAD_H
#define INCSTACK_PRELOAD_H

#include <stddef.h>
#include <stdint.h>

#define INCSTACK__RECORDER_FILE "libincstack_recorder.so"
#define INCSTACK__RECORDER_SYMBOL "incstack__recorder_start"
#define INCSTACK__HEAP_VARIABLE "INCSTACK_HEAP"

/* The frame that called an interposed function; small enough for two registers. */
struct incstack__caller {
	const uintptr_t *slot; /* where its return address is; may hold a thunk */
	uintptr_t fp;          /* its frame pointer register */
};

enum incstack__unload {
	INCSTACK__UNLOAD_BEGINS,    /* dlclose is about to be called */
	INCSTACK__UNLOAD_ENDED,     /* it has returned */
	INCSTACK__UNLOAD_ANNOUNCED, /* the module runs its last destructor */
};

/* What a program is about to forbid itself. */
enum incstack__forbidden {
	INCSTACK__FORBIDDEN_ALL_CALLS,  /* nearly all system calls: seccomp's strict mode */
	INCSTACK__FORBIDDEN_SOME_CALLS, /* those that a seccomp filter says */
	INCSTACK__FORBIDDEN_CLOCK,      /* the time-stamp counter */
};

struct incstack__recorder {
	/* After the block came, before it goes; it is not null. Both leave errno alone. */
	void (*on_alloc)(const void *block, size_t bytes, struct incstack__caller caller);
	void (*on_free)(const void *block);
	/* As on_alloc, unless the thread has recorded that block since it asked for its
	 * position: an allocator may call malloc. */
	void (*on_new)(const void *block, size_t bytes, struct incstack__caller caller,
		       uint64_t position);
	uint64_t (*position)(void);
	/* The calling thread will be recorded: whatever that needs is done now. */
	void (*on_thread)(void);
	/* Frames below sp are about to be popped without returning. */
	void (*on_jump)(uintptr_t sp);
	/* The thread is about to end from where it is: nothing of its stack returns. */
	void (*on_thread_end)(void);
	/* The thread is about to run on the stack of this ucontext_t. */
	void (*on_switch)(const void *to);
	/* Code may be unloaded, or is about to be: the module that the address lies in. */
	void (*on_unload)(enum incstack__unload what, const void *address);
	/* The program looks at the return address in the slot: there is no thunk after. */
	void (*on_shown)(uintptr_t *slot);
	/* It walks its stack: there are no thunks on it until a function returns by the slot;
	 * its caller, if the function only takes the registers for the walk. */
	void (*on_walk)(uintptr_t *slot, int by_caller);
	/* What is called so may be an unwinder; certain: it is one. */
	void (*on_lookup)(uintptr_t caller, int certain);
	/* The return address that a thunk's address stands for; all others are themselves. */
	const void *(*real_address)(const void *address);
	/* The trace file's descriptor if it is in a range that is about to be closed, or -1;
	 * and the number is about to become another file's. */
	int (*on_close)(unsigned low, unsigned high);
	void (*on_replace)(int fd);
	/* filter: a struct sock_fprog. */
	void (*on_forbid)(enum incstack__forbidden what, const void *filter);
	/* The process image is about to be replaced; the attempt may fail. */
	void (*on_exec)(void);
	/* The process ends: everything is written, nothing is recorded any more. */
	void (*on_exit)(void);
};

/* What the data of the dynamic linker held at one moment. */
struct incstack__linker_view {
	const uint32_t *data; /* where they are */
	size_t words;         /* 0: that is not known */
	uint64_t adds;        /* of dl_iterate_phdr, at that moment */
	uint64_t subs;
	uint32_t copy[4096];
};

/* Starts recording as `configuration` says; null when it cannot. The view is of before the
 * recorder was loaded. */
typedef const struct incstack__recorder *
incstack__recorder_start_fn(const char *configuration, const struct incstack__linker_view *before);

#endif
