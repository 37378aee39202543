/* SPDX-License-Identifier: MIT
 *
 * Partial safepoints: a request wants n samples, each thread that reaches a poll
 * draws a ticket, the first n run the operation on themselves and the others go
 * on at once. Nobody parks and the requester does not wait (Gnedt 2014, chapter
 * 4; Hofer, Gnedt, Mössenböck, ICPE'15, section 4). Independent of tracing.
 *
 * Functions state Thread / Signal / Allocates / Blocks as in incstack.h; here
 * `owner` is the thread that attached. Where nothing else is said, a function
 * returns 0 or a negative INCSTACK_E*.
 */
#ifndef INCSTACK_SAFEPOINT_H
#define INCSTACK_SAFEPOINT_H

#ifndef __cplusplus
#include <stdatomic.h>
#endif

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

enum incstack_safepoint_error {
	INCSTACK_ETIMEDOUT = -20, /* the time ended before the event */
	INCSTACK_EFORKED = -21,   /* the coordinator belongs to the parent of this process */
};

/* The coordinator: threads and requests. It belongs to the process that made it. In a
 * child of fork the other threads are gone, so every function of a coordinator, of its
 * requests and of its samplers returns INCSTACK_EFORKED there and does nothing, with these
 * exceptions: poll and leave forget what was asked of the thread, and return at once;
 * enter works; destroy frees the coordinator, whatever is attached. The child may make
 * a coordinator of its own. From Linux 4.14 on; before, a child must not use it. */
struct incstack_safepoint;
struct incstack_request;

/* ---- the poll word ----------------------------------------------------------- */

/* Everything that may happen to a thread meets in one word, so every transition
 * is one atomic operation on it. 0: runs, nobody wants anything. */
#ifdef __cplusplus
typedef uint64_t incstack_poll_word;
#else
typedef _Atomic(uint64_t) incstack_poll_word;
#endif

/* Bit i below INCSTACK_WORD_REQUESTS: request i waits for this thread's ticket. */
#define INCSTACK_WORD_REQUESTS 48
#define INCSTACK_WORD_BUSY (UINT64_C(1) << 58)  /* at a poll: in an operation, or stopped */
#define INCSTACK_WORD_GONE (UINT64_C(1) << 59)  /* has detached */
#define INCSTACK_WORD_SLEEP (UINT64_C(1) << 60) /* sleeps at the gate, wants to be woken */
#define INCSTACK_WORD_STOP (UINT64_C(1) << 61)  /* a full safepoint is wanted */
#define INCSTACK_WORD_HELD (UINT64_C(1) << 62)  /* somebody works on this safe thread */
#define INCSTACK_WORD_SAFE (UINT64_C(1) << 63)  /* blocked or in native code */

/* The public part of a thread; allocated by attach. */
struct incstack_safepoint_thread {
	incstack_poll_word word;
	void *context; /* the embedder's; by the owner, before it first polls or goes safe */
	uint64_t id;   /* never 0, never used again: names the thread also when it has gone */
};

/* What incstack_poll and the transitions below call when the word is not 0; also
 * for the fault handler of a VM that polls by a page. Runs operations and
 * completion callbacks; from inside an operation it does nothing.
 * Thread: owner. Signal: no. Allocates: never. Blocks: while a full safepoint is in force. */
INCSTACK_API void incstack_safepoint_poll_slow(struct incstack_safepoint_thread *thread);
INCSTACK_API int incstack_safepoint_enter_slow(struct incstack_safepoint_thread *thread);
INCSTACK_API int incstack_safepoint_leave_slow(struct incstack_safepoint_thread *thread);

/* One load, one compare, one branch. thread must not be null.
 * Thread: owner, running. Signal: no. Allocates: never. Blocks: see poll_slow. */
static inline void incstack_poll(struct incstack_safepoint_thread *thread)
{
	/* relaxed: a hint; poll_slow reads the word again with acquire. */
#ifdef __cplusplus
	uint64_t word = __atomic_load_n(&thread->word, __ATOMIC_RELAXED);
#else
	uint64_t word = atomic_load_explicit(&thread->word, memory_order_relaxed);
#endif
	if (__builtin_expect(word != 0, 0))
		incstack_safepoint_poll_slow(thread);
}

/* Goes safe: before blocking or native code. Others may then look at this
 * thread's stack. Tickets are drawn as at a poll. INCSTACK_EINVAL when it is safe
 * already, INCSTACK_EBUSY when found inside an operation, which must not do this.
 * Thread: owner, running. Signal: no. Allocates: never. Blocks: never. */
static inline int incstack_safepoint_enter(struct incstack_safepoint_thread *thread)
{
	uint64_t running = 0;
	/* release: what this thread did is visible to who holds it (acquire in hold). */
#ifdef __cplusplus
	if (__atomic_compare_exchange_n(&thread->word, &running, INCSTACK_WORD_SAFE, false,
					__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return 0;
#else
	if (atomic_compare_exchange_strong_explicit(&thread->word, &running, INCSTACK_WORD_SAFE,
						    memory_order_release, memory_order_relaxed))
		return 0;
#endif
	return incstack_safepoint_enter_slow(thread);
}

/* Comes back through the gate. INCSTACK_EINVAL when the thread is not safe.
 * Thread: owner, safe. Signal: no. Allocates: never. Blocks: while a full
 * safepoint is in force or a requester works on this thread. */
static inline int incstack_safepoint_leave(struct incstack_safepoint_thread *thread)
{
	uint64_t safe = INCSTACK_WORD_SAFE;
	/* acquire: partner is the release of unhold and of resume. */
#ifdef __cplusplus
	if (__atomic_compare_exchange_n(&thread->word, &safe, UINT64_C(0), false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return 0;
#else
	if (atomic_compare_exchange_strong_explicit(&thread->word, &safe, UINT64_C(0),
						    memory_order_acquire, memory_order_relaxed))
		return 0;
#endif
	return incstack_safepoint_leave_slow(thread);
}

/* ---- the coordinator ----------------------------------------------------------- */

/* The steps of the protocol, by the names that tests/model/ticket.pml uses. */
enum incstack_safepoint_step {
	INCSTACK_STEP_HOLD = 0,  /* before a waiting thread is claimed */
	INCSTACK_STEP_ARM,       /* before a bit is set */
	INCSTACK_STEP_REARM,     /* armed; before looking whether it was in vain */
	INCSTACK_STEP_CLAIM,     /* before a thread, or who holds it, clears its bit to draw */
	INCSTACK_STEP_DRAW,      /* before a ticket is drawn */
	INCSTACK_STEP_BEGIN,     /* ticket won; before its operation counts as started */
	INCSTACK_STEP_OPERATION, /* started; before the operation */
	INCSTACK_STEP_DISARM,    /* before one thread's bit is cleared by another */
	INCSTACK_STEP_DROP,      /* before a reference is given up */
	INCSTACK_STEP_FINISH,    /* last reference gone; before the callback */
	INCSTACK_STEP_CLOSE,     /* before cancel or deadline closes the tickets */
	INCSTACK_STEP_DRAIN,     /* cancel looks whether winners have started */
	INCSTACK_STEP_UNHOLD,    /* before a waiting thread is let go */
	INCSTACK_STEP_ENTER,     /* before a thread goes safe */
	INCSTACK_STEP_LEAVE,     /* before a thread leaves safe */
	INCSTACK_STEP_GONE,      /* before a thread says that it is gone */
	INCSTACK_STEP_STOP,      /* before a thread is told to stop */
	INCSTACK_STEP_RESUME,    /* before a thread is told to go on */
	INCSTACK_STEP_COUNT
};

struct incstack_safepoint_options {
	size_t size;   /* sizeof(struct incstack_safepoint_options) */
	uint64_t seed; /* of the choice among waiting threads; 0: a fixed one */
	/* For tests: called between the steps, in slow paths only. May be null. */
	void (*step)(void *context, enum incstack_safepoint_step step);
	void *context;
};

/* options may be null. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_safepoint_create(const struct incstack_safepoint_options *options,
					   struct incstack_safepoint **safepoint);

/* INCSTACK_EBUSY while a thread is attached or a request is not ended or not released.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_safepoint_destroy(struct incstack_safepoint *safepoint);

/* Makes the caller a thread of the coordinator, running. Requests that exist do
 * not see it. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: while a full safepoint is in force. */
INCSTACK_API int incstack_safepoint_attach(struct incstack_safepoint *safepoint,
					   struct incstack_safepoint_thread **thread);

/* Gives up the thread's claims and frees it. A request that counted on one of them gets a
 * sample less. INCSTACK_EBUSY from inside an operation,
 * INCSTACK_EINVAL while safe.
 * Thread: owner, running. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_safepoint_detach(struct incstack_safepoint_thread *thread);

/* How n tickets are split: waiting threads get n * waiting / (running + waiting),
 * rounded to nearest, halves up; running ones the rest. Neither gets more than
 * it has threads, what one cannot use goes to the other.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_safepoint_split(uint32_t running, uint32_t waiting, uint32_t n,
					  uint32_t *from_running, uint32_t *from_waiting);

/* Full safepoint: returns 0 when every other attached thread is stopped at a poll
 * or safe, and stays so until resume. Requests made meanwhile take their samples after
 * resume, so the stopper must not wait for them. self: the calling thread if it is attached
 * and running, else null; it is safe until resume. INCSTACK_ETIMEDOUT when that takes
 * longer than timeout_ns (0: no limit): all go on, *missing (may be null) says
 * how many did not come. INCSTACK_EBUSY from inside an operation.
 * Thread: any. Signal: no. Allocates: never. Blocks: yes. */
INCSTACK_API int incstack_safepoint_stop(struct incstack_safepoint *safepoint,
					 struct incstack_safepoint_thread *self,
					 uint64_t timeout_ns, uint32_t *missing);

/* Lets all go on. Runs the operations of requests that chose waiting threads while those
 * were stopped, on their behalf; so it also does when a stop ends with INCSTACK_ETIMEDOUT.
 * Thread: the one that stopped, with the same self. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_safepoint_resume(struct incstack_safepoint *safepoint,
					   struct incstack_safepoint_thread *self);

/* ---- requests -------------------------------------------------------------------- */

/* What a winner's operation is told. */
struct incstack_ticket {
	struct incstack_request *request;
	struct incstack_safepoint_thread *thread; /* whom to sample */
	uint64_t time;      /* of the start, CLOCK_MONOTONIC, ns */
	uint32_t number;    /* 0.. among running, 0.. among waiting threads */
	uint32_t on_behalf; /* 1: another thread runs it; the thread is safe and held */
};

typedef void incstack_operation(const struct incstack_ticket *ticket, void *argument);
typedef void incstack_request_completed(struct incstack_request *request, void *argument);

enum {
	INCSTACK_REQUEST_WAITING = 1u << 0, /* waiting threads are sampled, too */
};

/* Between stop and resume: runs the operation for up to n of the stopped threads,
 * chosen at random, with ticket->request null and on_behalf 1. From those that ran
 * when they were stopped; with INCSTACK_REQUEST_WAITING from both kinds, split as
 * above. Returns how many; INCSTACK_EINVAL when nobody has stopped the threads.
 * Thread: the one that stopped. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_safepoint_visit(struct incstack_safepoint *safepoint, uint32_t n,
					  uint32_t flags, incstack_operation *operation,
					  void *argument);

struct incstack_request_options {
	size_t size; /* sizeof(struct incstack_request_options) */
	/* Whom, by id; null and 0: all. Who has detached is skipped, doubles count once.
	 * Looked up in count * attached steps. */
	const uint64_t *ids;
	uint32_t count;
	uint32_t n;           /* samples wanted, at least 1 */
	uint32_t flags;       /* INCSTACK_REQUEST_* */
	/* From now; 0: none. Acts when a poll or an ask meets it, or, once the request has
	 * been released, a start that needs its place. */
	uint64_t deadline_ns;
	incstack_operation *operation; /* must not go safe, stop or detach: INCSTACK_EBUSY */
	/* On the thread that finishes the request, maybe in start; may be null,
	 * must not block, may start and release requests. */
	incstack_request_completed *completed;
	void *argument; /* of both */
};

enum incstack_request_state {
	INCSTACK_REQUEST_OPEN = 0,
	INCSTACK_REQUEST_COMPLETE,  /* n samples */
	/* Fewer: there were fewer threads than n, or some that it counted on detached. */
	INCSTACK_REQUEST_SHORT,
	INCSTACK_REQUEST_TIMED_OUT, /* closed by its deadline */
	INCSTACK_REQUEST_CANCELLED,
};

struct incstack_request_result {
	size_t size;      /* sizeof(struct incstack_request_result), set by the caller */
	uint32_t state;   /* enum incstack_request_state; the rest is final when not OPEN */
	uint32_t wanted;  /* n */
	uint32_t taken;   /* operations ended */
	uint32_t running; /* threads that ran when it started */
	uint32_t waiting; /* threads that waited then and could be chosen */
	uint32_t absent;  /* running ones that had not come when deadline or cancel closed it */
};

/* Starts a request; the operation has been run on the chosen waiting threads when
 * this returns, except on those that another requester holds or a full safepoint stops.
 * For these the other requester runs it before it lets go, or resume does; so this may
 * also run the operations of others. Threads are counted, then chosen, and may go safe or
 * come back between the two (the papers' virtual machine freezes them meanwhile): then the
 * shares differ from incstack_safepoint_split by those threads, the sum does not.
 * INCSTACK_EBUSY: INCSTACK_WORD_REQUESTS requests exist. *request lives until released.
 * Errors: EINVAL, EBUSY, ENOMEM, EFORKED.
 * Thread: any. Signal: no. Allocates: may. Blocks: never for a thread's poll. */
INCSTACK_API int incstack_request_start(struct incstack_safepoint *safepoint,
					const struct incstack_request_options *options,
					struct incstack_request **request);

/* A request of one sample of one thread, wherever that is; no deadline. It ends
 * without a sample when the thread has gone. As incstack_request_start. */
INCSTACK_API int incstack_request_handshake(struct incstack_safepoint *safepoint, uint64_t id,
					    incstack_operation *operation, void *argument,
					    struct incstack_request **request);

/* After it returns no operation starts (takes its ticket's time); those that have
 * started may still run, completion tells when the last has ended.
 * Thread: any, also an operation. Signal: no. Allocates: never. Blocks: for threads
 * that stand between winning a ticket and starting. */
INCSTACK_API int incstack_request_cancel(struct incstack_request *request);

/* The state of a request; this is where a deadline takes effect.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_request_ask(struct incstack_request *request,
				      struct incstack_request_result *result);

/* Waits for the end, the request's deadline included; INCSTACK_ETIMEDOUT after timeout_ns
 * (0: no limit). Not by an attached thread that runs, by an operation, or between stop
 * and resume: it could wait for itself.
 * Thread: any. Signal: no. Allocates: never. Blocks: yes. */
INCSTACK_API int incstack_request_wait(struct incstack_request *request, uint64_t timeout_ns);

/* Gives up the handle, also of an open request, which goes on.
 * Thread: any, once. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_request_release(struct incstack_request *request);

INCSTACK_END_C

#endif
