/* SPDX-License-Identifier: MIT
 *
 * Partial safepoints: four threads work and poll. Each request wants samples of two of them; the
 * first two that reach a poll sample themselves, the others run on.
 * Build: cc 4_safepoints.c $(pkg-config --static --cflags --libs incstack-native)
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include <incstack/native.h>
#include <incstack/tracer.h>

enum { THREADS = 4, REQUESTS = 50, WANTED = 2 };

struct worker {
	pthread_t thread;
	struct incstack_thread *safepoint;
	struct incstack_stack *stack;
	struct incstack_top top; /* at the poll */
	int result;
};

static struct incstack_runtime *runtime;
static struct incstack_safepoint *safepoint;
static atomic_bool over;
static pthread_barrier_t attached;

/* The tracer asks where a thread that draws a ticket stands. It is at its poll. */
static int locate(void *context, const struct incstack_ticket *ticket,
		  struct incstack_stack **stack, struct incstack_top *top)
{
	const struct worker *worker = ticket->thread->context;

	(void)context;
	*stack = worker->stack;
	if (top == NULL)
		return 0;
	*top = worker->top;
	return incstack_stack_reserve(worker->stack, 4096);
}

/* The top of a trace is the caller of this function. */
__attribute__((noinline)) static void poll(struct worker *worker)
{
	const uintptr_t *frame = __builtin_frame_address(0);

	worker->top =
		(struct incstack_top){.pc = frame[1], .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
	incstack_thread_poll(worker->safepoint);
}

__attribute__((noinline)) static unsigned work(struct worker *worker, int depth)
{
	unsigned sum = depth > 0 ? work(worker, depth - 1) : 0;

	poll(worker);
	return sum + (unsigned)depth;
}

static void *run(void *argument)
{
	struct worker *worker = argument;

	worker->result = incstack_stack_create_native(runtime, &worker->stack) ||
			 incstack_safepoint_attach(safepoint, &worker->safepoint);
	if (worker->result == 0)
		worker->safepoint->context = worker;
	pthread_barrier_wait(&attached);
	while (worker->result == 0 && !over)
		work(worker, 30);
	if (worker->result == 0)
		worker->result = incstack_thread_detach(worker->safepoint);
	incstack_stack_destroy(worker->stack);
	return NULL;
}

static int trace(struct incstack_tracer *tracer)
{
	const struct incstack_tracer_request two = {.size = sizeof(two), .n = WANTED, .weight = 1};
	struct incstack_traces *traces;
	struct incstack_request *request = NULL;
	int error = 0;

	for (int i = 0; i < REQUESTS && error == 0; i++) {
		error = incstack_tracer_request(tracer, &two, &request) ||
			incstack_request_wait(request, 0, NULL);
		incstack_request_release(request);
	}
	if (error || incstack_tracer_retrieve(tracer, NULL, 0, 0, &traces))
		return 1;
	uint64_t sum = 0;
	for (const struct incstack_thread_traces *t = traces->threads; t; t = t->next)
		sum += t->tree->count;
	printf("%d requests for %d samples each: %" PRIu64 " traces\n", REQUESTS, WANTED, sum);
	incstack_traces_release(traces);
	return 0;
}

int main(void)
{
	static struct worker workers[THREADS];
	struct incstack_tracer_options options = {.size = sizeof(options), .locate = locate};
	struct incstack_tracer *tracer;

	if (incstack_runtime_create_native(NULL, &runtime) ||
	    incstack_safepoint_create(NULL, &safepoint))
		return 1;
	options.safepoint = safepoint;
	pthread_barrier_init(&attached, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, run, &workers[i]);
	pthread_barrier_wait(&attached);
	int error = incstack_tracer_create(&options, &tracer) || trace(tracer);
	over = 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		error |= workers[i].result;
	}
	incstack_tracer_destroy(tracer);
	incstack_safepoint_destroy(safepoint);
	incstack_runtime_destroy(runtime);
	return error;
}
