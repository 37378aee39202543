/* SPDX-License-Identifier: MIT
 *
 * Shared by the files that profile a program that runs already. Nothing is loaded into the program
 * and it is never stopped: the kernel copies registers and stacks, and the tool walks the copies.
 */
#ifndef INCSTACK_TOOL_ATTACH_H
#define INCSTACK_TOOL_ATTACH_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <incstack/embedder.h>

#include "tracefile/format.h"
#include "tracefile/identity.h"
#include "tool/proc.h"
#include "tool/record/record.h"

/* refuse.c */
/* Prints why the tool cannot profile or record (the verb) the process. Returns an exit status. */
int tool_attach_refuse(pid_t pid, const char *verb, const char *reason);

/* process.c */
/* Returns 0 and a descriptor of the process, or an exit status after a message that says why the
 * process cannot be profiled. */
int tool_attach_process(pid_t pid, int *pidfd);
/* As tool_attach_process(), for probes that change return addresses while a function runs. */
int tool_attach_process_may_return(pid_t pid);

/* events.c: the events that the kernel reports, in buffers that it shares with the tool. */
struct tool_attach_events;

/* What the kernel has copied when a tick came. */
struct tool_attach_sample {
	pid_t tid;
	uint64_t time; /* CLOCK_MONOTONIC */
	uint64_t pc, sp, fp;
	int is_native;             /* whether the thread ran 64-bit code */
	const unsigned char *copy; /* of the stack from sp on; valid during the call */
	size_t bytes;
};

/* A mapping, as in a line of /proc/PID/maps. */
struct tool_attach_mapping {
	uint64_t low, high, offset, device, inode;
	int is_code;
	const char *path; /* "": none */
};

/* What a probe reports. The records of each kind have their own buffers, so the kind of a lost
 * record is known. */
enum tool_attach_hit_kind {
	TOOL_ATTACH_ENTRY,  /* a call, with a copy of the stack */
	TOOL_ATTACH_RETURN, /* the return of a call */
	TOOL_ATTACH_FREE,   /* a call, without a copy */
	TOOL_ATTACH_HIT_KINDS,
};

/* A thread has come to a probe. */
struct tool_attach_hit {
	struct tool_attach_sample at;
	enum tool_attach_hit_kind kind;
	uint32_t probe; /* its number */
	uint64_t arguments[3];
	uint64_t result;
	uint64_t value; /* of the word in which posix_memalign has stored its result */
};

struct tool_attach_handler {
	void (*sample)(void *context, const struct tool_attach_sample *sample);
	/* `since` is the time of the last record in that buffer that was not lost. */
	void (*lost)(void *context, uint64_t since, uint64_t time, uint64_t count);
	/* Only if waits are reported: the thread has left its processor; it is on a processor or
	 * not. */
	void (*left)(void *context, const struct tool_attach_sample *sample);
	void (*switched)(void *context, pid_t tid, uint64_t time, int is_on);
	void (*hit)(void *context, const struct tool_attach_hit *hit);
	void (*hits_lost)(void *context, enum tool_attach_hit_kind kind, uint64_t count);
	void (*mapped)(void *context, const struct tool_attach_mapping *mapping); /* code */
	void (*executed)(void *context, uint64_t time); /* the process runs another program; its
	                                                 * mappings follow */
	void (*ended)(void *context, pid_t tid, uint64_t time);
	void *context;
};

/* Prepares to sample all threads of the process, also those that it makes later. If the interval is
 * 0, only mappings and the ends of threads are reported. With is_wall, the times at which a thread
 * leaves a processor and is back are reported. Returns 0, or an exit status after a message. */
int tool_attach_events_open(struct tool_attach_events **events, pid_t pid, uint64_t interval,
			    int is_wall);
/* Begins to sample. */
void tool_attach_events_start(struct tool_attach_events *events);
/* Passes on what the kernel has reported, in the order in which it happened. */
void tool_attach_events_read(struct tool_attach_events *events,
			     const struct tool_attach_handler *handler);
/* Ends the sampling; what was reported before can still be read. */
void tool_attach_events_stop(struct tool_attach_events *events);
/* Returns the CPU time that the threads have used in between. *lost is how many records had no room and
 * were not reported: the kernel reports them with the next record that has. */
uint64_t tool_attach_events_used(const struct tool_attach_events *events, uint64_t *lost);
void tool_attach_events_close(struct tool_attach_events *events);
/* How long the buffers last, in milliseconds. */
int tool_attach_events_pause(const struct tool_attach_events *events);
/* Whether the kernel reports nothing while a thread is in the kernel. */
int tool_attach_events_only_user(const struct tool_attach_events *events);
size_t tool_attach_events_threads(const struct tool_attach_events *events);

/* outputs.c: the hits of probes. */
/* Makes the buffers for them, before the worker gives up its rights. What failed is said by
 * tool_attach_hits_open(). */
struct tool_attach_maps;
void tool_attach_outputs_open(struct tool_attach_events *events,
			      const struct tool_attach_maps *maps);
struct tool_attach_wanted;
/* Begins to report the hits of all threads, also of later ones. Returns 0, or an exit status after a
 * message. */
int tool_attach_hits_open(struct tool_attach_events *events,
			  const struct tool_attach_wanted *wanted, size_t count);
/* Removes the breakpoints; what was reported before can still be read. */
void tool_attach_hits_stop(struct tool_attach_events *events);
/* How many hits had no room and were not reported. */
uint64_t tool_attach_hits_lost(const struct tool_attach_events *events,
			       enum tool_attach_hit_kind kind);
void tool_attach_outputs_close(struct tool_attach_events *events);

/* image.c: the objects of another process. */
struct tool_attach_module {
	uint64_t low, high, bias;
	uint64_t device, inode;
	uint64_t origin; /* where the file would begin if it were mapped as its code is */
	struct tool_attach_copy *copy; /* of the object from `low` on; null: there is none */
	char *path;
	struct incstack__identity identity; /* of its file, if the mapped file could be opened */
};
struct tool_attach_copies;

/* Describes the module of which the mapping is the code. Returns non-zero if there is no memory. A file
 * that cannot be read gives a module without a copy. */
int tool_attach_image_open(struct tool_attach_copies *copies,
			   const struct tool_attach_mapping *mapping,
			   struct tool_attach_module *module);
void tool_attach_image_close(struct tool_attach_module *module);

/* space.c: the code of another process. */
struct tool_attach_space;

enum tool_attach_code {
	TOOL_ATTACH_RULE,
	TOOL_ATTACH_NO_RULE,
	TOOL_ATTACH_NO_CALL, /* no return address: it does not follow a call */
	TOOL_ATTACH_NO_CODE,
};

struct tool_attach_space *tool_attach_space_new(void);
void tool_attach_space_free(struct tool_attach_space *space); /* also null */
/* Reads which code is mapped now. Returns non-zero if that is impossible. */
int tool_attach_space_read(struct tool_attach_space *space);
/* Code was mapped, in place of earlier code. Returns whether the modules have changed. */
int tool_attach_space_map(struct tool_attach_space *space,
			  const struct tool_attach_mapping *mapping);
/* How many mappings of code had no room in the lists, or no room for a copy. */
uint64_t tool_attach_space_left_out(const struct tool_attach_space *space);
/* A walk begins, which may do a limited amount of work. */
void tool_attach_space_begin(struct tool_attach_space *space);
/* Nothing is mapped any more. */
void tool_attach_space_clear(struct tool_attach_space *space);
const struct tool_attach_module *tool_attach_space_modules(const struct tool_attach_space *space,
							   size_t *count);
/* The module whose code has the address; null: none. */
const struct tool_attach_module *tool_attach_space_module(const struct tool_attach_space *space,
							  uint64_t address);
/* Finds the rule of a pc: of an interrupted instruction, or a return address. */
enum tool_attach_code tool_attach_space_rule(struct tool_attach_space *space, uint64_t pc,
					     int is_exact, struct incstack_rule *rule);

/* walk.c */
struct tool_attach_frame {
	uint64_t pc, address;
	uint32_t flags; /* INCSTACK_OBJECT_* */
};
enum { TOOL_ATTACH_FRAMES = 4096 };
/* Walks the copy of a stack. Returns TAKEN and the frames, the youngest first, or why there is no
 * trace. */
enum incstack__tick tool_attach_walk(struct tool_attach_space *space,
				     const struct tool_attach_sample *sample,
				     struct tool_attach_frame *frames, size_t *count);
/* The same from the caller of a function that has just been entered. */
enum incstack__tick tool_attach_walk_callers(struct tool_attach_space *space,
					     const struct tool_attach_sample *sample,
					     struct tool_attach_frame *frames, size_t *count);

/* file.c: the trace file. */
struct tool_attach_file;

/* Begins the trace file of a process. Returns null after a message if that fails. */
struct tool_attach_file *tool_attach_file_new(const struct tool_record_options *options, pid_t pid);
/* From now on the code addresses are those of these modules. Returns false if there is no room for their
 * list. */
bool tool_attach_file_modules(struct tool_attach_file *file, const struct tool_attach_space *space);
/* A block of memory that a thread has allocated. */
struct tool_attach_block {
	pid_t tid;
	uint64_t time;
	uint64_t pointer; /* 0: not known */
	uint64_t bytes;
};

/* Adds an allocation, with its trace if there is one. */
void tool_attach_file_alloc(struct tool_attach_file *file, const struct tool_attach_block *block,
			    enum incstack__tick what, const struct tool_attach_frame *frames,
			    size_t count);
/* Adds as many ticks as the block has bytes, which share a trace. */
void tool_attach_file_ticks(struct tool_attach_file *file, const struct tool_attach_block *block,
			    enum incstack__tick what, const struct tool_attach_frame *frames,
			    size_t count);
void tool_attach_file_free_block(struct tool_attach_file *file, pid_t tid, uint64_t time,
				 uint64_t pointer);
/* Counts allocations of which nothing else is known. */
void tool_attach_file_count(struct tool_attach_file *file, enum incstack__tick what,
			    uint64_t count);
/* Counts deallocations that were not seen. */
void tool_attach_file_dropped(struct tool_attach_file *file, uint64_t count);
/* Sets a bit of enum incstack__tracefile_note. */
void tool_attach_file_note(struct tool_attach_file *file, unsigned note);
/* Adds ticks of unknown threads, for whose samples there was no room. */
void tool_attach_file_lost(struct tool_attach_file *file, uint64_t time, uint64_t count);
/* The thread has ended: its number may be given to another one. */
void tool_attach_file_ended(struct tool_attach_file *file, pid_t tid);
/* Writes what is left. Returns non-zero, after a message, if something could not be written. */
int tool_attach_file_end(struct tool_attach_file *file, uint64_t cpu_ns);
/* Whether a write has failed. */
int tool_attach_file_failed(const struct tool_attach_file *file);
void tool_attach_file_free(struct tool_attach_file *file);

/* functions.c: the functions of a process that allocate. */
enum tool_attach_function {
	TOOL_ATTACH_MALLOC,
	TOOL_ATTACH_CALLOC,
	TOOL_ATTACH_REALLOC,
	TOOL_ATTACH_ALIGNED,
	TOOL_ATTACH_POSIX_MEMALIGN,
	TOOL_ATTACH_NEW,
	TOOL_ATTACH_DEALLOCATE,
};

enum { TOOL_ATTACH_PROBES = 64 }; /* at most */

/* A breakpoint that the worker asks for. */
struct tool_attach_wanted {
	const struct tool_attach_module *module; /* which has a copy */
	uint64_t offset;                         /* of an instruction in the file */
	uint32_t number;                         /* of the probe; each hit has it */
	enum tool_attach_hit_kind kind;
};

/* Finds them. The number of a probe is an enum tool_attach_function. Returns 0, or an exit status after
 * a message. The list is to be freed. */
int tool_attach_functions_find(pid_t pid, const struct tool_attach_space *space,
			       struct tool_attach_wanted **wanted, size_t *count);

/* sandbox.c */
/* Whether this kernel lets a process in a sandbox (seccomp) return through a probe. */
int tool_attach_sandbox_is_safe(void);

/* heap.c: allocations, made from the calls that the kernel reports. */
struct tool_attach_heap;

struct tool_attach_heap *tool_attach_heap_new(struct tool_attach_file *file,
					      struct tool_attach_space *space);
void tool_attach_heap_free(struct tool_attach_heap *heap); /* also null */
void tool_attach_heap_hit(struct tool_attach_heap *heap, const struct tool_attach_hit *hit);
void tool_attach_heap_lost(struct tool_attach_heap *heap, enum tool_attach_hit_kind kind,
			   uint64_t count);
/* The thread has ended. */
void tool_attach_heap_ended(struct tool_attach_heap *heap, pid_t tid);
/* No hits follow. */
void tool_attach_heap_end(struct tool_attach_heap *heap);

/* waits.c: the time that threads spend off a processor. */
struct tool_attach_waits;

struct tool_attach_waits *tool_attach_waits_new(struct tool_attach_file *file,
						struct tool_attach_space *space, uint64_t interval);
void tool_attach_waits_free(struct tool_attach_waits *waits); /* also null */
/* The thread has left its processor, with this stack. */
void tool_attach_waits_left(struct tool_attach_waits *waits,
			    const struct tool_attach_sample *sample);
/* The same without a stack; and it is back. */
void tool_attach_waits_begin(struct tool_attach_waits *waits, pid_t tid, uint64_t time);
void tool_attach_waits_back(struct tool_attach_waits *waits, pid_t tid, uint64_t time);
/* The thread ran when a tick came. Returns how many ticks this stands for. */
uint64_t tool_attach_waits_ran(struct tool_attach_waits *waits, pid_t tid, uint64_t time);
/* Finds the threads that wait and on which nothing was reported, and reads their stacks. */
void tool_attach_waits_look(struct tool_attach_waits *waits);
/* Reports after that time were lost: what a thread did until the next report on it is unknown. */
void tool_attach_waits_lost(struct tool_attach_waits *waits, uint64_t time);
/* The thread has ended. */
void tool_attach_waits_ended(struct tool_attach_waits *waits, pid_t tid, uint64_t time);
/* Writes the long waits that have not ended, up to that time. Searches for waiting threads again if
 * reports were lost. */
void tool_attach_waits_account(struct tool_attach_waits *waits, uint64_t time);
/* Writes all waits that have not ended. If reports were lost, writes the missing time as lost.
 * Returns how long all threads have lived, in ns. */
uint64_t tool_attach_waits_end(struct tool_attach_waits *waits, uint64_t time, int has_lost);
/* Forgets all threads. */
void tool_attach_waits_clear(struct tool_attach_waits *waits, uint64_t time);
/* launch.c: a program that waits for the tool before it begins. */
struct tool_attach_child {
	pid_t pid;
	int gate;
};

/* Starts it, with this signal mask. Returns 0, or an exit status after a message. */
int tool_attach_launch(char **program, const sigset_t *mask, struct tool_attach_child *child);
void tool_attach_let_go(struct tool_attach_child *child);
/* Waits for the end of the program and reports how it ended. If it was not started yet, it ends.
 * Returns its exit status. */
int tool_attach_child_end(struct tool_attach_child *child, const char *file);

/* attach.c: profiles the process until Ctrl-C, the end of the time (in seconds; 0: none) or its own
 * end, and reports. If the options name a program, runs that instead. Returns an exit status. */
int tool_attach(struct tool_record_options *options, pid_t pid, double seconds);

/* options.c: profiles a process, or a program that is run, as the options say. Returns an exit
 * status. */
int tool_attach_or_record(struct tool_record_options *options);

#endif
