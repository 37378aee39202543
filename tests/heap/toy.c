/* SPDX-License-Identifier: MIT
 *
 * The toy interpreter: see toy.h.
 */
#include <string.h>

#include "toy.h"

struct toy toy;

void toy_fail(const char *file, int line, const char *condition)
{
	const struct toy_options *o = &toy.options;
	printf("%s:%d: %s\n(mode %u, distance %u, reports %d, lies %u, seed %llu)\n", file, line,
	       condition, (unsigned)o->mode, (unsigned)o->distance, (int)o->reports, o->lies,
	       (unsigned long long)o->seed);
	fflush(stdout);
	abort();
}

/* A number below n, from the bytes or else by chance (xorshift, Marsaglia 2003). */
uint32_t toy_below(uint32_t n)
{
	struct toy_options *o = &toy.options;
	if (o->bytes) {
		uint32_t number = 0;
		for (uint32_t reach = 1; reach < n && o->size; reach *= 256, o->size--)
			number = number << 8 | *o->bytes++;
		return number % n;
	}
	toy.random ^= toy.random << 13;
	toy.random ^= toy.random >> 7;
	toy.random ^= toy.random << 17;
	return (uint32_t)(toy.random >> 11) % n;
}

static bool lies(enum lies lie)
{
	const struct toy_options *o = &toy.options;
	if (!(o->lies & lie) || toy_below(o->lying))
		return false;
	toy.lied++;
	return true;
}

/* ---- the embedder's functions ------------------------------------------------------------ */

static uintptr_t walk(void *context, void *identity, uintptr_t name, struct incstack_heap_frame *f)
{
	const struct node *n = (const struct node *)name;
	REQUIRE(context == &toy && identity);
	REQUIRE(!f->position && !f->flags && !f->kind);
	REQUIRE(!n->gone || toy.options.lies & LIE_CIRCLE);
	toy_describe(n, f);
	if (n->marked && !lies(LIE_UNMARKED))
		f->flags |= INCSTACK_HEAP_MARKED;
	if (n->caller && lies(LIE_UNKNOWN))
		return INCSTACK_HEAP_UNKNOWN;
	if (n->caller && lies(LIE_CIRCLE))
		return (uintptr_t)toy.now->top;
	return (uintptr_t)n->caller;
}

static int mark(void *context, void *identity, uintptr_t name, int on)
{
	struct node *n = (struct node *)name;
	REQUIRE(context == &toy && identity);
	REQUIRE((!n->gone && n->marked == !on) || toy.options.lies & (LIE_UNMARKED | LIE_CIRCLE));
	if (n->gone || (on && lies(LIE_REFUSED)))
		return INCSTACK_EINVAL;
	toy.marks += (uint64_t)on - n->marked;
	n->marked = on;
	return 0;
}

static void *memory(void *context, void *old, size_t bytes)
{
	REQUIRE(context == &toy);
	if (old) {
		toy.allocated -= bytes;
		memset(old, 0x5a, bytes);
		free(old);
		return NULL;
	}
	if (toy.fail_after == 0)
		return NULL;
	toy.fail_after -= toy.fail_after > 0;
	void *fresh = malloc(bytes);
	REQUIRE(fresh != NULL);
	toy.allocated += bytes;
	return memset(fresh, 0xa5, bytes);
}

/* ---- the interpreter ----------------------------------------------------------------------- */

/* A failing allocation is no failure of the test. In a circle, the top may get a mark. */
int toy_expect(int error)
{
	const bool no_memory = toy.fail_after >= 0 && error == INCSTACK_ENOMEM;
	if (!no_memory && !(error == INCSTACK_EINVAL && toy.options.lies & LIE_CIRCLE))
		REQUIRE(error == 0);
	toy.errors += error != 0;
	return error;
}

static void begin_function(struct node *n)
{
	n->function = toy_below(8);
	n->position = toy_below(4);
	n->kind = (uint16_t)toy_below(3);
	n->seen = 0;
	toy.marks -= n->marked;
	n->marked = false;
}

void toy_call(void)
{
	struct node *n = toy.free_nodes;
	if (n)
		toy.free_nodes = n->caller;
	else
		n = calloc(1, sizeof(*n));
	REQUIRE(n != NULL);
	*n = (struct node){.caller = toy.now->top};
	begin_function(n);
	toy.now->top = n;
	toy.now->depth++;
}

static void pop(void)
{
	struct node *n = toy.now->top;
	toy.now->top = n->caller;
	toy.now->depth--;
	toy.marks -= n->marked;
	n->marked = false;
	n->gone = true;
	n->caller = toy.free_nodes;
	toy.free_nodes = n;
}

static void report(struct node *n)
{
	toy.marks -= n->marked;
	n->marked = false;
	int error = incstack_heap_stack_returned(toy.now->stack, (uintptr_t)n);
	if (error != INCSTACK_ERANGE || !toy.lied) /* the library has taken the mark for a lie */
		toy_expect(error);
}

static void tell(struct node *n)
{
	if (n && n->marked)
		report(n);
}

static void run_on(void)
{
	if (toy.now->top)
		toy.now->top->position = toy_below(4);
}

void toy_return(void)
{
	pop();
	tell(toy.now->top);
	run_on();
}

static bool is_above(const struct node *n, const struct node *handler)
{
	for (const struct node *p = handler; p; p = p->caller)
		if (p == n)
			return false;
	return true;
}

/* Tells of an error that `handler` handles, before the frames are popped. */
static void announce(const struct node *handler)
{
	struct incstack_heap_stack *stack = toy.now->stack;
	uintptr_t name;
	if (toy.options.reports == REPORT_ONCE) {
		toy_expect(incstack_heap_stack_unwinding_to(stack, (uintptr_t)toy.now->top,
							    (uintptr_t)handler));
		for (const struct node *n = toy.now->top; n != handler->caller; n = n->caller)
			REQUIRE(!n->marked || toy.options.lies || toy.errors);
	} else if (toy.options.reports == REPORT_MARKED) {
		while ((name = incstack_heap_stack_marked(stack, 0)) != 0 &&
		       is_above((struct node *)name, handler))
			report((struct node *)name);
	} else if (toy.options.reports == REPORT_EACH) {
		for (struct node *n = toy.now->top; n != handler; n = n->caller)
			tell(n);
	}
}

/* An error pops so many frames, or all but one. */
void toy_raise(uint32_t frames)
{
	struct node *handler = toy.now->top;
	for (; frames && handler->caller; frames--)
		handler = handler->caller;
	announce(handler);
	while (toy.now->top != handler)
		pop();
	if (toy.options.reports != REPORT_NOTHING)
		tell(handler);
	run_on();
}

/* A collector moves a frame, if the library can forget its name. */
static void move_frame(void)
{
	struct node **link = &toy.now->top;
	if (toy_expect(incstack_heap_stack_lift(toy.now->stack, (uintptr_t)toy.now->top)))
		return;
	for (uint32_t i = toy_below(toy.now->depth); i; i--)
		link = &(*link)->caller;
	struct node *old = *link, *copy = malloc(sizeof(*copy));
	REQUIRE(copy != NULL);
	*copy = *old;
	*link = copy;
	free(old);
}

/* ---- coroutines ------------------------------------------------------------------------------- */

static struct incstack_heap_stats stats_of(const struct coroutine *c)
{
	struct incstack_heap_stats stats = {.size = sizeof(stats)};
	REQUIRE(incstack_heap_stack_stats(c->stack, &stats) == 0);
	return stats;
}

static void add(struct incstack_heap_stats *sum, const struct coroutine *c)
{
	const struct incstack_heap_stats one = stats_of(c);
	sum->samples += one.samples;
	sum->walked += one.walked;
	sum->shared += one.shared;
	sum->returns += one.returns;
	sum->planted += one.planted;
	sum->refused += one.refused;
	sum->lost += one.lost;
	sum->truncated += one.truncated;
	sum->endless += one.endless;
	sum->stale += one.stale;
	sum->copies += one.copies;
	sum->marks += one.marks;
}

struct incstack_heap_stats toy_stats(void)
{
	struct incstack_heap_stats sum = toy.dead;
	for (int i = 0; i < COROUTINES; i++)
		add(&sum, &toy.coroutines[i]);
	return sum;
}

static void pop_all(void)
{
	while (toy.now->top)
		pop();
}

static void open_coroutine(struct coroutine *c)
{
	while (toy_expect(incstack_heap_stack_create(toy.heap, c, &c->stack)))
		toy.fail_after = -1;
}

static void end_coroutine(struct coroutine *c)
{
	toy_drop_samples(c);
	for (int i = 0; i < KEPT; i++)
		if (toy.kept[i].coroutine == c)
			toy.kept[i].coroutine = NULL;
	add(&toy.dead, c);
	toy.dead.marks = 0;
	incstack_heap_stack_destroy(c->stack);
	pop_all();
}

/* The coroutine returns from all its functions, or is collected. Then another one begins. */
static void die(void)
{
	if (toy.options.reports == REPORT_NOTHING || toy_below(2)) {
		REQUIRE(incstack_heap_stack_lift(toy.now->stack, 0) == 0);
		toy.forgotten++;
		pop_all();
	}
	while (toy.now->top)
		toy_return();
	if (toy_below(2))
		while (toy_retrieve())
			toy.fail_after = -1;
	end_coroutine(toy.now);
	open_coroutine(toy.now);
}

/* ---- random programs ---------------------------------------------------------------------------- */

static void step(void)
{
	struct coroutine *c = toy.now;
	const uint32_t dice = toy_below(256);
	if (!c->top || (dice < 100 && c->depth < toy.options.depth_max))
		toy_call();
	else if (dice < 180)
		toy_return();
	else if (dice < 190)
		toy_raise(toy_below(8));
	else if (dice < 191)
		toy_raise(toy_below(toy.options.depth_max));
	else if (dice < 195 && toy.options.reports != REPORT_NOTHING && !toy.options.still &&
		 toy_below(8) == 0)
		move_frame();
	else if (dice < 200)
		begin_function(c->top); /* a tail call */
	else if (dice < 206)
		toy.now = &toy.coroutines[toy_below(COROUTINES)];
	else if (dice < 220)
		toy_trace();
	else if (dice < 222 || c->samples == SNAPSHOTS)
		toy_retrieve();
	else if (dice < 223 && toy_below(20) == 0)
		die();
	else if (dice < 224 && toy_below(8) == 0)
		toy_expect(incstack_heap_stack_lift(c->stack, (uintptr_t)c->top));
	else
		toy_sample();
}

void toy_open(const struct toy_options *options)
{
	toy = (struct toy){.options = *options, .fail_after = -1};
	toy.random = options->seed + 88172645463325252u;
	if (!toy.options.depth_max)
		toy.options.depth_max = 200;
	const struct incstack_heap_options o = {.size = sizeof(o),
						.context = &toy,
						.walk = walk,
						.mark = mark,
						.memory = memory,
						.mode = options->mode,
						.frame_limit = options->lies ? 1000 : 0,
						.distance = options->distance};
	REQUIRE(incstack_heap_create(&o, &toy.heap) == 0);
	for (int i = 0; i < COROUTINES; i++)
		open_coroutine(&toy.coroutines[i]);
	toy.now = toy.coroutines;
	if (options->fail_after)
		toy.fail_after = options->fail_after;
}

/* Runs so many steps, or until the bytes end, and retrieves all that is left. */
void toy_run(uint64_t steps)
{
	while (steps-- && (!toy.options.bytes || toy.options.size))
		step();
	toy.fail_after = -1;
	toy.options.lies &= ~(unsigned)LIE_UNKNOWN;
	for (int i = 0; i < COROUTINES; i++) {
		toy.now = &toy.coroutines[i];
		REQUIRE(toy_retrieve() == 0);
	}
}

void toy_close(void)
{
	toy.fail_after = -1;
	for (int i = 0; i < COROUTINES; i++) {
		toy.now = &toy.coroutines[i];
		end_coroutine(toy.now);
	}
	REQUIRE(toy.marks == 0);
	incstack_heap_destroy(toy.heap);
	toy_drop_trees();
	REQUIRE(toy.allocated == 0);
	for (struct node *n = toy.free_nodes, *next; n; n = next) {
		next = n->caller;
		free(n);
	}
}
