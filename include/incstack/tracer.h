/* SPDX-License-Identifier: MIT
 *
 * Traces of a set of threads: one call requests them, another one retrieves them (Gnedt
 * 2014, section 3.3; Hofer, Gnedt, Mössenböck, ICPE'15, section 5.3). The tracer joins the
 * two parts that do not know each other: requests at safepoints, and traces of stacks.
 * Use it if each attached thread runs on one traced stack at a time.
 *
 * Conventions as in incstack.h and safepoint.h.
 */
#ifndef INCSTACK_TRACER_H
#define INCSTACK_TRACER_H

#include <incstack/safepoint.h>

INCSTACK_BEGIN_C

/* Requests and retrieves traces of the threads of one coordinator. */
struct incstack_tracer;

/* The options of a tracer. */
struct incstack_tracer_options {
	size_t size;                          /* sizeof(struct incstack_tracer_options) */
	struct incstack_safepoint *safepoint; /* the coordinator of the threads */
	/* Finds the stack on which the thread of the ticket runs, and its top frame, and makes
	 * room for a sample there (incstack_stack_reserve). `top` is null for a retrieve.
	 * Returns 0, or a negative INCSTACK_E* if the thread has nothing to sample: counted as
	 * empty. It is called like an operation: on that thread at its poll, or, while it
	 * waits, on another thread. The tracer does not make the calling thread the owner of
	 * the stack: call incstack_stack_set_owner before incstack_stack_reserve. */
	int (*locate)(void *context, const struct incstack_ticket *ticket,
		      struct incstack_stack **stack, struct incstack_top *top);
	void *context; /* passed to locate */
};

/* Creates a tracer. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_tracer_create(const struct incstack_tracer_options *options,
					struct incstack_tracer **tracer);

/* Frees the tracer; null is allowed. Nothing is freed, ever, if a request of it has not ended.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_tracer_destroy(struct incstack_tracer *tracer);

/* What a request for traces asks for. ids, count, n, flags and deadline_ns are those of struct
 * incstack_request_options. */
struct incstack_tracer_request {
	size_t size;          /* sizeof(struct incstack_tracer_request) */
	const uint64_t *ids;  /* the threads to sample; null and 0: all */
	uint32_t count;       /* of ids */
	uint32_t n;           /* samples wanted, at least 1 */
	uint32_t flags;       /* INCSTACK_REQUEST_* */
	uint64_t deadline_ns; /* in ns from now; 0: none */
	uint64_t id;          /* the identifier of each trace */
	uint64_t weight; /* the weight of each trace. 0: the time from this call to the sample, in
	                  * ns, at least 1 */
};

/* Requests samples of n threads of the set, and does not wait for them. If `handle` is not
 * null, *handle is the request, for incstack_request_wait and incstack_request_release.
 * Errors: as incstack_request_start. Algorithm: Gnedt 2014, section 3.3.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never for a thread's poll. */
INCSTACK_API int incstack_tracer_request(struct incstack_tracer *tracer,
					 const struct incstack_tracer_request *request,
					 struct incstack_request **handle);

/* The traces of one thread, at least one. */
struct incstack_thread_traces {
	struct incstack_thread_traces *next; /* the traces of another thread; in no order */
	uint64_t thread;                     /* the id of its incstack_thread */
	struct incstack_tree *tree;          /* belongs to the struct incstack_traces */
};

/* What incstack_tracer_retrieve hands over. */
struct incstack_traces {
	struct incstack_thread_traces *threads; /* null if there are no traces */
	/* Threads of the set that keep their traces for the next retrieve: those that did not
	 * reach a poll in time, and those for which there was no memory. */
	uint64_t missing;
};

/* Retrieves the traces of the threads with the ids; null and 0: of all threads. Every thread
 * retrieves at its next poll, those that wait are retrieved at once. Returns when all have done
 * so, or timeout_ns (0: no limit) have passed. A thread that detaches must retrieve before that
 * (incstack_stack_retrieve). For the calling thread alone, incstack_stack_retrieve is simpler.
 * Errors, after none of which a trace is lost: EINVAL, ENOMEM, EFORKED; EBUSY:
 * INCSTACK_WORD_REQUESTS requests exist.
 * Thread: any that may call incstack_request_wait: not attached, or waiting.
 * Signal: no. Allocates: malloc, and as incstack_stack_retrieve. Blocks: yes. */
INCSTACK_API int incstack_tracer_retrieve(struct incstack_tracer *tracer, const uint64_t *ids,
					  uint32_t count, uint64_t timeout_ns,
					  struct incstack_traces **traces);

/* Frees the traces and their trees; null is allowed. Call it before the runtime is destroyed.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_traces_release(struct incstack_traces *traces);

/* Counters since the creation of a tracer. */
struct incstack_tracer_stats {
	size_t size;        /* sizeof(struct incstack_tracer_stats), set by the caller */
	uint64_t samples;   /* samples taken */
	uint64_t empty;     /* tickets of threads with nothing to sample */
	uint64_t refused;   /* samples that the stack refused; incstack_stack_stats tells why */
	uint64_t retrieved; /* traces handed over */
};

/* Copies the counters to *stats. Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_tracer_stats(const struct incstack_tracer *tracer,
				       struct incstack_tracer_stats *stats);

INCSTACK_END_C

#endif
