/* SPDX-License-Identifier: MIT
 *
 * The layout of a trace file, shared by the recorder inside the profiled
 * process and the reader outside of it. docs/trace-file.md explains it in prose.
 * Everything is little-endian and position-independent.
 */
#ifndef INCSTACK_TRACEFILE_FORMAT_H
#define INCSTACK_TRACEFILE_FORMAT_H

#include <stdint.h>
#include <string.h>

#define INCSTACK__TRACEFILE_MAGIC 0x0a50414548434e49ull /* "INCHEAP\n" */
#define INCSTACK__TRACEFILE_VERSION 10u
#define INCSTACK__TRACEFILE_HEADER_BYTES 4096u
#define INCSTACK__TRACEFILE_SLOTS 1024u
#define INCSTACK__TRACEFILE_SLOT_BYTES 64u
#define INCSTACK__TRACEFILE_COUNTERS_BYTES \
	(INCSTACK__TRACEFILE_SLOTS * INCSTACK__TRACEFILE_SLOT_BYTES)
/* Where the first block starts. */
#define INCSTACK__TRACEFILE_START \
	(INCSTACK__TRACEFILE_HEADER_BYTES + INCSTACK__TRACEFILE_COUNTERS_BYTES)

/* The first page. */
struct incstack__tracefile_header {
	uint64_t magic;
	uint32_t version;
	uint32_t mode;     /* enum incstack_mode that was asked for */
	uint64_t checksum; /* of this page, with this field 0 */
	uint64_t pid;
	uint64_t start_ns; /* CLOCK_REALTIME */
	uint64_t interval; /* heap: mean bytes between samples; 0 or 1: every allocation
			    * CPU: nanoseconds between ticks */
	uint32_t slots;
	uint32_t slot_bytes;
	uint32_t kind;  /* enum incstack__tracefile_kind */
	uint32_t owner; /* the effective user of the process; 0 is root */
	char command[INCSTACK__TRACEFILE_HEADER_BYTES - 64]; /* zero-terminated and zero-filled */
};

enum incstack__tracefile_kind {
	INCSTACK__TRACEFILE_OF_HEAP, /* events are allocations and deallocations */
	INCSTACK__TRACEFILE_OF_CPU,  /* events are ticks of timers, written as allocations: the size
				  * is how many ticks the event stands for, the pointer is 0 */
	INCSTACK__TRACEFILE_KINDS,
};

/* The counters of a thread: one cache line behind the header, mapped shared, so that they
 * survive a SIGKILL. Lost samples = started - traces found in the blocks. */
struct incstack__tracefile_slot {
	_Atomic uint64_t samples_started;
	_Atomic uint64_t
		notes; /* enum incstack__tracefile_note, as bits; readers combine all slots by or */
	_Atomic uint64_t
		interrupting;     /* events of signal handlers inside another event: not recorded */
	_Atomic uint64_t unwound; /* traces that were compared with a walk by libunwind */
	_Atomic uint64_t failed_calls; /* system calls that returned EINTR because of a tick */
	_Atomic uint64_t
		in_return; /* lost samples of handlers that interrupted an intercepted return */
	_Atomic uint64_t
		memory; /* of the first slot, when the process has ended by itself: the peak of its
				  * memory in KiB, shifted by 32, and its anonymous memory in KiB; else 0 */
	uint64_t end;   /* of the first slot: how the process ended; 0 in all others */
};

/* `end` is this plus the status from wait(2). The process that waited for the recorded process
 * writes it. It is 0 if nobody did. */
#define INCSTACK__TRACEFILE_ENDED (1ull << 32)
/* No thread takes so many samples, so a larger count is damage. */
#define INCSTACK__TRACEFILE_STARTED_MAX ((1ull << 48) - 1)

enum incstack__tracefile_block_type {
	INCSTACK__TRACEFILE_MODULES = 1,
	INCSTACK__TRACEFILE_BATCH = 2,
	INCSTACK__TRACEFILE_TALLY = 3,
	INCSTACK__TRACEFILE_RESOLVED = 4,
	INCSTACK__TRACEFILE_MOMENT = 5, /* moment.h */
};

#define INCSTACK__TRACEFILE_BLOCK_MAGIC 0x4b4c4249u /* "IBLK" */
#define INCSTACK__TRACEFILE_BLOCK_MAX (1u << 30)    /* the maximum length of a payload */

struct incstack__tracefile_block {
	uint32_t magic;
	uint32_t type;     /* enum incstack__tracefile_block_type */
	uint32_t thread;   /* the recorder's number of the thread that wrote it */
	uint32_t length;   /* bytes of payload that follow */
	uint64_t checksum; /* of this header, with this field 0, and the payload */
};

/* BATCH: this, then `event_bytes` of events and `object_bytes` of objects. */
struct incstack__tracefile_batch {
	uint32_t epoch;
	uint32_t objects;
	uint32_t traces;
	uint32_t object_bytes;
	uint32_t event_bytes;
	uint32_t serial; /* from 1, for each thread; a repeated batch counts once; 0: none */
};

/* The head byte of an object has flags, the kind of reference to its parent, and, in the upper
 * bits, the number of bytes from the lowest byte of the pc to the highest byte that differs from
 * the guess. 7 stands for 8. */
enum {
	INCSTACK__TRACEFILE_EXACT = 1u << 0,
	INCSTACK__TRACEFILE_POINTER = 1u << 1,         /* INCSTACK_OBJECT_POINTER */
	INCSTACK__TRACEFILE_PARENT_NEXT = 0 << 2,      /* the object that follows */
	INCSTACK__TRACEFILE_PARENT_BACK = 1 << 2,      /* a uint32_t says how far back */
	INCSTACK__TRACEFILE_PARENT_NONE = 2 << 2,      /* its callers are not in the batch */
	INCSTACK__TRACEFILE_PARENT_BASE = 3 << 2,      /* it is the outermost frame */
	INCSTACK__TRACEFILE_PARENT_TRUNCATED = 4 << 2, /* its callers are unknown */
	INCSTACK__TRACEFILE_PARENT_NEAR = 5 << 2,      /* a uint16_t says how far back */
	/* Not an object: the trace equals the trace from an earlier object. The upper bits are the
	 * number of bytes, 2 or 4, that say how far back this object is. */
	INCSTACK__TRACEFILE_REPEATED = 6 << 2,
	INCSTACK__TRACEFILE_PARENT = 7 << 2,
	INCSTACK__TRACEFILE_LENGTH_SHIFT = 5,
	INCSTACK__TRACEFILE_LENGTH_WIDE = 7,
};

/* The guesses of a batch, all 0 at its start. The guess for the pc that follows a given pc is the
 * pc that followed it the last time. The first pc of a run counts as following the complement of
 * the first pc of the previous run. */
enum {
	INCSTACK__TRACEFILE_GUESSES_LOG = 10,
	INCSTACK__TRACEFILE_GUESSES = 1 << INCSTACK__TRACEFILE_GUESSES_LOG
};

static inline unsigned incstack__tracefile_guess_index(uint64_t previous)
{
	return (unsigned)(previous * 0x9e3779b97f4a7c15ull >>
			  (64 - INCSTACK__TRACEFILE_GUESSES_LOG));
}

/* Events are words. The first word has, from the top bit: 2 bits for the kind, 14 bits for the
 * stamp minus the previous event's stamp (0 before the first), 48 bits for the pointer. The
 * second word of an allocation has 24 bits for the trace index and 40 bits for the size. */
enum incstack__tracefile_event_kind {
	/* An allocation in one word: kind, 4 bits for the stamp, 14 bits for the size, 44 bits for
	 * pointer / 16. Its trace index is 1 more than the trace index of the last
	 * allocation with a trace, or 0 if there was no such allocation. */
	INCSTACK__TRACEFILE_SMALL = 0,
	INCSTACK__TRACEFILE_ALLOC = 1,
	INCSTACK__TRACEFILE_FREE = 2,
	/* An event that does not fit into the other forms: this kind and, below it, the kind of the
	 * event; then stamp (not a difference), pointer, size, trace index. If TIME is set, the
	 * word is not an event: the bits below TIME are the stamp to which the next event's stamp
	 * is relative. */
	INCSTACK__TRACEFILE_WIDE = 3,
};
#define INCSTACK__TRACEFILE_KIND_SHIFT 62
#define INCSTACK__TRACEFILE_STAMP_SHIFT 48
#define INCSTACK__TRACEFILE_STAMP_BITS 14
#define INCSTACK__TRACEFILE_STAMP_MAX ((1ull << INCSTACK__TRACEFILE_STAMP_BITS) - 1)
#define INCSTACK__TRACEFILE_POINTER_MAX ((1ull << INCSTACK__TRACEFILE_STAMP_SHIFT) - 1)
#define INCSTACK__TRACEFILE_INDEX_SHIFT 40
#define INCSTACK__TRACEFILE_INDEX_BITS 24
#define INCSTACK__TRACEFILE_SIZE_MAX ((1ull << INCSTACK__TRACEFILE_INDEX_SHIFT) - 1)
#define INCSTACK__TRACEFILE_SMALL_STAMP_SHIFT 58
#define INCSTACK__TRACEFILE_SMALL_STAMP_MAX 15u
#define INCSTACK__TRACEFILE_SMALL_SIZE_SHIFT 44
#define INCSTACK__TRACEFILE_SMALL_SIZE_BITS 14
#define INCSTACK__TRACEFILE_SMALL_SIZE_MAX ((1ull << INCSTACK__TRACEFILE_SMALL_SIZE_BITS) - 1)
#define INCSTACK__TRACEFILE_SMALL_POINTER_MAX ((1ull << INCSTACK__TRACEFILE_SMALL_SIZE_SHIFT) - 1)
#define INCSTACK__TRACEFILE_TIME (INCSTACK__TRACEFILE_WIDE << 1 | 1)
#define INCSTACK__TRACEFILE_TIME_SHIFT 61
#define INCSTACK__TRACEFILE_TIME_MAX ((1ull << INCSTACK__TRACEFILE_TIME_SHIFT) - 1)
#define INCSTACK__TRACEFILE_ALLOC_BYTES 16u
#define INCSTACK__TRACEFILE_WORD_BYTES 8u       /* the shortest event */
#define INCSTACK__TRACEFILE_WIDE_BYTES 40u      /* the longest event */
#define INCSTACK__TRACEFILE_NO_TRACE UINT64_MAX /* its sample was refused */

/* MODULES: epoch and count as two uint32_t, then count times this, the path, and the identity. */
struct incstack__tracefile_module {
	uint64_t bias; /* address in memory - address in the file's program headers */
	uint64_t low;  /* [low, high) in memory */
	uint64_t high;
	uint32_t path_length; /* without a terminating zero */
	uint16_t identity;    /* enum incstack__identity_kind */
	uint16_t identity_length;
};

/* TALLY: what one thread has counted so far. A reader adds up the last tally of each thread.
 * PROCESS: the process ended. EXEC: the process executed another program; if later blocks follow,
 * the exec failed. */
enum {
	INCSTACK__TRACEFILE_TALLY_PROCESS = 1u << 0,
	INCSTACK__TRACEFILE_TALLY_EXEC = 1u << 1,
	INCSTACK__TRACEFILE_TALLY_RECOVERED =
		1u << 2, /* made from a spool after the end of the process */
};
/* The pc of an object that stands for the callers between its neighbours, which had not been
 * walked when the process was killed. */
#define INCSTACK__TRACEFILE_GAP_PC 1u

/* What became of the ticks of CPU time. Their sum is how many were expected. */
enum incstack__tick {
	INCSTACK__TICK_TAKEN,
	INCSTACK__TICK_QUEUED,
	/* Failed: a signal came, and no sample could be taken. */
	INCSTACK__TICK_NO_RULE,   /* the interrupted code has no unwind rule */
	INCSTACK__TICK_INEXACT,   /* its rule does not describe this instruction */
	INCSTACK__TICK_RECORDER,  /* the recorder, or a return through a thunk, was interrupted */
	INCSTACK__TICK_NO_ROOM,   /* no room for the trace */
	INCSTACK__TICK_NO_STACK,  /* too little of the stack was left */
	INCSTACK__TICK_UNLOADING, /* code was being unloaded */
	INCSTACK__TICK_NO_RECORD, /* of a thread that had just begun or was about to end */
	/* Merged: no signal came for them. A later sample of the thread stands for them. */
	INCSTACK__TICK_MERGED, /* the clock ticks late, or less often */
	INCSTACK__TICK_KERNEL, /* in the kernel, where the events do not tick */
	INCSTACK__TICKS,
};
#define INCSTACK__TICK_FAILED_FIRST INCSTACK__TICK_NO_RULE
#define INCSTACK__TICK_MERGED_FIRST INCSTACK__TICK_MERGED

#define INCSTACK__TRACEFILE_NAME_BYTES 16u

struct incstack__tracefile_tally {
	uint32_t flags;
	uint32_t mode; /* enum incstack_mode in force at the end */
	uint64_t samples;
	uint64_t lost;
	uint64_t crosschecked;
	uint64_t mismatches;
	uint64_t truncated;
	uint64_t returns;
	uint64_t stale;
	uint64_t events_dropped;
	uint64_t cpu_ns;                 /* CPU time of the thread; `ticks` counts its ticks */
	uint64_t ticks[INCSTACK__TICKS]; /* by enum incstack__tick */
	uint64_t tid; /* the kernel's number of the thread; 0: the tally is not of one thread */
	char name[INCSTACK__TRACEFILE_NAME_BYTES]; /* zero-filled; a full name has no final zero */
};

/* RESOLVED: this, then `codes` times the next struct in ascending order, `frames` times the one after it, and the
 * texts, each with a final zero. The tool adds the block when the process has ended; the last one counts. */
struct incstack__tracefile_resolved {
	uint32_t codes;
	uint32_t frames;
	uint32_t text_bytes;
	uint32_t
		remarks; /* where in the texts the lines are that a report prints about the modules */
};

/* The frames of a code, as read.h defines it: innermost first, each inlined into the next one. */
struct incstack__tracefile_resolved_code {
	uint64_t code;
	uint32_t first;
	uint32_t count;
};

struct incstack__tracefile_resolved_frame {
	uint32_t name; /* where in the texts */
	uint32_t file; /* likewise; an empty text: unknown */
	uint32_t line; /* 0: unknown */
};

/* Adds a word to the checksum. Each step is a bijection of the lane, so any change within one
 * word changes the sum. The lane is kept out of vector registers, where the product takes three
 * multiplications. */
static inline uint64_t incstack__tracefile_sum_step(uint64_t lane, uint64_t word)
{
	__asm__("" : "+r"(lane));
	lane = (lane ^ word) * 0x9e3779b97f4a7c15ull;
	return lane << 29 | lane >> 35;
}

/* Returns the next bytes, at most 8, as a word. */
static inline uint64_t incstack__tracefile_sum_word(const unsigned char *at, size_t bytes)
{
	uint64_t word = 0;

	memcpy(&word, at, bytes);
	return word;
}

static inline uint64_t incstack__tracefile_sum_tail(uint64_t sum, const unsigned char *at,
						    size_t left)
{
	while (left > 0) {
		const size_t part = left < 8 ? left : 8;

		sum = incstack__tracefile_sum_step(sum, incstack__tracefile_sum_word(at, part));
		at += part;
		left -= part;
	}
	return sum;
}

/* A checksum is computed in four lanes, whose multiplications overlap. */
struct incstack__tracefile_sum {
	uint64_t first;
	uint64_t second;
	uint64_t third;
	uint64_t fourth;
};

/* `bytes` is the size of everything that will be added. */
static inline struct incstack__tracefile_sum incstack__tracefile_sum_begin(uint64_t seed,
									   size_t bytes)
{
	return (struct incstack__tracefile_sum){seed ^ bytes, 1, 2, 3};
}

/* Adds the whole units of 32 bytes. */
static inline struct incstack__tracefile_sum
incstack__tracefile_sum_add(struct incstack__tracefile_sum sum, const void *data, size_t bytes)
{
	const unsigned char *at = data;

	for (; bytes >= 32; at += 32, bytes -= 32) {
		sum.first = incstack__tracefile_sum_step(sum.first,
							 incstack__tracefile_sum_word(at, 8));
		sum.second = incstack__tracefile_sum_step(sum.second,
							  incstack__tracefile_sum_word(at + 8, 8));
		sum.third = incstack__tracefile_sum_step(sum.third,
							 incstack__tracefile_sum_word(at + 16, 8));
		sum.fourth = incstack__tracefile_sum_step(sum.fourth,
							  incstack__tracefile_sum_word(at + 24, 8));
	}
	return sum;
}

/* Adds the last bytes and returns the checksum. */
static inline uint64_t incstack__tracefile_sum_end(struct incstack__tracefile_sum sum,
						   const void *data, size_t bytes)
{
	uint64_t all;

	sum = incstack__tracefile_sum_add(sum, data, bytes);
	all = incstack__tracefile_sum_step(sum.first, sum.second);
	all = incstack__tracefile_sum_step(all, sum.third);
	all = incstack__tracefile_sum_step(all, sum.fourth);
	return incstack__tracefile_sum_tail(all, (const unsigned char *)data + bytes / 32 * 32,
					    bytes % 32);
}

static inline uint64_t incstack__tracefile_sum(uint64_t seed, const void *data, size_t bytes)
{
	return incstack__tracefile_sum_end(incstack__tracefile_sum_begin(seed, bytes), data, bytes);
}

/* Begins the checksum of a block. */
static inline struct incstack__tracefile_sum
incstack__tracefile_block_begin(struct incstack__tracefile_block block)
{
	block.checksum = 0;
	return incstack__tracefile_sum_begin(incstack__tracefile_sum(0, &block, sizeof(block)),
					     block.length);
}

static inline uint64_t incstack__tracefile_block_sum(struct incstack__tracefile_block block,
						     const void *payload)
{
	return incstack__tracefile_sum_end(incstack__tracefile_block_begin(block), payload,
					   block.length);
}

static inline uint64_t incstack__tracefile_header_sum(struct incstack__tracefile_header header)
{
	header.checksum = 0;
	return incstack__tracefile_sum(0, &header, sizeof(header));
}

_Static_assert(sizeof(struct incstack__tracefile_header) == INCSTACK__TRACEFILE_HEADER_BYTES,
	       "header");
_Static_assert(sizeof(struct incstack__tracefile_slot) == INCSTACK__TRACEFILE_SLOT_BYTES, "slot");
_Static_assert(sizeof(struct incstack__tracefile_block) == 24, "block");
_Static_assert(sizeof(struct incstack__tracefile_batch) == 24, "batch");
_Static_assert(sizeof(struct incstack__tracefile_module) == 32, "module");
_Static_assert(sizeof(struct incstack__tracefile_resolved) == 16, "resolved");
_Static_assert(sizeof(struct incstack__tracefile_resolved_code) == 16, "code");
_Static_assert(sizeof(struct incstack__tracefile_resolved_frame) == 12, "frame");
_Static_assert(sizeof(struct incstack__tracefile_tally) == 104 + 8 * INCSTACK__TICKS, "tally");

#endif
