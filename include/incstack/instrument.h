/* SPDX-License-Identifier: MIT
 *
 * Selective instrumentation of a call subgraph at run time: exact counts of calls, and calibrated
 * times (Dmitriev 2003, JFluid, sections 5 and 6). A user names a root method. The library finds
 * the methods that the root calls, directly or not, and says which of them to instrument. The
 * instrumented code reports its calls, and the library builds a calling context tree from them.
 *
 * There are two objects, which know nothing of each other:
 *
 *   incstack_subgraph  finds the methods, from what the embedder tells of loaded classes
 *   incstack_meter     counts and times the calls of instrumented methods
 *
 * An embedder that can change code at run time works like this:
 *
 *   a class is loaded                incstack_subgraph_add_class
 *   the user names a root            incstack_subgraph_add_root, incstack_meter_method_set_root
 *   after each of these              incstack_subgraph_next_change, until there is none:
 *                                    instruments the method, or restores it
 *   an instrumented method begins    incstack_meter_enter
 *     the first time (scheme B)      incstack_subgraph_method_entered, then the changes
 *   it returns, or throws            incstack_meter_exit
 *   the user asks                    incstack_meter_snapshot_create
 *
 * Conventions as in incstack.h: a function returns 0 on success and a negative INCSTACK_E* on
 * failure, unless stated otherwise. A structure that has a member `size` gets it from the caller;
 * another size is EINVAL. Part of libincstack.a.
 */
#ifndef INCSTACK_INSTRUMENT_H
#define INCSTACK_INSTRUMENT_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/error.h>

INCSTACK_BEGIN_C

/* ---- the call subgraph --------------------------------------------------------------- */

/* The classes and methods that the embedder told of, and which methods a root reaches. One call
 * at a time: the embedder serializes. */
struct incstack_subgraph;

/* When a method that can be reached is instrumented. */
enum incstack_subgraph_scheme {
	/* At once (section 6.1, scheme A). */
	INCSTACK_SUBGRAPH_REACHABLE = 0,
	/* When a direct caller first runs (section 6.2, scheme B). */
	INCSTACK_SUBGRAPH_CALLED = 1,
};

/* Flags of a subgraph. */
enum {
	/* A virtual call reaches only the methods of classes that incstack_subgraph_class_seen
	 * reported: those whose objects were really seen as receivers. */
	INCSTACK_SUBGRAPH_RECEIVERS = 1u << 0,
};

/* The options of a subgraph. */
struct incstack_subgraph_options {
	size_t size;           /* sizeof(struct incstack_subgraph_options) */
	uint32_t scheme;       /* enum incstack_subgraph_scheme */
	uint32_t flags;        /* INCSTACK_SUBGRAPH_RECEIVERS, or 0 */
	uint32_t method_limit; /* of methods in all classes; 0: 1,048,576 */
};

/* How a call site finds its method. */
enum {
	/* The method of the class, or else the nearest one of its superclasses. */
	INCSTACK_CALL_STATIC = 0,
	/* Likewise, or the method of a subclass that overrides it. */
	INCSTACK_CALL_VIRTUAL = 1,
};

/* A call site in the code of a method. */
struct incstack_call_site {
	uint64_t class_id; /* the class that the code names; it need not be loaded */
	uint64_t name;     /* the embedder's number for the name and signature of the method */
	uint32_t kind;     /* INCSTACK_CALL_* */
};

/* Flags of a method. */
enum {
	/* It has no code that can be instrumented. What it calls is followed at once, in both schemes. */
	INCSTACK_METHOD_FIXED = 1u << 0,
	/* It is abstract: a call never ends there. */
	INCSTACK_METHOD_ABSTRACT = 1u << 1,
	/* It is neither instrumented nor are its callees followed: the limit of the subgraph. */
	INCSTACK_METHOD_OPAQUE = 1u << 2,
};

/* A method of a class. */
struct incstack_method {
	uint64_t method; /* the embedder's number; no two loaded methods have the same one */
	uint64_t name;   /* as in call sites: equal in a method and in those that override it */
	uint32_t flags;  /* INCSTACK_METHOD_*, or 0 */
	uint32_t call_count; /* how many call sites its code has */
	const struct incstack_call_site *calls; /* copied; may be null if there are none */
};

/* A loaded class. */
struct incstack_class {
	size_t size;            /* sizeof(struct incstack_class) */
	uint64_t class_id;      /* the embedder's number */
	const uint64_t *supers; /* superclass and interfaces, all of them loaded */
	uint32_t super_count;   /* how many these are */
	uint32_t method_count;  /* how many methods the class itself has */
	const struct incstack_method *methods; /* those that the class itself has; copied */
};

/* What to do with a method. */
enum {
	INCSTACK_CHANGE_INSTRUMENT = 1, /* its calls shall report events */
	INCSTACK_CHANGE_RESTORE = 2,    /* its code shall be as it was */
};

/* A change that the embedder must make. */
struct incstack_subgraph_change {
	uint64_t method; /* its number */
	uint32_t action; /* INCSTACK_CHANGE_* */
};

/* Counters of a subgraph. */
struct incstack_subgraph_stats {
	size_t size;           /* sizeof(struct incstack_subgraph_stats), set by the caller */
	uint64_t classes;      /* loaded now */
	uint64_t methods;      /* of these classes */
	uint64_t instrumented; /* methods that are instrumented, as far as changes were taken */
	uint64_t entered;      /* of these: methods that have run since, as reported */
	uint64_t unresolved;   /* calls, since a root was removed last, of a loaded class that found no method */
	uint64_t refused;      /* classes that a limit or missing memory kept out */
};

/* Makes a subgraph without classes and roots. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_subgraph_create(const struct incstack_subgraph_options *options,
					  struct incstack_subgraph **subgraph);

/* Frees a subgraph; null is allowed. Methods stay as they are.
 * Thread: one at a time. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_subgraph_destroy(struct incstack_subgraph *subgraph);

/* Tells of a class that was loaded, after its superclasses. If methods of the class can be reached
 * from a root, changes follow. Errors: EINVAL, also for a class that is loaded already, a superclass
 * that is not loaded, and a method number that is in use; ENOMEM; ELIMIT: too many methods. After an
 * error the class is not known.
 * Algorithm: Dmitriev 2003, 6.1 step 3, 6.2 step 5.
 * Thread: one at a time. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_subgraph_add_class(struct incstack_subgraph *subgraph,
					     const struct incstack_class *added);

/* Tells that a class was unloaded, before or after its superclasses. No change for its methods
 * follows. Errors: EINVAL, also for an unknown class.
 * Thread: one at a time. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_subgraph_remove_class(struct incstack_subgraph *subgraph,
						uint64_t class_id);

/* Adds a root, the method that a static call of this class and name finds. The class may be loaded
 * later. Errors: EINVAL; ENOMEM: the root is not added.
 * Thread: one at a time. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_subgraph_add_root(struct incstack_subgraph *subgraph, uint64_t class_id,
					    uint64_t name);

/* Removes a root. Methods that no other root reaches are restored, and their first run is forgotten.
 * Errors: EINVAL, also for a root that was not added; ENOMEM: the root stays.
 * Thread: one at a time. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_subgraph_remove_root(struct incstack_subgraph *subgraph,
					       uint64_t class_id, uint64_t name);

/* Tells that an instrumented method runs for the first time. In scheme B its callees are now
 * reachable. A method that is unknown or not instrumented is ignored: another thread may have been
 * faster. Errors: EINVAL, ENOMEM: call again.
 * Algorithm: Dmitriev 2003, 6.2 steps 3 and 4.
 * Thread: one at a time. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_subgraph_method_entered(struct incstack_subgraph *subgraph,
						  uint64_t method);

/* Tells that code of the subgraph calls a method in a way that no call site shows: by reflection, or
 * from native code. The method becomes reachable, until a root is removed. A method that is not loaded
 * is ignored. Errors: EINVAL, ENOMEM: call again.
 * Thread: one at a time. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_subgraph_method_called(struct incstack_subgraph *subgraph,
						 uint64_t method);

/* Tells that an object of exactly this class was seen as a receiver; see INCSTACK_SUBGRAPH_RECEIVERS.
 * Errors: EINVAL, also for an unknown class; ENOMEM: call again.
 * Thread: one at a time. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_subgraph_class_seen(struct incstack_subgraph *subgraph,
					      uint64_t class_id);

/* Takes the next change that is due; the subgraph counts it as made. Returns 1, or 0 if there is none.
 * Errors: EINVAL.
 * Thread: one at a time. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_subgraph_next_change(struct incstack_subgraph *subgraph,
					       struct incstack_subgraph_change *change);

/* Copies the counters to *stats. Errors: EINVAL.
 * Thread: one at a time. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_subgraph_stats(const struct incstack_subgraph *subgraph,
					 struct incstack_subgraph_stats *stats);

/* ---- calls and times ------------------------------------------------------------------- */

/* Counts and times the calls of instrumented methods. Any thread may use it at any time, except that
 * nothing may use it once it is destroyed. */
struct incstack_meter;

/* A method whose calls are counted. It lives as long as its meter. */
struct incstack_meter_method;

/* A thread of the program, or a fiber, with the calling context tree of its calls. */
struct incstack_meter_thread;

/* Flags of a meter. */
enum {
	/* The frames of a thread lie on one stack that grows down, so an inner frame has a lower
	 * address. Calls whose exit nobody reported are then found when the next call begins, at the latest
	 * in their place or further out. `frame` must not be 0; such a call is counted as unmatched only. No
	 * two open calls of one method may have the same frame. */
	INCSTACK_METER_FRAMES_DESCEND = 1u << 0,
};

/* The options of a meter. */
struct incstack_meter_options {
	size_t size; /* sizeof(struct incstack_meter_options) */
	/* Returns the ticks of a clock that never goes back. Null: the time stamp counter of the
	 * processor if it is invariant, else CLOCK_MONOTONIC. */
	uint64_t (*clock)(void *context);
	void *clock_context;     /* the argument of `clock` */
	double ticks_per_second; /* of `clock`; ignored if `clock` is null */
	uint32_t contexts;       /* of one thread; 0: 65,536, which need at most 6 MB */
	uint32_t depth;          /* calls of one thread that are open at a time; 0: 10,000 */
	uint32_t method_limit;   /* methods of all classes; 0: 1,048,576 */
	uint32_t flags;          /* INCSTACK_METER_*, or 0 */
};

/* Makes a meter, and measures what an event costs (incstack_meter_calibrate). Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: for some milliseconds. */
INCSTACK_API int incstack_meter_create(const struct incstack_meter_options *options,
				       struct incstack_meter **meter);

/* Frees a meter with its methods and threads; null is allowed. No code may report events any more.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_meter_destroy(struct incstack_meter *meter);

/* What is known of the calls of a method. */
enum incstack_meter_mode {
	INCSTACK_METER_TIMED = 0,   /* how many, and how long each took */
	INCSTACK_METER_COUNTED = 1, /* how many; no clock is read */
	INCSTACK_METER_OFF = 2,     /* nothing: its callees count as those of its caller */
};

/* Makes a method, which is timed and not a root. `function` is the embedder's number of it. Errors:
 * EINVAL; ENOMEM; ELIMIT: too many methods.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: for the meter's lock. */
INCSTACK_API int incstack_meter_method_create(struct incstack_meter *meter, uint64_t function,
					      struct incstack_meter_method **method);

/* Makes a method a root (on is 1) or an ordinary method (0). A call of a root opens the subgraph for its
 * thread. Calls that are open go on to count until they end. Errors: EINVAL.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_meter_method_set_root(struct incstack_meter_method *method, int on);

/* Sets the mode of the calls that begin from now on. The next call within the subgraph counts as the
 * method's first one again (see incstack_meter_enter): set the mode when the method is instrumented
 * anew. Where frames are unknown (0), a method must not be turned off while calls of it are open. Errors: EINVAL.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_meter_method_set_mode(struct incstack_meter_method *method,
						uint32_t mode);

/* Returns the mode, enum incstack_meter_mode; or INCSTACK_EINVAL.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_meter_method_mode(const struct incstack_meter_method *method);

/* Makes the state of a thread, whose events all come from one place at a time. `id` appears in
 * snapshots. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: for the meter's lock. */
INCSTACK_API int incstack_meter_thread_create(struct incstack_meter *meter, uint64_t id,
					      struct incstack_meter_thread **thread);

/* Ends a thread. Open calls end now. Its calls are added to the sum of ended threads. Null is allowed. If
 * there is no memory for this, the calls are lost and counted.
 * Thread: any, after the thread's last event. Signal: no. Allocates: malloc. Blocks: for the meter's lock. */
INCSTACK_API void incstack_meter_thread_end(struct incstack_meter_thread *thread);

/* Reports that a method begins. `frame` names the activation: the address of its frame, or any number that
 * no other open activation of the thread has; methods that are inlined into each other may share it; 0:
 * unknown. Outside of the subgraph it costs a few tests. Returns 1 if the method runs inside of the subgraph for the first time
 * (see incstack_subgraph_method_entered), else 0. Without thread or method nothing happens.
 * Source: Dmitriev 2003, 5.1 and figure 3.
 * Thread: the reported one. Signal: yes, but if it interrupts another event of the thread it is only counted
 * (nested). Allocates: never. Blocks: never. */
INCSTACK_API int incstack_meter_enter(struct incstack_meter_thread *thread,
				      struct incstack_meter_method *method, uintptr_t frame);

/* Reports that a method returns, or is left by an exception. The call of this frame and method ends, and
 * so do all calls that began later and whose exit nobody reported (unseen). An exit without such a call
 * changes nothing: the activation began before its method was instrumented.
 * Thread: the reported one. Signal: yes, as incstack_meter_enter. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_meter_exit(struct incstack_meter_thread *thread,
				      struct incstack_meter_method *method, uintptr_t frame);

/* Reports that all frames below an address are gone, because an exception or a longjmp left them. Only for
 * meters with INCSTACK_METER_FRAMES_DESCEND; else nothing happens.
 * Thread: the reported one. Signal: yes, as incstack_meter_enter. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_meter_unwinding_to(struct incstack_meter_thread *thread,
					      uintptr_t frame);

/* Why the clock of a thread stands still. */
enum {
	/* The time counts for nothing: a class is loaded, or code is instrumented (5.2, 6.1). */
	INCSTACK_METER_PAUSE = 0,
	/* The time counts as waiting: the thread sleeps, or the fiber is not mounted. */
	INCSTACK_METER_WAIT = 1,
};

/* Stops the clock of a thread. Stops nest; where both apply, it is a pause.
 * Thread: the reported one. Signal: yes, as incstack_meter_enter. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_meter_thread_stop(struct incstack_meter_thread *thread, uint32_t why);

/* Lets the clock of a thread go on. Without a stop nothing changes.
 * Thread: the reported one. Signal: yes, as incstack_meter_enter. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_meter_thread_go(struct incstack_meter_thread *thread, uint32_t why);

/* Adds a sample of `weight_ns` to the innermost open call. The time of calls that are only counted comes
 * from samples.
 * Thread: the sampled one. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_meter_sample(struct incstack_meter_thread *thread, uint64_t weight_ns);

/* ---- what events cost --------------------------------------------------------------------- */

/* Runs `calls` calls of an empty method, in the way in which the program's own methods are called: with
 * its instrumentation, which reports to `thread` and `method`; or, if `thread` is null, without it. */
typedef void incstack_meter_run_fn(void *context, struct incstack_meter_thread *thread,
				   struct incstack_meter_method *method, uint32_t calls);

/* Measures what a call costs more if it is instrumented. The part between the two readings of the clock is the
 * inner time, which the call itself measures; the rest is the outer time, which its caller measures. Both
 * are taken out of all times, also of those measured before. If `run` is null, calls of the two event
 * functions are measured, so what the embedder's code adds stays in the times: pass `run` for
 * times that are right.
 * Errors: EINVAL, ENOMEM.
 * Algorithm: Dmitriev 2003, 5.3, but with the median of many groups of calls, not with the minimum.
 * Thread: any, one at a time. Signal: no. Allocates: malloc. Blocks: for some milliseconds. */
INCSTACK_API int incstack_meter_calibrate(struct incstack_meter *meter, incstack_meter_run_fn *run,
					  void *context);

/* Lets methods be counted only whose own time is below twice the price of timing it, if enough calls were
 * seen. If the events then still cost more than `budget` of the time in the subgraph, the most frequently called methods
 * follow: first counted, then off. `budget` is a share, for example 0.05; 0: no budget. Each call looks
 * at what happened since the last adaptation. A method is never given back what it lost: set its mode for
 * this. *changed is how often a method got another mode; may be null.
 * Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: for the meter's lock. */
INCSTACK_API int incstack_meter_adapt(struct incstack_meter *meter, double budget,
				      uint32_t *changed);

/* Counters of a meter, summed over all threads. */
struct incstack_meter_stats {
	size_t size;         /* sizeof(struct incstack_meter_stats), set by the caller */
	uint64_t threads;    /* that live */
	uint64_t calls;      /* counted, timed or not */
	uint64_t timed;      /* of these, timed */
	uint64_t unseen;     /* calls that ended without an exit */
	uint64_t unmatched;  /* exits without a call */
	uint64_t nested;     /* events within an event: not counted */
	uint64_t too_deep;   /* calls beyond the limit of depth: their time is their caller's */
	uint64_t no_room;    /* calls beyond the limit of contexts: likewise */
	uint64_t lost;       /* calls of ended threads for which there was no memory */
	uint64_t paused_ns;  /* time that counts for nothing */
	double inner_ns;     /* the price of a timed call: in its own time */
	double outer_ns;     /* in its caller's time */
	double counted_ns;   /* the price of a call that is only counted */
	double error_ns;     /* the spread of the inner and the outer time together */
	double price_ns;     /* of all events so far */
	double overhead;     /* their share of the time in the subgraph, as measured */
};

/* Copies the counters to *stats. Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: for the meter's lock. */
INCSTACK_API int incstack_meter_stats(struct incstack_meter *meter,
				      struct incstack_meter_stats *stats);

/* ---- results ------------------------------------------------------------------------------ */

/* A copy of the calling context tree at a moment. */
struct incstack_meter_snapshot;

/* Flags of a snapshot. */
enum {
	INCSTACK_METER_PER_THREAD = 1u << 0, /* a tree for each thread; ended threads have one together */
};

/* Copies the trees of all threads, which may run on. What is between two events of a thread belongs to
 * a later snapshot. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: for the meter's lock. */
INCSTACK_API int incstack_meter_snapshot_create(struct incstack_meter *meter, uint32_t flags,
						struct incstack_meter_snapshot **snapshot);

/* Frees a snapshot; null is allowed.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_meter_snapshot_destroy(struct incstack_meter_snapshot *snapshot);

/* The parent of a root's context. */
#define INCSTACK_METER_NONE UINT32_MAX

/* A calling context. Times are in ns, and calibrated unless stated otherwise. */
struct incstack_meter_context {
	size_t size;          /* sizeof(struct incstack_meter_context), set by the caller */
	uint32_t parent;      /* the number of the caller's context, which is smaller; or NONE */
	uint32_t is_counted;  /* 1: some calls were only counted */
	uint64_t thread;      /* its id; 0: threads that ended, or a sum over threads */
	uint64_t function;    /* of incstack_meter_method_create */
	uint64_t calls;       /* timed or only counted */
	uint64_t timed;       /* of the calls */
	uint64_t own_ns;      /* running, without callees: of timed calls by the clock, of others by samples */
	uint64_t total_ns;    /* running, with callees */
	uint64_t waiting_ns;  /* without callees */
	uint64_t sampled_ns;  /* own time by samples, where samples were taken */
	uint64_t measured_ns; /* own time, not calibrated */
	uint64_t error_ns;    /* how far own_ns may be off because prices vary */
};

/* Copies the context with a number, from 0, to *context. Errors: EINVAL, also for a number beyond the last
 * context, which ends a loop.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_meter_snapshot_context(const struct incstack_meter_snapshot *snapshot,
						 uint32_t number,
						 struct incstack_meter_context *context);

INCSTACK_END_C

#endif
