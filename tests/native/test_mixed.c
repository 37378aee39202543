/* SPDX-License-Identifier: MIT
 *
 * One trace over two stacks, in a toy interpreter that runs a random program. Its frames are nodes on the heap,
 * one machine frame of its loop runs many of them, and it calls C functions, which call the loop again and
 * catch errors. A list has the frames of both stacks in the order in which they were entered. Each trace must be
 * this list, frame by frame.
 */
#include <setjmp.h>
#include <string.h>

#include "two_stacks.h"

#include "../unit/run_suite.h"

enum { DEPTH_MAX = 250, SHOTS_MAX = 64, PROGRAMS = 12, STEPS = 2000 };

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

static struct entered list[DEPTH_MAX + 8];
static size_t depth;
static struct shot shots[SHOTS_MAX];
static uint32_t shot_count, steps_left;
static uint64_t compared, compared_frames, noticed;
static bool forgetful;

static uint32_t below(uint32_t n)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 16) % n;
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

static void remember(void)
{
	struct shot *shot = &shots[shot_count++];
	shot->count = depth;
	memcpy(shot->frames, list, depth * sizeof(*list));
}

/* A macro, because the function that samples is the top. */
#define SAMPLE() \
	do { \
		REQUIRE(sample_here((uintptr_t)top, shot_count) == 0); \
		remember(); \
		if (shot_count == SHOTS_MAX || below(10) == 0) \
			retrieve(); \
	} while (0)

/* ---- the interpreter ------------------------------------------------------------------ */

#define ENTER_MACHINE() \
	(list[depth++] = (struct entered){.cfa = (uintptr_t)__builtin_frame_address(0) + 16})

static void push(void)
{
	push_node(below(3), below(3));
	list[depth++] =
		(struct entered){.node = top, .function = top->function, .position = top->position};
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
	depth--;
	pop_node();
}

/* What catches an error: as many frames were there. */
struct handler {
	jmp_buf jump;
	struct node *top;
	size_t depth;
	struct handler *next;
};
static struct handler *handlers;

static NOINLINE void raise_error(void)
{
	struct handler *h = handlers;
	REQUIRE(incstack_stack_unwinding_to(machine_stack, (uintptr_t)h) == 0);
	REQUIRE(incstack_heap_stack_unwinding_to(heap_stack, (uintptr_t)top, (uintptr_t)h->top) ==
		0);
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

int main(void)
{
	Suite *suite = suite_create("mixed");
	TCase *random = tcase_create("random");
	tcase_add_loop_test(random, test_random_programs, 0, 20);
	tcase_add_loop_test(random, test_missing_anchors_are_noticed, 0, 5);
	suite_add_tcase(suite, random);
	return run_suite(suite);
}
