/* SPDX-License-Identifier: MIT
 *
 * The data of the core, and the functions that its files share, grouped by the
 * file that implements them. Invariants are numbered in docs/invariants.md.
 *
 * The state of a stack is a chain of frame objects, youngest first: the callers
 * that were known at the last event. Above the youngest live barrier the chain
 * is a memory that must be compared with the stack (I3); from the barrier on it
 * is certain, because no frame there can have run (I2).
 */
#ifndef INCSTACK__INTERNAL_H
#define INCSTACK__INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <incstack/incstack.h>

#include "arch/x86_64/layout.h"
#include "fault.h"
#include "rule.h"

typedef struct incstack_frame_object object;
typedef struct incstack_trace trace;
typedef struct incstack_stack stack;
typedef struct incstack_runtime runtime;

_Static_assert(sizeof(object) == 32, "a frame object is 32 bytes");

/* The private flags of an object. In mode validate a raw object keeps its packed unwind rule in
 * `bci`, until it is decoded. */
enum {
	OBJECT_BARRIER = 1u << 8, /* the return into this frame is intercepted */
	OBJECT_GAP = INCSTACK_OBJECT_GAP,
	OBJECT_DECODE_NOW = 1u << 10, /* never to be decoded after its capture */
	OBJECT_NO_BARRIER = 1u << 11, /* the return into it must not be intercepted */
	OBJECT_SHIFT = 12,            /* above the flags: the number of its barrier's thunk */
};
#define OBJECT_FLAGS ((1u << OBJECT_SHIFT) - 1)
#define OBJECT_ORDINARY ((uint32_t)(INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW))

/* What a thunk reads: the address to resume at, and the stack that the thunk belongs to. */
struct incstack__cell {
	uintptr_t resume;
	stack *stack;
};

/* The record of a barrier beside the cell, indexed by the number of its thunk. */
struct barrier {
	object *object;   /* the frame that control returns into; null: the barrier is not live */
	uintptr_t fp;     /* the frame pointer of that frame; if retired, the return slot */
	uint32_t next;    /* the next thunk in a list of its stack */
	uint32_t retired; /* whether the thunk is in the list of retired thunks */
};

/* A frame during a walk. */
struct cursor {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
	bool exact;
	bool signal;
	bool decode_now; /* of a top: see OBJECT_DECODE_NOW */
};

/* A unit of the memory for traces: objects grow up from the start, traces down
 * from the end. */
struct chunk {
	struct chunk *next;
	size_t bytes;
	object *objects; /* the first object, and their end when the chunk was left */
	object *objects_end;
	struct incstack_tree tree; /* only used in the first chunk: incstack_stack_tree */
	runtime *runtime;
};
static inline bool chunk_contains(const struct chunk *c, const void *p)
{
	return (uintptr_t)p - (uintptr_t)c <= c->bytes;
}
static inline size_t chunk_room(const struct chunk *c)
{
	return c->bytes - sizeof(*c);
}
/* The position of objects and traces in an arena that has no room for any request. */
#define INCSTACK__NO_ROOM 4096

struct arena {
	uint64_t spare_room; /* bytes for objects and traces in the empty chunks */
	object *object;      /* the next free one */
	trace *limit;        /* the last allocated trace: memory ends here */
	struct chunk *current;
	struct chunk *first;
	struct chunk *spare; /* empty ones */
	uint64_t bytes;      /* of all chunks */
	uint64_t truncated;  /* objects whose callers are unknown */
};

static inline object *chunk_end(const struct arena *a, const struct chunk *c)
{
	return chunk_contains(c, a->object) ? a->object : c->objects_end;
}

/* The observations from which the barrier distance is chosen (distance.c). */
struct distance {
	uint32_t value;   /* the barrier distance */
	uint32_t returns; /* intercepted since the last sample */
	uint32_t samples; /* in this window */
	uint32_t pause;   /* samples before the next window */
	bool fixed;
	uint32_t last_count; /* how many callers the last sample walked over */
	const object *last_first, *last_end;
	uint16_t popped[INCSTACK_DISTANCE_MAX + 1]; /* samples, by frames popped before each */
};

/* How many rules a stack remembers by stack address: one for each 16 bytes. */
enum { RULES_AT = 1024 };

/* The fields that every sample reads come first and fill two cache lines. */
struct incstack_stack {
	uintptr_t busy;  /* the stack pointer of the operation in progress, or 0 */
	uintptr_t owner; /* the thread that may use it */
	uintptr_t low, high;
	object *newest;         /* the youngest known caller; set_newest() sets both */
	uintptr_t newest_thunk; /* its thunk if it has a barrier, else a value no slot holds */
	runtime *runtime;
	trace **last;
	uint64_t samples, walked; /* counters: see struct incstack_stats */
	uint64_t look_at;         /* the number of the next sample that distance.c looks at */
	uint32_t careful;         /* why no sample may take the fast path: see below */
	uint32_t limbo;           /* thunks that an unwinder may still read */
	uint32_t near, reach;     /* frames that a sample should walk over, and callers that it
				   * may walk over before it plants a barrier (distance.c) */
	struct arena arena;       /* its first three words end the two lines */
	uint32_t mode;
	int32_t hidden_rule; /* all ones, unless raw objects keep their rule in bci */
	uint32_t spare;      /* thunks of this stack, ready to be used */
	uint32_t retired;    /* thunks whose barriers vanished unannounced (I4) */
	uint32_t thunk_low;  /* the numbers of all thunks that the stack ever had lie in */
	uint32_t thunk_high; /* [thunk_low, thunk_high] */
	bool by_embedder;    /* walked by the embedder, with the embedder's own barriers */
	bool anywhere;       /* bounds are unknown: a sample may be on any stack */
	bool no_memory;      /* whether the last walk cut an object for lack of memory */
	struct distance distance;
	struct incstack_stats stats; /* except samples and walked, which are above */
	object *met;                 /* the youngest object that the last walk found known */
	object *cut;                 /* the object at which the last walk was cut, if any */
	uint64_t retrieved;          /* samples that were retrieved */
	uint64_t alone;              /* samples whose objects are all new; others are `shared` */
	void *identity;              /* the embedder's name of this stack */
	uintptr_t mapped_low;        /* memory outside the stack known to be readable in this */
	uintptr_t mapped_high;       /* walk; with `anywhere`, the same as [low, high) */
	uint64_t rules_forgotten;    /* the runtime's count, as last seen by mode validate */
	uint32_t rule_at[RULES_AT];  /* plain rules only: see foreseen() */
};
_Static_assert(offsetof(struct incstack_stack, arena) == 104, "two lines, with three words of it");

enum {
	CAREFUL_WALK = 1,  /* the embedder walks, or mode validate compares frames, or the
			    * bounds of the stack are unknown */
	CAREFUL_WANTS = 2, /* a signal handler missed rules that must be looked up */
};

_Static_assert(offsetof(struct incstack_stack, busy) == INCSTACK__STACK_BUSY, "see layout.h");
_Static_assert(offsetof(struct incstack__cell, resume) == INCSTACK__CELL_RESUME, "see layout.h");
_Static_assert(offsetof(struct incstack__cell, stack) == INCSTACK__CELL_STACK, "see layout.h");
_Static_assert(sizeof(struct incstack__cell) == INCSTACK__THUNK_SIZE, "see layout.h");

enum { RULES_WANTED = 64 };

/* The fields that every sample reads come first. */
struct incstack_runtime {
	_Atomic(struct rule_table *) run_rules; /* same as `rules`, or null: see fast_walk.h */
	_Atomic(struct rule_table *) rules;
	atomic_bool wanting; /* something is in `wanted` */
	struct incstack_embedder embedder;
	void *context;
	struct incstack_options options;
	_Atomic uint64_t rule_count;          /* entries in use */
	_Atomic uint64_t rules_unkept;        /* rules for which the table had no room */
	_Atomic(struct rule_table *) growing; /* the newest table, even before it is published */
	_Atomic uint64_t rules_forgotten;     /* calls of incstack__rule_forget */
	atomic_uint forgetting;               /* threads inside incstack__rule_forget */
	atomic_flag rule_lock;                /* held to make a larger table; nobody waits */
	/* Addresses that signal handlers missed: a ring that overwrites the oldest. */
	_Atomic uintptr_t wanted[RULES_WANTED];
	atomic_uint wanted_next;
	atomic_uint stacks;
	atomic_uint thunks;  /* taken from the pool */
	atomic_uint revived; /* returns through retired thunks */
	struct chunk *kept;  /* chunks of released trees */
	uint32_t kept_count;
	atomic_flag kept_lock;
	size_t xsave_bytes;
};

static inline trace **first_trace(const stack *s)
{
	return (trace **)&s->arena.first->tree.traces;
}
static inline bool has_barriers(const stack *s)
{
	return s->mode == INCSTACK_MODE_PATCH || s->mode == INCSTACK_MODE_EMBEDDER;
}
/* The object of the caller's frame: inlined frames share that of their callee. */
static inline object *physical_parent(const object *o)
{
	object *p = (object *)o->parent;
	while (p && p->flags & INCSTACK_OBJECT_VIRTUAL)
		p = (object *)p->parent;
	return p;
}

/* memory.c */
void *incstack__allocate(runtime *rt, size_t bytes);
void incstack__release(runtime *rt, void *memory, size_t bytes);

/* arena.c */
int incstack__arena_grow(stack *s, bool beyond_limit);
bool incstack__arena_next(stack *s);
int incstack__arena_open(stack *s);
void incstack__arena_mend(struct arena *a);
void incstack__arena_split(stack *s, struct arena *used);
void incstack__arena_join(stack *s, const struct arena *used);
void incstack__arena_free(runtime *rt, struct chunk *chunk);
void incstack__arena_close(runtime *rt);
static inline bool arena_fits(const stack *s, size_t objects)
{
	const char *end = (const char *)s->arena.limit - sizeof(trace);
	return (const char *)(s->arena.object + objects) <= end;
}
/* Returns a new object, or null if there is no room. With `grow`, it may allocate memory,
 * even beyond the stack's limit, because sampled traces must be completed. The object is
 * complete before it is counted (I8). */
static inline object *arena_object(stack *s, bool grow, object value)
{
	if (__builtin_expect(!arena_fits(s, 1), 0) && !incstack__arena_next(s) &&
	    !(grow && !incstack__arena_grow(s, true) && incstack__arena_next(s)))
		return NULL;
	*s->arena.object = value;
	atomic_signal_fence(memory_order_seq_cst);
	return s->arena.object++;
}

/* How the embedder may be called: never (in a signal handler, find_rule_in_handler excepted),
 * directly, or with all registers saved (from the trampoline). */
enum ask { ASK_NEVER, ASK_DIRECTLY, ASK_SAVED };

/* unwind.c */
enum step { STEP_FRAME, STEP_END, STEP_UNKNOWN };
struct walker {
	stack *stack;
	enum ask ask;
	bool grow;            /* whether the arena may grow */
	uint32_t distance;    /* callers to capture before a barrier is planted */
	uintptr_t plant_from; /* lowest slot that may be patched */
};
packed_rule incstack__rule_of(const struct walker *w, uintptr_t pc, bool exact);
uintptr_t incstack__logical_pc(const struct walker *w, uintptr_t slot, uintptr_t pc);
enum step incstack__step(const struct walker *w, struct cursor *at, uintptr_t *slot,
			 packed_rule *rule);
static inline bool inside(const stack *s, uintptr_t address)
{
	return address >= s->low && address < s->high;
}
/* Whether a frame at sp is ordinary: its caller's frame begins at cfa, which is above sp and
 * below `limit`; and the words to be read, those at cfa - 8 and at `saved`, lie in the frame
 * or at most one word below it. The fast and the general walk share this test. */
static inline bool frame_ordinary(uintptr_t sp, uintptr_t cfa, uintptr_t saved, uintptr_t limit)
{
	return cfa > sp && cfa < limit && saved + 2 * sizeof(uintptr_t) > sp;
}
/* A word of the stack, possibly in another function's red zone. The caller has checked that
 * the word lies inside the stack or is mapped (mapped.c), but not that it is aligned: a frame
 * pointer register may hold any value. */
typedef uintptr_t stack_any_word __attribute__((aligned(1), may_alias));
__attribute__((no_sanitize("address", "thread"))) static inline uintptr_t
stack_word(uintptr_t address)
{
	return *(const volatile stack_any_word *)address;
}

/* mapped.c */
bool incstack__mapped(stack *s, uintptr_t address);
void incstack__mapped_forget(stack *s);

/* decode.c */
object *incstack__decode(stack *s, object *o, const struct incstack_frame *frame, enum ask ask,
			 bool grow);

/* walk.c */
/* The progress of a walk. */
struct path {
	struct cursor at;
	object *child;    /* the object of the frame `at` */
	object *known;    /* the youngest object that the walk may still meet */
	object *head;     /* the youngest caller made on this stack: validate remembers from it */
	uint32_t n;       /* callers that were made */
	bool interrupted; /* whether a signal interrupted the frame `at` */
	bool here;        /* whether the walk has reached this stack: not yet on a signal stack */
	bool no_thunk;    /* no thunk could be had: do not ask again */
	packed_rule rule; /* of the frame whose return the barrier would intercept */
};
object *incstack__walk(const struct walker *w, struct path *p);
bool incstack__known_confirm(stack *s, const uintptr_t *frame);
void incstack__cut(stack *s, object *o);
void incstack__cut_walk(stack *s, object *o, bool no_memory);

/* full_walk.c: the recorder compares traces with it */
int incstack__full_walk(stack *s, const struct incstack_top *top, struct incstack_frame *frames,
			int max);

/* embedder_walk.c */
object *incstack__frames_walk(const struct walker *w, const struct cursor *at, object *child,
			      object *known);

/* barrier.c */
bool incstack__barrier_plant(stack *s, object *o, uintptr_t fp);
void incstack__barrier_pass_on(stack *s, object *o, object *next, uintptr_t fp);
void incstack__barrier_end(stack *s, object *o);
void incstack__barrier_lift(stack *s, object *o, bool certain);
void incstack__barrier_revived(stack *s, const struct incstack__cell *cell);
void incstack__barriers_reclaim(stack *s);
void incstack__barriers_end(stack *s);
void incstack__barriers_moved(stack *s, uintptr_t delta);
void incstack__barrier_drop(stack *s, object *o);
bool incstack__barrier_live(const stack *s, const object *o);
bool incstack__barrier_recorded(const stack *s, const object *o);
uintptr_t incstack__barrier_fp(const object *o);
void incstack__barrier_move(object *from, object *to);
object *incstack__known_pop(stack *s, object *o);
void incstack__barrier_shift_fp(const object *o, uintptr_t low, uintptr_t high, uintptr_t delta);
void incstack__limbo_empty(stack *s);
void incstack__barriers_forget(stack *s, bool restore);
int incstack__pool_open(void);
void incstack__pool_reserve(stack *s);
object *incstack__barrier_object(const struct incstack__cell *cell);
stack *incstack__barrier_of_thread(uint32_t *number);
void incstack__barrier_uncover(stack *s, uint32_t number);
void incstack__barriers_watched(void);
static inline uintptr_t *object_slot(const object *o)
{
	return (uintptr_t *)(o->address - sizeof(uintptr_t));
}

/* barrier_hit.c */
void incstack__barrier_passed(stack *s, object *o, uintptr_t fp, enum ask ask,
			      uintptr_t plant_from);
uintptr_t incstack__returned(struct incstack__cell *cell, uintptr_t fp, uintptr_t old_busy);
struct _Unwind_Context;
int incstack__thunk_personality(int version, int actions, uint64_t class, void *exception,
				struct _Unwind_Context *context);

/* aside.c */
void incstack__step_aside(const uintptr_t *frame);
void incstack__resume_aside(void *exception, const uintptr_t *frame);

/* retrieve.c */
int incstack__complete(stack *s, bool grow);
void incstack__lift_all(stack *s, bool certain);
void incstack__forget_rules(stack *s);
int incstack__decode_range(stack *s, uintptr_t low, uintptr_t bytes);

/* reset.c */
void incstack__forget(stack *s, bool restore);
bool incstack__left_behind(const stack *s, uintptr_t operation, uintptr_t sp);

/* signals.c */
bool incstack__signals_block(uint64_t *before);
void incstack__signals_restore(bool blocked, const uint64_t *before);

/* distance.c */
void incstack__distance_open(stack *s);
void incstack__distance_note(stack *s, const trace *t);
void incstack__distance_forget(stack *s);
void incstack__distance_renew(stack *s);
void incstack__distance_pay(stack *s, uint32_t frames);
static inline void distance_rent(stack *s, uint32_t frames)
{
	if (frames > s->near)
		incstack__distance_pay(s, frames);
}
static inline void distance_observe(stack *s, const trace *t)
{
	if (__builtin_expect(s->samples >= s->look_at, 0))
		incstack__distance_note(s, t);
}

/* copied.c */
void incstack__copied_note(stack *s);
void incstack__copied_look(stack *s, const uintptr_t *frame);
bool incstack__copied(const runtime *rt);

/* verify.c */
int incstack__broken(const stack *s, size_t most);

/* life_cycle.c */
void incstack__mode_use(stack *s, uint32_t mode);
void incstack__mode_change(stack *s, uint32_t mode, const uintptr_t *frame);
static inline uintptr_t thread_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}
int incstack__enter_slowly(stack *s, uintptr_t sp);
/* Begins an operation on s, which only its owner may do; leave() ends the operation. */
__attribute__((always_inline)) static inline int enter(stack *s)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	if (__builtin_expect(!s || s->owner != thread_self() || s->busy, 0))
		return incstack__enter_slowly(s, sp);
	s->busy = sp;
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}
/* Debug builds check the invariants at the end of each operation. */
static inline void leave(stack *s)
{
#ifdef INCSTACK_DEBUG
	s->stats.broken += incstack__broken(s, 64) != 0;
#endif
	atomic_signal_fence(memory_order_seq_cst);
	*(volatile uintptr_t *)&s->busy = 0;
}

/* arch/x86_64 */
static inline uintptr_t stack_pointer(void)
{
	uintptr_t sp;
	__asm__ volatile("movq %%rsp, %0" : "=r"(sp));
	return sp;
}
extern const char incstack__thunk_entry[], incstack__thunk_entry_1[], incstack__thunk_entry_2[],
	incstack__thunk_entry_3[], incstack__thunk_entry_4[], incstack__thunk_entry_5[];
extern const char incstack__thunk_landing[];
extern const char incstack__thunk_pool[], incstack__thunks[];
extern struct incstack__cell incstack__thunk_cells[INCSTACK__THUNK_COUNT];
void incstack__call_saved(void (*function)(void *), void *argument, size_t bytes);
size_t incstack__xsave_bytes(void);
bool incstack__shadow_stack_on(void);
bool incstack__page_readable(uintptr_t address);
bool incstack__entry_state(const struct cursor *at, struct cursor *caller);
void incstack__signal_registers(struct cursor *at);
int incstack__thunk_contains(uintptr_t pc);
int incstack__pool_generate(const runtime *rt);
/* The pools made at run time lie in [base, base + bytes), one per INCSTACK__POOL_STRIDE. */
struct incstack__pools {
	_Atomic uintptr_t base, bytes;
};
extern struct incstack__pools incstack__pools;
/* Whether a word points into the pools made at run time. *offset is relative to their base. */
static inline bool in_later_pool(uintptr_t word, uintptr_t *offset)
{
	/* acquire: pairs with the release in pool.c, which stores base before bytes. */
	uintptr_t bytes = atomic_load_explicit(&incstack__pools.bytes, memory_order_acquire);
	*offset = word - atomic_load_explicit(&incstack__pools.base, memory_order_relaxed);
	return __builtin_expect(*offset < bytes, 0);
}
static inline bool is_thunk(uintptr_t word)
{
	uintptr_t offset;
	if (word - (uintptr_t)incstack__thunks < INCSTACK__POOL_BYTES)
		return true;
	return in_later_pool(word, &offset) &&
	       offset % INCSTACK__POOL_STRIDE - INCSTACK__ENTRY_BYTES < INCSTACK__POOL_BYTES;
}
/* The number of the thunk at `word`, for which is_thunk() must hold. */
static inline uint32_t thunk_number(uintptr_t word)
{
	uintptr_t offset;
	if (!in_later_pool(word, &offset))
		return (uint32_t)((word - (uintptr_t)incstack__thunks) / INCSTACK__THUNK_SIZE);
	return (uint32_t)(offset / INCSTACK__POOL_STRIDE + 1) * INCSTACK__THUNK_COUNT +
	       (uint32_t)(offset % INCSTACK__POOL_STRIDE - INCSTACK__ENTRY_BYTES) /
		       INCSTACK__THUNK_SIZE;
}
static inline struct incstack__cell *thunk_cell(uintptr_t word)
{
	uintptr_t thunk = word & ~(uintptr_t)(INCSTACK__THUNK_SIZE - 1);
	return (struct incstack__cell *)(thunk + INCSTACK__POOL_BYTES);
}
static inline uintptr_t thunk_address(uint32_t number)
{
	uintptr_t thunks = (uintptr_t)incstack__thunks, pool = number / INCSTACK__THUNK_COUNT;
	if (__builtin_expect(pool != 0, 0))
		thunks = atomic_load_explicit(&incstack__pools.base, memory_order_relaxed) +
			 (pool - 1) * INCSTACK__POOL_STRIDE + INCSTACK__ENTRY_BYTES;
	return thunks + (uintptr_t)(number % INCSTACK__THUNK_COUNT) * INCSTACK__THUNK_SIZE;
}
/* The word in the return slot of o if o has a barrier. Otherwise 1, which no return slot
 * holds. */
static inline uintptr_t barrier_word(const object *o)
{
	return o && o->flags & OBJECT_BARRIER ? thunk_address(o->flags >> OBJECT_SHIFT) : 1;
}
static inline void set_newest(stack *s, object *o)
{
	s->newest = o;
	s->newest_thunk = barrier_word(o);
}

#endif
