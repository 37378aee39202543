/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 700
 *
 * Threads leave their frames by unannounced jumps, fill the memory of those frames with
 * others, and allocate nothing more until the process ends. Their traces must not get callers from
 * that memory.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct way {
	void *before[5];
	int left, later; /* how many frames are left, and how many come then */
};

static int at_the_end;
static volatile int over;

__attribute__((noinline)) static void allocate(void)
{
	void *volatile block = malloc(32);

	free(block);
}

__attribute__((noinline)) static void go_down_and_jump(struct way *way, int frames)
{
	char local[64];

	memset(local, frames, sizeof(local));
	allocate();
	__asm__ volatile("" : : "r"(local) : "memory");
	if (frames == 0)
		__builtin_longjmp(way->before, 1);
	go_down_and_jump(way, frames - 1);
	__asm__ volatile("");
}

__attribute__((noinline)) static void leave_frames(struct way *way)
{
	if (__builtin_setjmp(way->before) == 0)
		go_down_and_jump(way, way->left);
	__asm__ volatile(""); /* no tail call: the jump comes back to this frame */
}

__attribute__((noinline)) static void wait_deeper(int frames)
{
	char local[200];

	memset(local, 0x41, sizeof(local));
	__asm__ volatile("" : : "r"(local) : "memory");
	if (frames > 0)
		wait_deeper(frames - 1);
	__atomic_fetch_add(&at_the_end, 1, __ATOMIC_SEQ_CST);
	while (!over) /* never; gcc warns of a recursion without an end */
		pause();
}

static void *run(void *argument)
{
	struct way *way = argument;

	for (int i = 0; i < 30; i++)
		allocate();
	leave_frames(way);
	wait_deeper(way->later);
	return argument;
}

int main(void)
{
	static struct way ways[] = {{.left = 20, .later = 0},  {.left = 20, .later = 12},
				    {.left = 60, .later = 1},  {.left = 60, .later = 3},
				    {.left = 60, .later = 20}, {.left = 200, .later = 8}};
	enum { WAYS = sizeof(ways) / sizeof(ways[0]) };
	pthread_t thread;

	for (int i = 0; i < WAYS; i++)
		if (pthread_create(&thread, NULL, run, &ways[i]) != 0)
			exit(1);
	while (__atomic_load_n(&at_the_end, __ATOMIC_SEQ_CST) < WAYS)
		usleep(100);
	exit(0);
}
