/* SPDX-License-Identifier: MIT
 *
 * The interface between the preloaded stub and the recorder. The stub is in the target's global
 * scope and therefore links only libc. The recorder contains libunwind and is opened with
 * RTLD_LOCAL, so that the target never binds a name to it.
 */
#ifndef INCSTACK_PRELOAD_H
#define INCSTACK_PRELOAD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INCSTACK__RECORDER_FILE "libincstack_recorder.so"
#define INCSTACK__RECORDER_SYMBOL "incstack__recorder_start"
#define INCSTACK__HEAP_VARIABLE "INCSTACK_HEAP"

/* The frame that called an interposed function; small enough for two registers. */
struct incstack__caller {
	const uintptr_t *slot; /* the slot of the return address into it; may hold a thunk */
	uintptr_t fp; /* its frame pointer register, which the word below the slot also has */
};

/* Keeps the frame of an interposed function until the function returns. Without it the compiler may
 * end the function by a jump to another function, which overwrites the word below the slot with a
 * register of its own. */
static inline void incstack__caller_keep(const struct incstack__caller *caller)
{
	(void)caller;
	__asm__ volatile("");
}

/* The caller of the interposed function in whose body this is. */
#define INCSTACK__CALLER(name) \
	const uintptr_t *const frame_ = __builtin_frame_address(0); \
	__attribute__((cleanup(incstack__caller_keep))) \
	const struct incstack__caller name = {.slot = frame_ + 1, .fp = frame_[0]}

enum incstack__unload {
	INCSTACK__UNLOAD_BEGINS,    /* dlclose is about to be called */
	INCSTACK__UNLOAD_ENDED,     /* dlclose has returned */
	INCSTACK__UNLOAD_ANNOUNCED, /* the module runs its last destructor */
};

/* What a program is about to forbid to itself. */
enum incstack__forbidden {
	INCSTACK__FORBIDDEN_ALL_CALLS,  /* nearly all system calls: seccomp's strict mode */
	INCSTACK__FORBIDDEN_SOME_CALLS, /* the system calls that a seccomp filter names */
	INCSTACK__FORBIDDEN_CLOCK,      /* the time-stamp counter */
};

/* A call in which the thread may wait. */
struct incstack__wait {
	uint64_t begin;        /* when it began, in ns; 0: it is not measured */
	const uintptr_t *slot; /* of the frame that called the interposed function */
	uint32_t state;        /* enum incstack__state */
};

struct incstack__recorder {
	/* Called after a block was allocated and before it is freed. The block is not null. Both
	 * functions preserve errno. */
	void (*on_alloc)(const void *block, size_t bytes, struct incstack__caller caller);
	void (*on_free)(const void *block);
	/* Does what on_alloc does, unless the thread has recorded that block since position()
	 * returned `position`: an allocator may call malloc. */
	void (*on_new)(const void *block, size_t bytes, struct incstack__caller caller,
		       uint64_t position);
	uint64_t (*position)(void);
	/* Makes what is needed to record the calling thread. */
	void (*on_thread)(void);
	/* Null, or called at the begin of each thread that the program makes. */
	void (*on_thread_begin)(void);
	/* Null, or called before and after a call in which the thread may wait. on_wait returns the wait, for which it
	 * has replaced an outer one: a signal handler may wait inside a wait. on_waited returns whether a signal of the
	 * recorder has made the call fail, so that it must be made again. Both preserve errno. */
	void (*on_wait)(struct incstack__wait *wait, struct incstack__wait *outer);
	bool (*on_waited)(const struct incstack__wait *wait, const struct incstack__wait *outer);
	/* Frames below sp are about to be popped without returning. */
	void (*on_jump)(uintptr_t sp);
	/* The thread is about to end, and no frame of its stack will return. */
	void (*on_thread_end)(void);
	/* The thread is about to run on the stack of this ucontext_t. */
	void (*on_switch)(const void *to);
	/* Code may be unloaded, or the module that contains the address is about to be. */
	void (*on_unload)(enum incstack__unload what, const void *address);
	/* The program is about to read the return address in the slot: removes a thunk from it. */
	void (*on_shown)(uintptr_t *slot);
	/* The program is about to walk its stack: removes all thunks until the function returns
	 * through the slot. by_caller: the function only takes the registers for a walk, so the
	 * thunks are removed until its caller returns. */
	void (*on_walk)(uintptr_t *slot, bool by_caller);
	/* `caller` looks up code and may be an unwinder; `certain`: it is an unwinder. */
	void (*on_lookup)(uintptr_t caller, bool certain);
	/* Returns the return address that a thunk stands for. Returns other addresses unchanged. */
	const void *(*real_address)(const void *address);
	/* on_close: returns the trace file's descriptor if it is in a range that is about to be
	 * closed, else -1. on_replace: fd is about to become another file. */
	int (*on_close)(unsigned low, unsigned high);
	void (*on_replace)(int fd);
	/* filter: a struct sock_fprog. */
	void (*on_forbid)(enum incstack__forbidden what, const void *filter);
	/* The process image is about to be replaced; the attempt may fail. */
	void (*on_exec)(void);
	/* Null, or called when the program sets or reads the action of SIGTRAP. Returns whether that was
	 * done for the program, as sigaction does it. */
	bool (*on_trap_action)(const struct sigaction *new, struct sigaction *old);
	/* Null, or called before the thread waits for signals, SIGTRAP among them. */
	void (*on_trap_wait)(void);
	/* The process ends: writes everything and stops recording. */
	void (*on_exit)(void);
};

/* A copy of the dynamic linker's data. */
struct incstack__linker_view {
	const uint32_t *data; /* the address of the data */
	size_t words;         /* 0: the address is not known */
	uint64_t adds;        /* the counts of dl_iterate_phdr when the copy was made */
	uint64_t subs;
	uint32_t copy[4096];
};

/* Where an object is loaded. */
struct incstack__range {
	uintptr_t low;
	size_t bytes;
};

/* The first byte of the object that includes this, and the end of its last segment, as the linker
 * names them. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static inline struct incstack__range incstack__range_own(void)
{
	return (struct incstack__range){(uintptr_t)__ehdr_start, (size_t)(_end - __ehdr_start)};
}

/* Starts recording as `configuration` says. Returns null if that is impossible. The view was made
 * before the recorder was loaded. `stub` is the object of the interposed functions. */
typedef const struct incstack__recorder *
incstack__recorder_start_fn(const char *configuration, const struct incstack__linker_view *before,
			    struct incstack__range stub);

#endif
