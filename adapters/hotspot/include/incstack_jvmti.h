/* SPDX-License-Identifier: MIT
 *
 * The JVMTI extension functions of a HotSpot that has libincstack inside. An agent finds
 * them with GetExtensionFunctions, by the ids below. A JVM has all of them or none. This
 * header is all that an agent needs, beside <jvmti.h> and <incstack/incstack.h>.
 *
 * A request asks threads for samples and does not wait for the walk over their stacks
 * (Gnedt 2014, section 3.3; Hofer, Gnedt, Mössenböck, ICPE'15, section 5.3). Much later
 * and more seldom the agent retrieves the traces of many requests. An agent that samples
 * a thread should retrieve its traces in the event ThreadEnd, which comes on that thread.
 * What it did not retrieve by then is dropped, and counted as lost.
 *
 * Conventions:
 *   - The functions may be called in the live phase, by any thread that is attached to the
 *     JVM, also by several at once, and in callbacks of JVMTI events except those in which
 *     JVMTI allows no calls (GarbageCollectionStart, GarbageCollectionFinish, ObjectFree).
 *     In another phase they return JVMTI_ERROR_WRONG_PHASE.
 *   - They return JVMTI_ERROR_NULL_POINTER for a null pointer where null is not allowed,
 *     JVMTI_ERROR_ILLEGAL_ARGUMENT for other wrong arguments, JVMTI_ERROR_OUT_OF_MEMORY
 *     where memory ran out. Then nothing was written and nothing changed. Other errors are
 *     named with each function.
 *   - A structure begins with its size, which the caller sets to sizeof. The JVM reads and
 *     writes only as much. Fields are only ever added at the end.
 *   - `thread_count` and `threads` name a set of threads; 0 and null mean all. A thread that
 *     is not alive, a virtual thread and a hidden thread of the JVM are skipped. A thread
 *     that is listed twice counts once.
 *   - Times are in nanoseconds of CLOCK_MONOTONIC.
 *   - The functions belong to the JVM and not to one environment: two agents would take each
 *     other's traces. So there should be one agent that uses them.
 */
#ifndef INCSTACK_JVMTI_H
#define INCSTACK_JVMTI_H

#include <jvmti.h>

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* ---- request ----------------------------------------------------------------------- */

enum {
	/* Threads that wait (blocked, sleeping, or in native code) are sampled, too. The calling
	 * thread samples them. n is split in proportion to how many threads run and how many wait, but if
	 * n is 2 or more, both groups get a sample. */
	INCSTACK_JVMTI_WAITING = 1u << 0,
	/* All threads are stopped in a full safepoint, and `n` of them are sampled there.
	 * Without it, the first threads to reach a poll sample themselves: a partial safepoint. */
	INCSTACK_JVMTI_FULL_SAFEPOINT = 1u << 1,
	/* Every sample walks the whole stack. Without it, stacks are traced incrementally.
	 * The samples of one thread may differ in this from request to request. */
	INCSTACK_JVMTI_FULL_WALK = 1u << 2,
	/* The call returns when the request has ended. Without it, the call returns when the
	 * waiting threads are sampled and the running ones will sample themselves. A request
	 * with FULL_SAFEPOINT has always ended. */
	INCSTACK_JVMTI_WAIT = 1u << 3,
};

struct incstack_jvmti_request {
	size_t size;
	int64_t id;   /* the agent's, kept with each trace: incstack_trace.id */
	uint64_t due; /* when the samples were due; each trace tells how late it is. 0: now */
	/* How long the request stays open, in ns from now. Then tickets that were not drawn are
	 * lost. 0: until the next request, which closes it. */
	uint64_t deadline_ns;
	uint32_t n;     /* samples wanted; 0: as many as the process may use processors */
	uint32_t flags; /* INCSTACK_JVMTI_* */
};

/* What came of a request, as far as it is known when the call returns. */
struct incstack_jvmti_requested {
	size_t size;
	uint32_t wanted;  /* n, or the number of threads in the set if that is less */
	uint32_t taken;   /* samples taken before the call returned */
	uint32_t running; /* threads of the set that ran when the request started */
	uint32_t waiting; /* threads that waited; 0 without INCSTACK_JVMTI_WAITING */
	uint64_t traces;  /* of all requests since the JVM began, retrieved or not */
};

/* jvmtiError RequestTraces(jvmtiEnv *env,
 *                          jint thread_count, const jthread *threads,
 *                          const struct incstack_jvmti_request *request,
 *                          struct incstack_jvmti_requested *requested)
 *
 * Requests samples of threads of the set. A thread that is hidden from JVMTI is not sampled. The
 * calling thread, and those that agents started, are sampled only if `threads` names them. The
 * first of the n samples is the caller's own then, taken before the call returns; so an agent
 * can trace the thread of an event. A thread without a Java frame counts as sampled and gives
 * no trace. `requested` may be null. Memory for traces is allocated at the poll of the sampled
 * thread, before its sample, if there is too little.
 * Errors: JVMTI_ERROR_INVALID_THREAD: an element of `threads` is not a thread;
 * JVMTI_ERROR_NOT_AVAILABLE: too many requests are open. */
#define INCSTACK_JVMTI_REQUEST_TRACES "incstack.RequestTraces"

/* ---- retrieve ---------------------------------------------------------------------- */

/* The traces of one thread, oldest first, that were requested since the last retrieve. Traces of
 * full walks and incremental ones are in trees of their own: a thread with both has two.
 *
 * In a frame object `method` is a method key (below), `bci` the position in its bytecode, or
 * -1: a native method or unknown. Objects with INCSTACK_OBJECT_VIRTUAL are those whose callee
 * is inlined into them. INCSTACK_OBJECT_BASE is set where the trace is complete; where
 * INCSTACK_OBJECT_TRUNCATED is set instead, the callers are unknown. In a trace `id` is
 * that of the request, and `weight` the time from `due` to the sample, in ns, at least 1.
 *
 * The tree may be passed to incstack_profile_add_tree. It belongs to the agent until
 * ReleaseTraces, and no thread of the JVM reads it any more. */
struct incstack_jvmti_thread_traces {
	jthread thread;    /* a JNI local reference, as GetAllStackTraces makes; null if that
	                    * could not be made. ReleaseTraces does not delete it. */
	uint32_t reserved; /* 0 */
	uint32_t flags;    /* 0 */
	int64_t thread_id; /* java.lang.Thread.getId(): never reused in one JVM */
	struct incstack_tree *tree;
};

struct incstack_jvmti_traces {
	size_t count;
	struct incstack_jvmti_thread_traces *threads; /* count; only those with traces */
};

/* jvmtiError RetrieveTraces(jvmtiEnv *env,
 *                           jint thread_count, const jthread *threads,
 *                           struct incstack_jvmti_traces **traces)
 *
 * Completes the open traces of the set, and hands over all its traces. The threads then have
 * none. Each thread is held only while its own stack is walked; there is no full safepoint.
 * With a set of only the calling thread no other thread is touched, which makes it cheap in
 * ThreadEnd. *traces is never null after success; release it, also if its count is 0.
 * Open requests stay open. With JVMTI_ERROR_OUT_OF_MEMORY no trace is lost: those that could
 * not be handed over are in the next retrieve. Errors: JVMTI_ERROR_INVALID_THREAD. */
#define INCSTACK_JVMTI_RETRIEVE_TRACES "incstack.RetrieveTraces"

/* jvmtiError ReleaseTraces(jvmtiEnv *env, struct incstack_jvmti_traces *traces)
 *
 * Frees what RetrieveTraces handed over. Null is allowed. May also be called in the event
 * VMDeath, but not after it: the JVM's end frees all. */
#define INCSTACK_JVMTI_RELEASE_TRACES "incstack.ReleaseTraces"

/* ---- methods ----------------------------------------------------------------------- */

/* A method key is a number from 1 to 2^56 - 1. It names one version of one method, also after
 * its class was redefined or unloaded, until the JVM ends, and is never reused. It is no
 * jmethodID. The upper byte of incstack_frame_object.function is the kind of the frame. */
#define INCSTACK_JVMTI_METHOD_KEY(method) ((method) & ((UINT64_C(1) << 56) - 1))
#define INCSTACK_JVMTI_METHOD_KIND(method) ((uint32_t)((method) >> 56))

enum incstack_jvmti_kind {
	INCSTACK_JVMTI_KIND_UNKNOWN = 0,
	INCSTACK_JVMTI_KIND_INTERPRETED,
	INCSTACK_JVMTI_KIND_C1,
	INCSTACK_JVMTI_KIND_C2,
	INCSTACK_JVMTI_KIND_NATIVE, /* a native method */
};

/* Strings are in modified UTF-8, as everywhere in JVMTI. Each was made with Allocate of the
 * environment, and the agent frees it with Deallocate. */
struct incstack_jvmti_method {
	size_t size;
	char *class_signature; /* "Ljava/lang/String;", as GetClassSignature */
	char *name;            /* "indexOf", as GetMethodName */
	char *signature;       /* "(I)I" */
	char *source_file;     /* "String.java"; null if the class does not say */
	int32_t line;          /* the source line of `bci`; -1: unknown, or class unloaded */
	uint32_t unloaded;     /* 1: the class was unloaded or the method is obsolete */
};

/* jvmtiError DescribeMethod(jvmtiEnv *env, jlong method, jint bci,
 *                           struct incstack_jvmti_method *description)
 *
 * Names a method and a position in it. `method` may have the kind in its upper byte. The
 * names are known also after the class was unloaded; the line is then -1.
 * Errors: JVMTI_ERROR_INVALID_METHODID: there was never such a key. */
#define INCSTACK_JVMTI_DESCRIBE_METHOD "incstack.DescribeMethod"

/* ---- statistics and check ---------------------------------------------------------- */

/* Counters since the JVM started, over all threads, also those that have ended. */
struct incstack_jvmti_statistics {
	size_t size;
	uint64_t requests;     /* calls of RequestTraces that succeeded */
	uint64_t wanted;       /* samples wanted by them */
	uint64_t traces;       /* samples taken that have a trace */
	uint64_t empty;        /* samples taken of threads without a Java frame */
	uint64_t lost_closed;  /* tickets that nobody had drawn when the request closed */
	uint64_t lost_refused; /* samples refused: no memory, or an operation in progress */
	uint64_t lost_ended;   /* traces of threads that ended before they were retrieved */
	uint64_t truncated;    /* frame objects whose callers are unknown */
	uint64_t returns;      /* returns intercepted */
	uint64_t stale;        /* barriers whose frames were popped without notice */
	uint64_t walked;       /* frames that were walked */
	uint64_t methods;      /* method keys in use */
	uint64_t crosschecked; /* traces compared with a full walk; see SetCheck */
	uint64_t mismatches;   /* traces that differ from it */
	uint64_t skipped;      /* traces that should have been compared and were not */
};

/* jvmtiError GetStatistics(jvmtiEnv *env, struct incstack_jvmti_statistics *statistics) */
#define INCSTACK_JVMTI_GET_STATISTICS "incstack.GetStatistics"

/* jvmtiError SetCheck(jvmtiEnv *env, jint on)
 *
 * 1 switches the check on, 0 off: each sample that is traced incrementally also walks the
 * whole stack, and at retrieve the two are compared frame by frame (method, bci, inlining).
 * It costs far more than a full walk. Differences are counted; the first few are described
 * on the standard error. Errors: JVMTI_ERROR_ILLEGAL_ARGUMENT: neither 0 nor 1. */
#define INCSTACK_JVMTI_SET_CHECK "incstack.SetCheck"

/* ---- types of the functions -------------------------------------------------------- */

/* GetExtensionFunctions returns them all as jvmtiExtensionFunction, which takes any arguments.
 * Pass them with exactly the types above: a literal 0 for a jlong is too short. */

INCSTACK_END_C

#endif
