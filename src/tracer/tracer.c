/* SPDX-License-Identifier: MIT
 *
 * Traces of a set of threads: requests, and their retrieval.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <incstack/tracer.h>

struct incstack_tracer {
	struct incstack_tracer_options options;
	_Atomic(uint64_t) open; /* requests that have not ended */
	_Atomic(uint64_t) samples, empty, refused, retrieved;
};

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* relaxed: counters order nothing. */
static void count(_Atomic(uint64_t) *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

int incstack_tracer_create(const struct incstack_tracer_options *options,
			   struct incstack_tracer **tracer)
{
	if (!options || !tracer || options->size != sizeof(*options) || !options->safepoint ||
	    !options->locate)
		return INCSTACK_EINVAL;
	struct incstack_tracer *made = calloc(1, sizeof(*made));
	if (!made)
		return INCSTACK_ENOMEM;
	made->options = *options;
	*tracer = made;
	return 0;
}

void incstack_tracer_destroy(struct incstack_tracer *tracer)
{
	/* acquire: partner is the release in finish; that was the last use of the tracer. */
	if (tracer && !atomic_load_explicit(&tracer->open, memory_order_acquire))
		free(tracer);
}

int incstack_tracer_stats(const struct incstack_tracer *tracer, struct incstack_tracer_stats *stats)
{
	if (!tracer || !stats || stats->size != sizeof(*stats))
		return INCSTACK_EINVAL;
	stats->samples = atomic_load_explicit(&tracer->samples, memory_order_relaxed);
	stats->empty = atomic_load_explicit(&tracer->empty, memory_order_relaxed);
	stats->refused = atomic_load_explicit(&tracer->refused, memory_order_relaxed);
	stats->retrieved = atomic_load_explicit(&tracer->retrieved, memory_order_relaxed);
	return 0;
}

/* Returns the stack of the ticket's thread, or null if there is none. The caller then owns the
 * stack. */
static struct incstack_stack *locate(struct incstack_tracer *tracer,
				     const struct incstack_ticket *ticket, struct incstack_top *top)
{
	struct incstack_stack *stack = NULL;
	if (tracer->options.locate(tracer->options.context, ticket, &stack, top) || !stack ||
	    incstack_stack_set_owner(stack))
		return NULL;
	return stack;
}

/* ---- request ----------------------------------------------------------------------- */

/* The argument of one request's operation. It is freed when the request has ended. */
struct order {
	struct incstack_tracer *tracer;
	uint64_t id, weight, start;
};

static uint64_t weight_of(const struct order *order, const struct incstack_ticket *ticket)
{
	if (order->weight)
		return order->weight;
	return ticket->time > order->start ? ticket->time - order->start : 1;
}

static void sample(const struct incstack_ticket *ticket, void *argument)
{
	const struct order *order = argument;
	struct incstack_top top = {0};
	struct incstack_stack *stack = locate(order->tracer, ticket, &top);
	if (!stack)
		count(&order->tracer->empty, 1);
	else if (incstack_stack_sample(stack, order->id, weight_of(order, ticket), &top))
		count(&order->tracer->refused, 1);
	else
		count(&order->tracer->samples, 1);
}

static void finish(struct order *order)
{
	struct incstack_tracer *tracer = order->tracer;
	free(order);
	/* release: partner is the acquire in destroy. */
	atomic_fetch_sub_explicit(&tracer->open, 1, memory_order_release);
}

static void sampled(struct incstack_request *request, const struct incstack_request_result *result,
		    void *argument)
{
	(void)request, (void)result;
	finish(argument);
}

int incstack_tracer_request(struct incstack_tracer *tracer,
			    const struct incstack_tracer_request *request,
			    struct incstack_request **handle)
{
	if (!tracer || !request || request->size != sizeof(*request))
		return INCSTACK_EINVAL;
	struct order *order = malloc(sizeof(*order));
	if (!order)
		return INCSTACK_ENOMEM;
	*order = (struct order){
		.tracer = tracer, .id = request->id, .weight = request->weight, .start = now()};
	const struct incstack_request_options options = {.size = sizeof(options),
							 .ids = request->ids,
							 .count = request->count,
							 .n = request->n,
							 .flags = request->flags,
							 .deadline_ns = request->deadline_ns,
							 .operation = sample,
							 .completed = sampled,
							 .argument = order};
	struct incstack_request *started;
	count(&tracer->open, 1);
	int error = incstack_request_start(tracer->options.safepoint, &options, &started);
	if (error) {
		finish(order);
		return error;
	}
	if (handle)
		*handle = started;
	else
		incstack_request_release(started);
	return 0;
}

/* ---- retrieve ---------------------------------------------------------------------- */

/* One call of retrieve. It lives on the stack of the caller, who waits for the last operation. */
struct collection {
	struct incstack_tracer *tracer;
	_Atomic(struct incstack_thread_traces *) parts;
	_Atomic(uint64_t) failed; /* threads that keep their traces for want of memory */
};

/* release: partner is the acquire of incstack_tracer_retrieve. */
static void push(struct collection *collection, struct incstack_thread_traces *part)
{
	part->next = atomic_load_explicit(&collection->parts, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&collection->parts, &part->next, part,
						      memory_order_release, memory_order_relaxed))
		;
}

/* Nothing is taken from the stack before there is a place for it. */
static void take(const struct incstack_ticket *ticket, void *argument)
{
	struct collection *collection = argument;
	struct incstack_stack *stack = locate(collection->tracer, ticket, NULL);
	if (!stack)
		return;
	struct incstack_thread_traces *part = malloc(sizeof(*part));
	if (!part || incstack_stack_retrieve(stack, &part->tree)) {
		free(part);
		count(&collection->failed, 1);
		return;
	}
	part->thread = ticket->thread->id;
	push(collection, part);
}

static void free_part(struct incstack_thread_traces *part)
{
	incstack_tree_release(part->tree);
	free(part);
}

/* Returns the parts that have traces. Frees the others. */
static struct incstack_thread_traces *with_traces(struct incstack_tracer *tracer,
						  struct incstack_thread_traces *parts)
{
	struct incstack_thread_traces *kept = NULL;
	while (parts) {
		struct incstack_thread_traces *part = parts;
		parts = part->next;
		if (!part->tree->count) {
			free_part(part);
			continue;
		}
		count(&tracer->retrieved, part->tree->count);
		part->next = kept;
		kept = part;
	}
	return kept;
}

static int collect(struct collection *collection, const uint64_t *ids, uint32_t count,
		   uint64_t timeout_ns, uint64_t *missing)
{
	const struct incstack_request_options options = {.size = sizeof(options),
							 .ids = ids,
							 .count = count,
							 .n = INT32_MAX,
							 .flags = INCSTACK_REQUEST_WAITING,
							 .deadline_ns = timeout_ns,
							 .operation = take,
							 .argument = collection};
	struct incstack_request_result result = {.size = sizeof(result)};
	struct incstack_request *request;
	int error =
		incstack_request_start(collection->tracer->options.safepoint, &options, &request);
	if (error)
		return error;
	/* After this no operation runs any more, whether the deadline has passed or not. */
	incstack_request_wait(request, 0, &result);
	incstack_request_release(request);
	*missing = result.absent + collection->failed;
	return 0;
}

int incstack_tracer_retrieve(struct incstack_tracer *tracer, const uint64_t *ids, uint32_t count,
			     uint64_t timeout_ns, struct incstack_traces **traces)
{
	struct collection collection = {.tracer = tracer};
	if (!tracer || !traces)
		return INCSTACK_EINVAL;
	struct incstack_traces *made = calloc(1, sizeof(*made));
	if (!made)
		return INCSTACK_ENOMEM;
	int error = collect(&collection, ids, count, timeout_ns, &made->missing);
	if (error) {
		free(made);
		return error;
	}
	made->threads =
		with_traces(tracer, atomic_load_explicit(&collection.parts, memory_order_acquire));
	*traces = made;
	return 0;
}

void incstack_traces_release(struct incstack_traces *traces)
{
	while (traces && traces->threads) {
		struct incstack_thread_traces *part = traces->threads;
		traces->threads = part->next;
		free_part(part);
	}
	free(traces);
}
