/* SPDX-License-Identifier: MIT
 *
 * Partial safepoints: a request asks for n samples. Each thread that reaches a poll
 * draws a ticket. The first n threads run the operation on themselves; the others
 * continue at once. No thread parks, and the requester does not wait (Gnedt 2014,
 * chapter 4; Hofer, Gnedt, Mössenböck, ICPE'15, sections 3 and 4). Independent of tracing.
 *
 * Conventions as in incstack.h; here `owner` is the thread that attached. A thread
 * is running, or it is waiting: blocked or in native code.
 */
#ifndef INCSTACK_SAFEPOINT_H
#define INCSTACK_SAFEPOINT_H

#ifndef __cplusplus
#include <stdatomic.h>
#endif

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* The coordinator: threads and requests. It belongs to the process that created it. A child
 * of fork lacks the other threads, so every function of a coordinator and of its requests
 * returns INCSTACK_EFORKED there and does nothing, with these exceptions: poll and wait_end
 * drop what was requested of the thread and return at once; wait_begin works; destroy frees
 * the coordinator even if threads are attached, and a sampler without its thread. The child may create its own
 * coordinator. This needs Linux 4.14; with an older kernel a child must not use it. */
struct incstack_safepoint;

/* A request for n samples. */
struct incstack_request;

/* ---- the poll word ----------------------------------------------------------- */

/* The complete state of a thread is one word, so every transition is one atomic
 * operation on it. 0: the thread runs, and there are no requests for it. */
#ifdef __cplusplus
typedef uint64_t incstack_poll_word;
#else
typedef _Atomic(uint64_t) incstack_poll_word;
#endif

/* Bit i below INCSTACK_WORD_REQUESTS: request i waits for this thread's ticket. */
#define INCSTACK_WORD_REQUESTS 48
#define INCSTACK_WORD_BUSY (UINT64_C(1) << 58)    /* at a poll: in an operation, or stopped */
#define INCSTACK_WORD_GONE (UINT64_C(1) << 59)    /* the thread has detached */
#define INCSTACK_WORD_SLEEP (UINT64_C(1) << 60)   /* blocked in wait_end; must be woken */
#define INCSTACK_WORD_STOP (UINT64_C(1) << 61)    /* a full safepoint is wanted */
#define INCSTACK_WORD_HELD (UINT64_C(1) << 62)    /* another thread works on this waiting one */
#define INCSTACK_WORD_WAITING (UINT64_C(1) << 63) /* blocked or in native code */

/* The public part of a thread; allocated by attach. */
struct incstack_thread {
	incstack_poll_word word; /* INCSTACK_WORD_*; compared with 0 at a poll */
	void *context; /* the embedder's; set by the owner before its first poll or wait_begin */
	uint64_t id;   /* never 0, never reused: names the thread even after it detached */
};

/* The slow paths of the three functions below, not part of the interface. */
INCSTACK_API void incstack__thread_poll_slow(struct incstack_thread *thread);
INCSTACK_API int incstack__thread_wait_begin_slow(struct incstack_thread *thread);
INCSTACK_API int incstack__thread_wait_end_slow(struct incstack_thread *thread);

/* Polls: one load, one compare, one branch. If the word is not 0, it runs operations and completion
 * callbacks, as wait_begin does. Inside an operation it does nothing. The fault handler of a VM that
 * polls by a protected page calls it, too. thread must not be null.
 * Thread: owner, running. Signal: no. Allocates: never. Blocks: while a full safepoint is in force. */
static inline void incstack_thread_poll(struct incstack_thread *thread)
{
	/* relaxed: a hint; the slow path reads the word again with acquire. */
#ifdef __cplusplus
	uint64_t word = __atomic_load_n(&thread->word, __ATOMIC_RELAXED);
#else
	uint64_t word = atomic_load_explicit(&thread->word, memory_order_relaxed);
#endif
	if (__builtin_expect(word != 0, 0))
		incstack__thread_poll_slow(thread);
}

/* Marks the thread as waiting. Call it before code that blocks and before native code. Other
 * threads may then access this thread's stack. Tickets are drawn as at a poll.
 * Errors: EINVAL: it is waiting already; EBUSY: called inside an operation.
 * Thread: owner, running. Signal: no. Allocates: never. Blocks: never. */
static inline int incstack_thread_wait_begin(struct incstack_thread *thread)
{
	uint64_t running = 0;
	/* release: the thread that holds this one sees what it did (acquire in hold). */
#ifdef __cplusplus
	if (__atomic_compare_exchange_n(&thread->word, &running, INCSTACK_WORD_WAITING, false,
					__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return 0;
#else
	if (atomic_compare_exchange_strong_explicit(&thread->word, &running, INCSTACK_WORD_WAITING,
						    memory_order_release, memory_order_relaxed))
		return 0;
#endif
	return incstack__thread_wait_begin_slow(thread);
}

/* Marks the thread as running again. Errors: EINVAL: the thread is not waiting.
 * Thread: owner, waiting. Signal: no. Allocates: never. Blocks: while a full
 * safepoint is in force or a requester works on this thread. */
static inline int incstack_thread_wait_end(struct incstack_thread *thread)
{
	uint64_t waiting = INCSTACK_WORD_WAITING;
	/* acquire: pairs with the release in unhold and in resume. */
#ifdef __cplusplus
	if (__atomic_compare_exchange_n(&thread->word, &waiting, UINT64_C(0), false,
					__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
#else
	if (atomic_compare_exchange_strong_explicit(&thread->word, &waiting, UINT64_C(0),
						    memory_order_acquire, memory_order_relaxed))
		return 0;
#endif
	return incstack__thread_wait_end_slow(thread);
}

/* ---- the coordinator ----------------------------------------------------------- */

/* The options of a coordinator. */
struct incstack_safepoint_options {
	size_t size;   /* sizeof(struct incstack_safepoint_options) */
	uint64_t seed; /* for the random choice among waiting threads; 0: a fixed seed */
};

/* Creates a coordinator. options may be null. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_safepoint_create(const struct incstack_safepoint_options *options,
					   struct incstack_safepoint **safepoint);

/* Frees the coordinator; null is allowed. Nothing is freed, ever, if a thread is still attached, or if a
 * request has not ended or was not released.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_safepoint_destroy(struct incstack_safepoint *safepoint);

/* Attaches the calling thread to the coordinator, as a running thread. Requests that already
 * exist ignore it. Errors: EINVAL, ENOMEM, EFORKED.
 * Thread: any. Signal: no. Allocates: may. Blocks: while a full safepoint is in force. */
INCSTACK_API int incstack_safepoint_attach(struct incstack_safepoint *safepoint,
					   struct incstack_thread **thread);

/* Detaches the thread and frees *thread. A request that counted on this thread gets one
 * sample less. Errors: ETHREAD: another thread attached it; EBUSY: called inside an operation;
 * EINVAL: the thread is waiting; EFORKED.
 * Thread: owner, running. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_thread_detach(struct incstack_thread *thread);

/* Makes the calling thread the owner of an attachment, for a runtime whose states move between threads of
 * the system. The former owner must have stopped using it. Errors: EINVAL; EBUSY: the former owner is
 * inside an operation; EFORKED.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_thread_adopt(struct incstack_thread *thread);

/* Starts a full safepoint. Returns 0 when every other attached thread is stopped at a poll or
 * waiting; they stay so until resume. `self` is the calling thread if it is attached and
 * running, else null; it counts as waiting until resume. Requests started before resume take their
 * samples after it, so the caller must not wait for them.
 * Errors: EINVAL, EFORKED; ETHREAD: another thread attached self; EBUSY: called inside an
 * operation; ETIMEDOUT: it took longer than
 * timeout_ns (0: no limit), all threads continue, and *missing (may be null) is the number
 * of threads that did not stop.
 * Thread: any. Signal: no. Allocates: never. Blocks: yes. */
INCSTACK_API int incstack_safepoint_stop(struct incstack_safepoint *safepoint,
					 struct incstack_thread *self, uint64_t timeout_ns,
					 uint32_t *missing);

/* Ends a full safepoint: all threads continue. If requests chose waiting threads during the
 * safepoint, it first runs their operations on behalf of those threads. A stop that times
 * out does the same. Errors: EINVAL, EFORKED; ETHREAD: another thread stopped.
 * Thread: the one that stopped, with the same self. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_safepoint_resume(struct incstack_safepoint *safepoint,
					   struct incstack_thread *self);

/* ---- requests -------------------------------------------------------------------- */

/* The argument of an operation: the ticket that was won. */
struct incstack_ticket {
	struct incstack_request *request; /* null in a sampler's full safepoint */
	struct incstack_thread *thread;   /* the thread to sample */
	uint64_t time;                    /* start of the operation, CLOCK_MONOTONIC, ns */
	uint32_t number;    /* from 0, separately for running and for waiting threads */
	uint32_t on_behalf; /* 1: another thread runs the operation; `thread` is waiting and held */
};

/* What runs for each ticket that was won. It must not begin to wait, stop or detach: these
 * calls return INCSTACK_EBUSY in it. */
typedef void incstack_operation(const struct incstack_ticket *ticket, void *argument);

/* The states of a request. */
enum incstack_request_state {
	INCSTACK_REQUEST_OPEN = 0, /* it has not ended */
	INCSTACK_REQUEST_COMPLETE, /* n samples were taken */
	/* Fewer than n: there were fewer threads, or some that it counted on detached. */
	INCSTACK_REQUEST_SHORT,
	INCSTACK_REQUEST_TIMED_OUT, /* closed by its deadline */
};

/* What became of a request. */
struct incstack_request_result {
	size_t size;      /* sizeof(struct incstack_request_result), set by the caller */
	uint32_t state;   /* enum incstack_request_state; the rest is final when not OPEN */
	uint32_t wanted;  /* n */
	uint32_t taken;   /* operations that have ended */
	uint32_t running; /* threads that ran when the request started */
	uint32_t waiting; /* threads that waited then and could be chosen */
	uint32_t absent;  /* running threads without a poll before the deadline closed it */
};

/* What runs when a request has ended. */
typedef void incstack_request_completed(struct incstack_request *request,
					const struct incstack_request_result *result, void *argument);

/* The flags of a request. */
enum {
	INCSTACK_REQUEST_WAITING = 1u << 0, /* waiting threads are sampled, too */
};

/* What a request asks for. */
struct incstack_request_options {
	size_t size; /* sizeof(struct incstack_request_options) */
	/* The ids of the threads to sample; null and 0: all threads. Detached threads are
	 * skipped, duplicates count once. The look-up takes count * attached steps. */
	const uint64_t *ids;
	uint32_t count; /* of ids */
	uint32_t n;     /* samples wanted, at least 1 */
	uint32_t flags; /* INCSTACK_REQUEST_* */
	/* The deadline, in ns from now; 0: none. It takes effect when a poll or wait sees it,
	 * or, after release, when a start needs the place of the request. */
	uint64_t deadline_ns;
	incstack_operation *operation; /* wait_begin, stop and detach return INCSTACK_EBUSY in it */
	/* Called on the thread that ends the request, possibly inside start. It must not
	 * block; it may start and release requests. May be null. */
	incstack_request_completed *completed;
	void *argument; /* passed to both */
};

/* Starts a request. Before it returns it runs the operation on the chosen waiting threads,
 * except on those that another requester holds or a full safepoint stops. For these the
 * other requester (before it releases the thread) or resume runs the operation. So this
 * function may also run operations of other requests.
 * With INCSTACK_REQUEST_WAITING, waiting threads get n * waiting / (running + waiting) of the
 * samples, rounded to nearest, halves up; running threads get the rest. Neither group gets more
 * samples than it has threads; the other group gets the surplus. Without it, running threads get all.
 * Threads are counted first and chosen later. Between the two they may begin or end a wait (the
 * virtual machine of the papers freezes them). Then the shares of running and waiting
 * threads differ by those threads; the sum does not.
 * *request is valid until incstack_request_release.
 * Errors: EINVAL, ENOMEM, EFORKED; EBUSY: INCSTACK_WORD_REQUESTS requests exist.
 * Algorithm: ICPE'15 sections 3.1 and 4; here no thread parks after its sample.
 * Thread: any. Signal: no. Allocates: may. Blocks: never for a thread's poll. */
INCSTACK_API int incstack_request_start(struct incstack_safepoint *safepoint,
					const struct incstack_request_options *options,
					struct incstack_request **request);

/* Waits until the request has ended, also by its deadline. Copies what became of it until now to
 * *result, also after ETIMEDOUT; result may be null. Do not call it from a running attached
 * thread, from an operation or a completion, or between stop and resume, unless timeout_ns is
 * short: it could wait for itself.
 * Errors: EINVAL, EFORKED; ETIMEDOUT: timeout_ns (0: no limit) have passed.
 * Thread: any, except as stated. Signal: no. Allocates: never. Blocks: yes. */
INCSTACK_API int incstack_request_wait(struct incstack_request *request, uint64_t timeout_ns,
				       struct incstack_request_result *result);

/* Gives up the handle; null is allowed. A request that is still open continues.
 * Thread: any, once. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_request_release(struct incstack_request *request);

INCSTACK_END_C

#endif
