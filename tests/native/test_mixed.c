/* SPDX-License-Identifier: MIT
 *
 * One trace over two stacks, in a toy interpreter that runs a random program. Its frames are nodes on the heap,
 * one machine frame of its loop runs many of them, and it calls C functions, which call the loop again and
 * catch errors. A list has the frames of both stacks in the order in which they were entered. Each trace must be
 * this list, frame by frame.
 */
#include <check.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/mixed.h>
#include <incstack/native.h>

#include "../unit/run_suite.h"

#define NOINLINE __attribute__((noinline))

/* ck_assert writes to a file each time. */
#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
			ck_abort_msg(#condition); \
	} while (0)

enum { DEPTH_MAX = 250, SHOTS_MAX = 64, PROGRAMS = 12, STEPS = 2000 };

/* A frame of the interpreter. */
struct node {
	struct node *caller;
	uint32_t function, position;
	bool marked;
	const void *
		machine; /* the machine frame that runs this frame, of those the outermost; or null */
};

/* What was entered: a machine frame, by the value of its stack pointer before its call; or a node. */
struct entered {
	uintptr_t cfa;
	const struct node *node;
	uint32_t function, position;
	bool is_loop, forgotten; /* a machine frame of the loop; one whose anchor is missing */
};

/* The list at the time of a sample. */
struct shot {
	size_t count;
	struct entered frames[DEPTH_MAX + 8];
};

static struct incstack_runtime *runtime;
static struct incstack_stack *machine_stack;
static struct incstack_heap *heap;
static struct incstack_heap_stack *heap_stack;
static struct incstack_mixed mixed;
static struct node *top;
static struct entered list[DEPTH_MAX + 8];
static size_t depth;
static struct shot shots[SHOTS_MAX];
static uint32_t shot_count, steps_left;
static uint64_t compared, compared_frames, noticed;
static bool no_memory, forgetful;

static uint32_t below(uint32_t n)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 16) % n;
}

/* ---- the embedder ------------------------------------------------------------------ */

static uintptr_t walk(void *context, void *identity, uintptr_t name, struct incstack_heap_frame *f)
{
	const struct node *n = (const struct node *)(name & ~(uintptr_t)1);
	(void)context;
	(void)identity;
	if (name & 1) {
		f->function = (uintptr_t)n->machine;
		f->flags = INCSTACK_MIXED_ANCHOR;
		return (uintptr_t)n->caller;
	}
	f->function = n->function;
	f->position = n->position;
	f->flags = n->marked ? INCSTACK_HEAP_MARKED : 0;
	return n->machine ? name | 1 : (uintptr_t)n->caller;
}

static int mark(void *context, void *identity, uintptr_t name, int on)
{
	(void)context;
	(void)identity;
	if (name & 1)
		return -1;
	((struct node *)name)->marked = on;
	return 0;
}

static void *memory(void *context, void *old, size_t bytes)
{
	(void)context;
	if (!old)
		return no_memory ? NULL : malloc(bytes);
	free(old);
	return NULL;
}

static void open_all(int32_t distance, uint32_t mode)
{
	const struct incstack_options options = {
		.size = sizeof(options), .distance = distance, .mode = mode};
	const struct incstack_heap_options heap_options = {
		.size = sizeof(heap_options),
		.walk = walk,
		.mark = mark,
		.memory = memory,
		.mode = mode,
		.distance = distance < 0 ? 0 : (uint32_t)distance + 1};
	ck_assert_int_eq(incstack_runtime_create_native(&options, &runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(runtime, &machine_stack), 0);
	ck_assert_int_eq(incstack_heap_create(&heap_options, &heap), 0);
	ck_assert_int_eq(incstack_heap_stack_create(heap, NULL, &heap_stack), 0);
	ck_assert_int_eq(incstack_mixed_init(&mixed, machine_stack, heap_stack), 0);
	shot_count = 0;
}

static void close_all(void)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	struct incstack_heap_stats heap_stats = {.size = sizeof(heap_stats)};
	ck_assert_int_eq(incstack_stack_stats(machine_stack, &stats), 0);
	ck_assert_int_eq(incstack_heap_stack_stats(heap_stack, &heap_stats), 0);
	ck_assert_uint_eq(stats.stale + stats.truncated, 0);
	ck_assert_uint_eq(heap_stats.stale + heap_stats.truncated, 0);
	incstack_mixed_clear(&mixed);
	incstack_heap_destroy(heap);
	incstack_stack_destroy(machine_stack);
	incstack_runtime_destroy(runtime);
}

/* ---- samples and the comparison ------------------------------------------------------ */

/* Whether a machine frame is one of the loop. */
static int expect_loop(void *context, const struct incstack_frame_object *o)
{
	const struct shot *shot = context;
	for (size_t i = 0; o->parent && i < shot->count; i++)
		if (shot->frames[i].is_loop && shot->frames[i].cfa == o->parent->address)
			return INCSTACK_MIXED_ALWAYS;
	return INCSTACK_MIXED_NEVER;
}

static bool is_same(const struct incstack_mixed_frames *f, const struct entered *e)
{
	if (!e->node)
		return f->machine && f->machine->parent && f->machine->parent->address == e->cfa;
	return f->heap && f->heap->frame.name == (uintptr_t)e->node &&
	       f->heap->frame.function == e->function && f->heap->frame.position == e->position;
}

/* What must be shown: a loop lies below the frames that it runs. The outermost frame of the interpreter, which
 * no machine frame runs, comes last, behind the callers of the program. */
static void compare_frames(struct incstack_mixed_frames *f, const struct shot *shot)
{
	for (size_t i = shot->count; --i > 0;) {
		REQUIRE(incstack_mixed_frames_next(f) == 1);
		REQUIRE(is_same(f, &shot->frames[i]));
		REQUIRE(f->flags == (shot->frames[i].is_loop ? INCSTACK_MIXED_RUNS : 0u));
	}
	while (incstack_mixed_frames_next(f) && f->machine)
		REQUIRE(f->flags == 0);
	REQUIRE(is_same(f, &shot->frames[0]));
	REQUIRE(incstack_mixed_frames_next(f) == 0);
	REQUIRE(f->loose == 0);
}

/* Every loop without an anchor is noticed, and no other one. */
static void compare_loose(struct incstack_mixed_frames *f, const struct shot *shot)
{
	uint32_t forgotten = 0;
	for (size_t i = 0; i < shot->count; i++)
		forgotten += shot->frames[i].forgotten;
	while (incstack_mixed_frames_next(f))
		REQUIRE(!(f->flags & INCSTACK_MIXED_LOOSE) || f->machine);
	REQUIRE(f->loose == forgotten);
	noticed += forgotten;
}

static void compare(const struct incstack_mixed_trace *trace, struct shot *shot)
{
	struct incstack_mixed_frames f;
	REQUIRE(trace->weight == trace->id + 7);
	REQUIRE(incstack_mixed_frames_begin(&f, trace, expect_loop, shot) == 0);
	(forgetful ? compare_loose : compare_frames)(&f, shot);
	compared++;
	compared_frames += shot->count;
}

static void retrieve(void)
{
	struct incstack_mixed_tree tree;
	struct incstack_mixed_trace trace = {0};
	uint32_t count = 0;
	REQUIRE(incstack_mixed_retrieve(&mixed, (uintptr_t)top, &tree) == 0);
	while (incstack_mixed_tree_next(&tree, &trace)) {
		REQUIRE(trace.id == count);
		compare(&trace, &shots[count++]);
	}
	REQUIRE(count == shot_count);
	incstack_mixed_tree_release(&tree);
	shot_count = 0;
}

/* Its caller is the top of the machine's stack. */
static NOINLINE int sample_here(uintptr_t heap_top)
{
	const uintptr_t *fp = __builtin_frame_address(0);
	const struct incstack_top here = {.pc = fp[1], .sp = (uintptr_t)(fp + 2), .fp = fp[0]};
	return incstack_mixed_sample(&mixed, &here, heap_top, shot_count, shot_count + 7u);
}

static void remember(void)
{
	struct shot *shot = &shots[shot_count++];
	shot->count = depth;
	memcpy(shot->frames, list, depth * sizeof(*list));
}

/* A macro, because the function that samples is the top. */
#define SAMPLE() \
	do { \
		REQUIRE(sample_here((uintptr_t)top) == 0); \
		remember(); \
		if (shot_count == SHOTS_MAX || below(10) == 0) \
			retrieve(); \
	} while (0)

/* ---- the interpreter ------------------------------------------------------------------ */

#define ENTER_MACHINE() \
	(list[depth++] = (struct entered){.cfa = (uintptr_t)__builtin_frame_address(0) + 16})

static struct node *push(void)
{
	struct node *n = malloc(sizeof(*n));
	*n = (struct node){.caller = top, .function = below(3), .position = below(3)};
	list[depth++] =
		(struct entered){.node = n, .function = n->function, .position = n->position};
	return top = n;
}

static void set_position(uint32_t position)
{
	top->position = position;
	for (size_t i = depth; i-- > 0;)
		if (list[i].node == top) {
			list[i].position = position;
			return;
		}
}

static void pop(void)
{
	struct node *gone = top;
	top = gone->caller;
	free(gone);
	depth--;
	if (top && top->marked) {
		top->marked = false;
		REQUIRE(incstack_heap_stack_returned(heap_stack, (uintptr_t)top) == 0);
	}
}

/* What catches an error: as many frames were there. */
struct handler {
	jmp_buf jump;
	struct node *top;
	size_t depth;
	struct handler *next;
};
static struct handler *handlers;

static void drop_to(const struct node *end)
{
	while (top != end) {
		struct node *gone = top;
		top = gone->caller;
		free(gone);
	}
}

static NOINLINE void raise_error(void)
{
	struct handler *h = handlers;
	REQUIRE(incstack_stack_unwinding_to(machine_stack, (uintptr_t)h) == 0);
	REQUIRE(incstack_heap_stack_unwinding_to(heap_stack, (uintptr_t)h->top) == 0);
	drop_to(h->top);
	depth = h->depth;
	longjmp(h->jump, 1);
}

static void loop(void);

static NOINLINE void calls_back(void)
{
	ENTER_MACHINE();
	if (below(2))
		SAMPLE();
	loop();
	if (below(2))
		SAMPLE();
	depth--;
}

static NOINLINE void calls_back_twice(void)
{
	ENTER_MACHINE();
	calls_back();
	loop();
	depth--;
}

static NOINLINE void catches(void)
{
	struct handler here;
	ENTER_MACHINE();
	here.top = top;
	here.depth = depth;
	here.next = handlers;
	handlers = &here;
	if (setjmp(here.jump) == 0)
		loop();
	handlers = here.next;
	SAMPLE();
	depth--;
}

static inline __attribute__((always_inline)) void call_machine(void)
{
	static void (*const functions[])(void) = {calls_back, calls_back_twice, catches};
	functions[below(3)]();
}

static NOINLINE void call_or_return(uint32_t step)
{
	if (step < 7 && steps_left && depth < DEPTH_MAX - 8)
		push();
	else
		pop();
}

/* The loop: `here` lies in its frame. */
static NOINLINE void loop(void)
{
	volatile char here = 0;
	struct node *const caller = top;
	ENTER_MACHINE();
	struct entered *entered = &list[depth - 1];
	push();
	entered->is_loop = true;
	entered->forgotten = forgetful && below(3) == 0;
	if (!entered->forgotten)
		top->machine = (const void *)(uintptr_t)&here;
	while (top != caller) {
		const uint32_t step = steps_left ? below(20) : 10;
		steps_left -= steps_left > 0;
		if (step < 14) {
			call_or_return(step);
		} else if (step < 17) {
			SAMPLE();
		} else if (step < 19 && depth < DEPTH_MAX - 8) {
			set_position(below(4));
			call_machine();
		} else if (step == 19 && handlers && below(4) == 0) {
			raise_error();
		} else {
			set_position(below(4));
		}
	}
	depth--;
}

/* ---- tests --------------------------------------------------------------------------- */

static void run_programs(void)
{
	compared = compared_frames = noticed = 0;
	for (int i = 0; i < PROGRAMS; i++) {
		steps_left = STEPS;
		push(); /* the frame of the program, which no machine frame runs */
		while (steps_left)
			call_machine();
		retrieve();
		pop();
		REQUIRE(depth == 0);
	}
	ck_assert_uint_gt(compared, 1000);
	ck_assert_uint_gt(compared_frames, 10 * compared);
}

static const int32_t distances[] = {INCSTACK_DISTANCE_ADAPTIVE, 0, 1, 3, 60};

START_TEST(test_random_programs)
{
	const uint32_t modes[] = {INCSTACK_MODE_PATCH, INCSTACK_MODE_PATCH, INCSTACK_MODE_VALIDATE,
				  INCSTACK_MODE_FULL};
	open_all(distances[_i % 5], modes[_i % 4]);
	run_programs();
	close_all();
}
END_TEST

START_TEST(test_missing_anchors_are_noticed)
{
	forgetful = true;
	open_all(distances[_i], INCSTACK_MODE_PATCH);
	run_programs();
	ck_assert_uint_gt(noticed, 1000);
	close_all();
}
END_TEST

static void take_and_count(int error, uint32_t id)
{
	shot_count = id;
	ck_assert_int_eq(sample_here((uintptr_t)top), error);
	shot_count = 0;
}

/* More frames than a chunk of memory has place for. */
static void push_many(void)
{
	for (int i = 0; i < 5000; i++, depth--)
		push();
}

/* The interpreter's part of a sample is refused, then its part of a retrieve. */
START_TEST(test_failures_half_way)
{
	struct incstack_mixed_tree tree;
	struct incstack_mixed_trace trace = {0};
	open_all(0, INCSTACK_MODE_PATCH);
	push_many();
	no_memory = true;
	take_and_count(INCSTACK_ENOMEM, 1);
	no_memory = false;
	ck_assert_int_eq(sample_here(0), INCSTACK_EINVAL);
	take_and_count(0, 2);
	no_memory = true;
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, (uintptr_t)top, &tree), INCSTACK_ENOMEM);
	take_and_count(INCSTACK_EBUSY, 3);
	no_memory = false;
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, (uintptr_t)top, &tree), 0);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), 1);
	ck_assert_uint_eq(trace.id, 2);
	ck_assert_uint_eq(trace.weight, 9);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), 0);
	incstack_mixed_tree_release(&tree);
	push_many();
	take_and_count(0, 4);
	no_memory = true;
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, (uintptr_t)top, &tree), INCSTACK_ENOMEM);
	incstack_mixed_clear(&mixed); /* a leak would be reported by the address sanitizer */
	ck_assert_ptr_null(mixed.kept);
	no_memory = false;
	incstack_heap_destroy(heap);
	drop_to(NULL);
	incstack_stack_destroy(machine_stack);
	incstack_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mixed");
	TCase *random = tcase_create("random");
	tcase_add_loop_test(random, test_random_programs, 0, 20);
	tcase_add_loop_test(random, test_missing_anchors_are_noticed, 0, 5);
	tcase_add_test(random, test_failures_half_way);
	suite_add_tcase(suite, random);
	return run_suite(suite);
}
