/* SPDX-License-Identifier: MIT
 *
 * The toy VM: its data, and the functions that its files share. C code never runs on the stacks
 * of the VM: generated stubs save the registers in the fiber and switch to the thread's C stack.
 * Afterwards they load the registers, which C code may have changed. So all frames of a fiber are
 * plain data, which deoptimization, on-stack replacement, exceptions, the collector and stack
 * growth read and change.
 */
#ifndef TOYVM_VM_H
#define TOYVM_VM_H

#include <pthread.h>
#include <stdatomic.h>

#include <incstack/incstack.h>
#include <incstack/safepoint.h>
#include <incstack/signal.h>

#include "memcheck.h"
#include "program.h"

/* One deliberate bug may be compiled in: see faults.h. */
#include "faults.h"

enum {
	STACK_RESERVE = 128 << 10, /* below the limit: for the trampoline of the library */
	STACK_FIRST = 1 << 10,     /* usable bytes of a new fiber */
	STACK_LAST = 4 << 20,
	SHADOW_MAX = 1 << 20, /* virtual frames */
	THREADS_MAX = 64,
	LAZY_MAX = 8, /* frames of a fiber that random events let wait for their deoptimization */
	SCOPES_MAX = 32,
	EXCEPTION_DIVISION = 1,
	EXCEPTION_TYPE,
	EXCEPTION_BOUNDS,
	EXCEPTION_DEPTH,
	EXCEPTION_MEMORY,
};

/* A return slot that holds the deoptimization stub, and what it held before. */
struct lazy {
	uintptr_t slot, pc;
	bool barrier_first, counted;
};

/* Everything that runs is a fiber. The stubs know the offsets of the first members. */
struct fiber {
	uintptr_t pc, sp, fp; /* of the youngest frame; pc as after its call */
	uint64_t *shadow;     /* its entry in the oracle's record */
	uintptr_t resume;     /* the address at which it continues */
	uintptr_t c_sp;       /* of the thread's C stack */
	value result;
	struct method *callee;
	value args[PARAMS_MAX];
	uintptr_t limit;
	int64_t ticks;  /* polls until the next event */
	uint64_t flags; /* of the processor, when C code returns to the VM: signals.c */
	incstack_poll_word *word;
	const char *page; /* of its thread */

	struct vm *vm;
	struct thread *thread;
	uintptr_t low, high;
	uint64_t *shadow_base;
	struct incstack_stack *stack;
	bool linked;   /* whether its frames are on the heap: linked.c */
	value base[3]; /* represents the caller of the outermost of those frames */
	struct lazy *lazy;
	int lazy_count, lazy_room;
	uint32_t epoch;                      /* of the vm, when its frames were last looked at */
	struct incstack_meter_thread *meter; /* null: nothing is instrumented */
	int pinned; /* how many native frames it has: these have C frames on the thread's own stack */
	bool throwing;
	int64_t fuel;
	value exception;
	struct fiber *next; /* in the queue */
	struct fiber *all;  /* of all fibers */
	struct oracle *oracle;
	uint64_t vanished; /* barriers whose frames were popped without notice */
};

struct thread {
	struct vm *vm;
	struct fiber *fiber;
	struct incstack_thread *safepoint;
	struct fiber *dead; /* a fiber that has ended but whose stack the thread still uses */
	char *page;         /* read by the polls of compiled code: page.c */
	uint64_t random;
	value *free, *free_end;    /* its part of the heap */
	struct instants *instants; /* of its signals; null: it gets none */
	pthread_t id;
};

/* How often each event happens: how many of 65536 events of a thread. */
struct schedule {
	uint32_t ticks; /* the most polls between two events; 0: an event at every poll */
	uint32_t inline_levels, compile_after;
	int mode, threads;
	uint32_t distance; /* as in struct incstack_options */
	int fuel;          /* of each fiber; 0: 4000 */
	bool hostile;      /* every event at every poll */
	bool interpreted;  /* nothing is compiled */
	bool page;         /* compiled code polls by a page, not by the word */
	uint32_t linked;   /* of eight fibers, how many have their frames on the heap */
	bool silent_exits; /* some exceptions are not announced: traces may be truncated */
	uint32_t thunk_limit;
	uint64_t stack_bytes; /* the limit of each fiber's traces: some are refused or truncated */
	uint32_t
		arms; /* one of this many requests for a barrier in a frame on the heap is refused */
	/* Every fourth method decodes to so many more virtual frames, of which the library keeps
	 * INCSTACK_VIRTUAL_MAX. Only if nothing is compiled: a compiled frame has several methods. */
	int more_frames;
	/* One of this many instructions of compiled code, and of the interpreter, is interrupted by a
	 * signal whose handler takes a sample; 0: none. */
	uint32_t signals;
	uint32_t instrument; /* the scheme and more: enum instrument in instrument.h; 0: none */
	/* Compiled code reports to the meter by itself, and no record of the calls is kept. Roots do not change, and
	 * all methods have this mode, enum incstack_meter_mode. */
	bool direct;
	uint32_t meter_mode;
	bool quiet; /* inlined returns do not poll, as in HotSpot */
	bool lazily; /* frames are deoptimized lazily, whatever barriers exist: every mode does the same */
	/* The profile to which all retrieved traces are added; may be null. */
	struct incstack_profile *profile;
	/* If not null, its sampling is all that happens at polls. Called around the run. */
	const struct sampling *sampling;
};

struct vm;
struct sampling {
	void (*begin)(struct vm *vm);
	void (*end)(struct vm *vm);
	void (*poll)(struct fiber *f); /* may be null */
};

struct counters {
	_Atomic uint64_t samples, mismatches, lost, exceptions, deopts, deopt_first, barrier_first,
		osr, moved, inlined, gc, fibers, natives, threads, truncated, linked_samples,
		linked_returns, pages, refused, no_thunk, no_arm, walks, immediate, queued, biased,
		later, unknown, vanished, calls, contexts, changes;
	_Atomic uint64_t depths[4096];
};
extern struct counters counters;
#define COUNT(which) atomic_fetch_add_explicit(&counters.which, 1, memory_order_relaxed)

struct vm {
	struct program *program;
	struct schedule schedule;
	struct incstack_runtime *runtime;
	struct incstack_safepoint *safepoint;
	pthread_mutex_t lock; /* protects all members below */
	pthread_cond_t changed;
	struct fiber *queue, **queue_end, *fibers;
	struct thread *threads;
	int live;
	uint32_t spawned;
	pthread_mutex_t page_lock;
	int stopping; /* threads that stop all others */
	pthread_mutex_t compile_lock;
	pthread_mutex_t heap_lock;
	value *space[2], *space_end, *space_free;
	int space_now;
	value globals[GLOBALS_MAX];
	bool print;
	uint64_t checksum;
	struct instrumentation *instrumentation; /* null: nothing is instrumented */
	uint32_t epoch; /* counts changes of versions; written while all threads are stopped */
};

/* The stubs of generated code, by purpose. */
struct stubs {
	void (*enter)(struct fiber *f); /* from C; returns when the VM leaves */
	uintptr_t call,
		returned; /* an interpreted frame calls; the address that the callee returns to */
	uintptr_t callback, called_back;
	uintptr_t leave; /* returns to C, from enter */
	uintptr_t ret;   /* returns fiber->result */
	uintptr_t start; /* calls fiber->callee as the first frame */
	uintptr_t base;  /* the return address of the first frame */
	uintptr_t resume_poll, resume_interpreter, resume_compiled;
	uintptr_t interpreter, interpreter_c2i, compiled_i2c, native, native_c2i;
	uintptr_t linked_call, linked_returned;
	uintptr_t deopt; /* the return address of a frame that waits for deoptimization */
	/* of compiled code; they pop their return address into fiber->pc */
	uintptr_t poll, slow, resolve, grow;
	uintptr_t page,
		page_again; /* a poll by the page has faulted; the same, and then the page is polled again */
};
extern struct stubs stubs;
void stubs_make(void);

/* ---- frames.c: the VM's own walk, and what the library is told -------------- */

/* Frames with a frame pointer, interpreted and native: words from fp downward. */
enum { FRAME_METHOD = -1, FRAME_BCI = -2, FRAME_DEPTH = -3, FRAME_SLOTS = -4 };
static inline value *frame_word(uintptr_t fp, int64_t i)
{
	return (value *)fp + i;
}
static inline struct method *frame_method(uintptr_t fp)
{
	return (struct method *)(uintptr_t)*frame_word(fp, FRAME_METHOD);
}
/* Bytes between fp and the stack pointer. */
static inline uintptr_t frame_bytes(const struct method *m)
{
	return (3 + m->slots) * sizeof(value);
}
/* Moves the end of the fiber's stack. C code calls it before it writes there and after it has
 * read. */
static inline void set_sp(struct fiber *f, uintptr_t sp)
{
	memcheck_stack(f->sp, sp);
	f->sp = sp;
}
/* Makes the stack end with the youngest frame, which has a frame pointer. */
static inline void end_with_frame(struct fiber *f)
{
	if (!f->linked)
		set_sp(f, f->fp - frame_bytes(frame_method(f->fp)));
}

struct virtual
{
	struct method *method;
	int32_t bci;
	uint32_t depth;
	value *slots; /* slot i at slots[-i]; locals first, then the operand stack */
};

/* One physical frame. */
struct frame {
	uintptr_t pc, sp, fp;
	uintptr_t *slot;         /* its return slot */
	const struct blob *blob; /* null: it has a frame pointer */
	bool lazy; /* the slot below holds the deoptimization stub instead of its pc */
	int count;
	struct virtual frames[SCOPES_MAX]; /* innermost first */
};
void frame_first(struct fiber *f, struct frame *frame);
bool frame_next(struct fiber *f, struct frame *frame); /* returns false at the base */
struct lazy *lazy_find(struct fiber *f, uintptr_t slot);
void lazy_remove(struct fiber *f, struct lazy *l);
static inline bool has_barrier(const uintptr_t *slot)
{
	return incstack_slot_read(slot) != *slot;
}
bool returns_to_barrier(const struct fiber *f, const uintptr_t *slot);
extern const struct incstack_embedder embedder;
extern const struct incstack_stack_walker linked_walker;
static inline bool has_more_frames(uint64_t method)
{
	return method % 4 == 1;
}
/* The fiber on whose stack the calling thread's calls of the library operate. */
extern _Thread_local struct fiber *fiber_looked_at;

/* ---- jit.c -------------------------------------------------------------------- */

/* A place in compiled code where control may be in C or in a callee. */
struct site {
	uint32_t offset; /* of the return address */
	int16_t scope;
	int32_t bci;
	uint32_t depth;
};
/* Where code begins that belongs to a position: what is between two marks belongs to the first. Only
 * made for signals. */
struct mark {
	uint32_t offset;
	int16_t scope;
	bool bare;       /* the stack pointer points at the return slot: there is no frame */
	bool ending;     /* the frame returns without another poll */
	bool unrecorded; /* the oracle's record does not have the frame */
	int32_t bci;
};
struct scope {
	struct method *method;
	int16_t parent;
	int32_t bci;    /* of the parent's call */
	uint32_t depth; /* of the parent there */
	uint32_t base;  /* of its slots: slot i is at sp + 8 * (base - i) */
};
struct blob {
	uintptr_t code, end;
	uint32_t bytes; /* between stack pointer and return slot */
	struct method *method;
	struct site *sites;
	int32_t site_count;
	struct scope scopes[SCOPES_MAX];
	int scope_count;
	struct mark *marks; /* sorted */
	int mark_count;
	uint32_t *offsets;                /* of the instructions of the outermost scope */
	struct incstack_jit_code *listed; /* null: not registered with gdb */
};
void code_open(void);
void code_reset(void);
uint8_t *code_take(size_t bytes); /* null if the memory is full */
void code_give_back(uint8_t *from, const uint8_t *end);
const struct blob *code_find(uintptr_t address);
/* Whether the return slot and those of all callers lead to compiled code. A handler cannot tell where
 * an interpreted frame stands. */
bool callers_are_compiled(uintptr_t slot);
struct blob *blob_new(void);
void blob_publish(struct blob *b);
const struct site *blob_site(const struct blob *b, uintptr_t pc);
const struct mark *blob_mark(const struct blob *b, uintptr_t pc); /* null: the VM has no signals */
bool code_contains(uintptr_t pc);
void jit_compile(struct thread *t, struct method *m);
void method_set_interpreted(struct method *m);

/* ---- listing.c: names of the code for perf and gdb --------------------------------- */

void listing_start(void);
struct incstack_jit_code *listing_add(uintptr_t code, size_t size, const char *name);
void listing_remove(struct incstack_jit_code *listed);

/* ---- signals.c: signals at random instants, and what the library is told of them ------ */

extern bool
	stubs_step; /* whether the stubs load the flags of the fiber; set before they are made */
void signals_open(void);
void signals_begin(struct thread *t);
void signals_end(struct thread *t);
void signals_go_on(struct fiber *f);
void signals_bytecode(struct fiber *f);
void signals_drain(struct fiber *f);
int signals_interrupted(void *context, const struct incstack_interruption *at,
			struct incstack_top *top);
/* The number of a position in a frame that has a frame pointer. */
static inline uintptr_t position_number(uint64_t key)
{
	return (uintptr_t)1 << 63 | key;
}

/* ---- what the stubs call: on the C stack, with the registers in f. They return
 * the fiber that goes on. -------------------------------------------------------- */

struct fiber *toy_enter(struct fiber *f);
struct fiber *toy_interpret(struct fiber *f);
struct fiber *toy_returned(struct fiber *f);
struct fiber *toy_after_poll(struct fiber *f);
struct fiber *toy_native(struct fiber *f);
struct fiber *toy_poll(struct fiber *f);
struct fiber *toy_page(struct fiber *f);
struct fiber *toy_slow(struct fiber *f);
struct fiber *toy_resolve(struct fiber *f);
struct fiber *toy_grow(struct fiber *f);
struct fiber *toy_deopt_return(struct fiber *f);
struct fiber *toy_fiber_end(struct fiber *f);
struct fiber *toy_linked_call(struct fiber *f);

/* ---- operations.c --------------------------------------------------------------- */

bool do_op(struct fiber *f, const struct virtual *v);
void fiber_throw(struct fiber *f, int exception);

/* ---- interp.c ------------------------------------------------------------------ */

bool push_frame(struct fiber *f);
void set_bci(struct fiber *f, int32_t bci);
struct fiber *give_result(struct fiber *f, value result);
struct method *resolve(struct fiber *f, const struct virtual *v);
/* In the record of a frame: its call was reported to the meter, within the subgraph. */
#define SHADOW_CALLED ((uint64_t)1 << 62)
static inline uint64_t shadow_key(const struct method *m, int32_t bci)
{
	return (uint64_t)m->id << 32 | (uint32_t)bci;
}

/* ---- deopt.c --------------------------------------------------------------------- */

void deopt_random(struct fiber *f);
/* Deoptimizes frames that have inlined a version of a method that is no longer the current one, if there were
 * changes since the last look. Returns whether the youngest frame is one of them; it is left to the caller,
 * unless the fiber is at a poll. */
bool deopt_outdated(struct fiber *f, bool at_poll);
void deopt_after_operation(struct fiber *f);
struct fiber *osr(struct fiber *f, const struct blob *b);
struct fiber *throw_value(struct fiber *f);
struct fiber *throw_from_call(struct fiber *f);

/* ---- linked.c ---------------------------------------------------------------------- */

void linked_begin(struct fiber *f);
uintptr_t linked_new(struct fiber *f, const struct method *m);
bool linked_barrier(uintptr_t fp); /* where this frame returns to */
void linked_pop(struct fiber *f);
void linked_unwind(struct fiber *f, uintptr_t fp);
struct fiber *linked_return(struct fiber *f, uintptr_t pc);
void linked_move(struct fiber *f);
int linked_caller(void *context, void *identity, struct incstack_frame *frame);
int linked_arm(void *context, void *identity, uintptr_t frame);
void linked_disarm(void *context, void *identity, uintptr_t frame);

/* ---- heap.c ----------------------------------------------------------------------- */

struct object {
	uint64_t header; /* odd: class << 32 | length << 1 | 1; even: where it moved to */
	value fields[];
};
/* Null for a number, too. */
static inline struct object *object_of(value v)
{
	return is_int(v) ? NULL : (struct object *)(uintptr_t)v;
}
static inline uint32_t object_length(const struct object *o)
{
	return (uint32_t)o->header >> 1;
}
static inline uint32_t object_class(const struct object *o)
{
	return (uint32_t)(o->header >> 32);
}
#define CLASS_ARRAY 0xffffu
void heap_open(struct vm *vm);
void heap_close(struct vm *vm);
struct object *heap_new(struct fiber *f, uint32_t class, uint32_t length); /* may collect */
void heap_collect(struct fiber *f);

/* ---- page.c ------------------------------------------------------------------------ */

void pages_open(struct vm *vm);
void pages_close(void);
void pages_arm(struct vm *vm);
void pages_stop(struct vm *vm);
void pages_stopped(struct vm *vm);
void page_disarm(struct thread *t);

/* ---- fiber.c ------------------------------------------------------------------------ */

struct fiber *fiber_spawn(struct vm *vm, struct method *m, value argument);
struct fiber *fiber_yield(struct fiber *f);
bool fiber_has_barrier(struct fiber *f);
bool fiber_grow(struct fiber *f, uintptr_t bytes);
void fiber_move(struct fiber *f, uintptr_t bytes);
uint64_t vm_run(struct program *p, const struct schedule *s, uint64_t seed, int64_t n, bool print);

/* ---- modes.c: runs a program with barriers and in another mode; prints how the
 * profiles of all such runs compare, and returns whether they are identical ---- */
void modes_run(struct program *p, const struct schedule *s, int mode, uint64_t seed, int64_t n);
bool modes_print(void);

/* ---- iterate.c: checks the frame iterator against the oracle's record -------------------- */

void iterate(struct fiber *f, const struct incstack_top *top, const uint64_t *entries,
	     size_t count);

/* ---- events.c, oracle.c ---------------------------------------------------------------- */

struct fiber *poll(struct fiber *f, bool yield);
struct oracle *oracle_new(void);
void oracle_sample(struct fiber *f, uint64_t *random);
void oracle_look(struct fiber *f);
/* Asks for a sample in a signal handler. The record has `count` entries, and one more, `youngest`,
 * if that is not 0. */
void oracle_signal(struct fiber *f, size_t count, uint64_t youngest, uint64_t weight,
		   const void *ucontext);
void oracle_retrieve(struct fiber *f);
void oracle_finish(struct fiber *f);
void oracle_free(struct oracle *o);

#endif
