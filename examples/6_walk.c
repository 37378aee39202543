/* SPDX-License-Identifier: MIT
 *
 * Walks without traces: a thread walks over its own stack in a signal handler, and another thread
 * walks over it from outside, while it waits in that handler. The walks go on frame by frame, so no
 * memory is needed for them, and the second one needs no room on the stack that it looks at.
 *
 * Link it with -rdynamic (CMake: ENABLE_EXPORTS), or dladdr does not know the functions.
 *
 * Build: cc -rdynamic 6_walk.c $(pkg-config --static --cflags --libs incstack-native)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <incstack/frames.h>
#include <incstack/native.h>

static struct incstack_runtime *runtime;
static struct incstack_stack *stack;
static int asks[2], answers[2]; /* pipes: a handler may read and write them */
static const void *interrupted; /* what the kernel has saved of the interrupted code */
static atomic_int own_depth, running, over;

/* The work: a recursion whose leaf runs until it is told to stop. */
int leaf(int depth);
int inner(int depth);

__attribute__((noinline)) int leaf(int depth)
{
	const struct incstack_top top = incstack_native_top(NULL);
	incstack_stack_sample(stack, 0, 1, &top); /* its barrier does not disturb a walk */
	running = 1;
	while (!over)
		continue;
	return depth;
}

__attribute__((noinline)) int inner(int depth)
{
	volatile int left = depth > 0 ? inner(depth - 1) : leaf(depth);
	return left + 1;
}

/* Begins a walk at the interrupted code. */
static int begin(struct incstack_frames *frames, const void *context)
{
	const struct incstack_frames_place place = {.stack = stack};
	const struct incstack_top top = incstack_native_top(context);
	return incstack_frames_begin(frames, &place, &top);
}

/* Counts the frames of the thread's own stack, then waits until the other thread has looked. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	struct incstack_frames frames;
	char byte = 0;
	(void)number;
	(void)info;
	if (begin(&frames, context) == 0)
		while (incstack_frames_next(&frames) > 0)
			own_depth++;
	interrupted = context;
	if (write(asks[1], &byte, 1) == 1)
		while (read(answers[0], &byte, 1) < 0)
			continue;
}

static void *work(void *result)
{
	if (incstack_stack_create_native(runtime, &stack))
		return NULL;
	inner(3);
	incstack_stack_destroy(stack);
	return result;
}

/* Prints the name of a function of this program. A return address lies behind its call. */
static void print_name(const struct incstack_frame *frame)
{
	uintptr_t address = frame->pc - !(frame->flags & INCSTACK_FRAME_EXACT);
	Dl_info info, own;
	if (dladdr((void *)address, &info) && dladdr((void *)(uintptr_t)inner, &own) &&
	    info.dli_fbase == own.dli_fbase && info.dli_sname)
		puts(info.dli_sname);
}

/* Returns how many frames there are. */
static int print_frames(void)
{
	struct incstack_frames frames;
	int count = 0;
	int more = begin(&frames, interrupted);
	for (; more >= 0 && (more = incstack_frames_next(&frames)) > 0; count++)
		print_name(&frames.frame);
	return more < 0 ? more : count;
}

int main(void)
{
	const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	pthread_t thread;
	char byte;
	if (incstack_runtime_create_native(NULL, &runtime) || pipe(asks) || pipe(answers) ||
	    sigaction(SIGUSR1, &action, NULL) || pthread_create(&thread, NULL, work, NULL))
		return 1;
	while (!running)
		usleep(1000);
	pthread_kill(thread, SIGUSR1);
	while (read(asks[0], &byte, 1) < 0)
		continue;
	int count = print_frames();
	over = 1;
	if (write(answers[1], "", 1) != 1 || pthread_join(thread, NULL))
		return 1;
	printf("%s\n", count == own_depth ? "both walks agree" : "the walks differ");
	incstack_runtime_destroy(runtime);
	return count <= 0;
}
