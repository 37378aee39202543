/* SPDX-License-Identifier: MIT
 *
 * Allocates blocks of all kinds: never touched, touched in part, between freed ones, in the arena of a thread, read only,
 * given back. Prints for each function how many bytes of its live blocks mincore says to be resident, a block's bytes
 * being those on resident pages. Then it ends; with "wait" it first waits for the end of its input, with "busy" it allocates
 * until then, with "fork" a child shares its pages.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PAGE = 4096, BLOCKS_MOST = 4000 };

static struct {
	const char *function;
	char *block;
	size_t bytes;
} blocks[BLOCKS_MOST];
static size_t count;

static void *keep(const char *function, void *block, size_t bytes)
{
	if (!block || count == BLOCKS_MOST)
		abort();
	blocks[count].function = function;
	blocks[count].block = block;
	blocks[count++].bytes = bytes;
	return block;
}

static void never(void)
{
	enum { BYTES = 64 << 20 };

	keep(__func__, malloc(BYTES), BYTES);
}

static void touched(void)
{
	enum { BYTES = (3 << 20) + 77 };

	memset(keep(__func__, malloc(BYTES), BYTES), 1, BYTES);
}

static void sparse(void)
{
	enum { BYTES = 8 << 20 };
	char *block = keep(__func__, malloc(BYTES), BYTES);

	for (size_t at = 0; at < BYTES; at += (size_t)2 * PAGE)
		block[at] = 1;
}

static void small(void)
{
	enum { COUNT = 20000, BYTES = 200, KEPT = 50 };
	static char *all[COUNT];

	for (int i = 0; i < COUNT; i++) {
		all[i] = malloc(BYTES);
		memset(all[i], 1, BYTES);
	}
	for (int i = 0; i < COUNT; i++)
		if (i % KEPT == 0)
			keep(__func__, all[i], BYTES);
		else
			free(all[i]);
}

static void zeros(void)
{
	enum { BYTES = 300 << 10 };
	volatile char *block = keep(__func__, calloc(1, BYTES), BYTES);
	char sum = 0;

	for (size_t at = 0; at < BYTES; at += PAGE)
		sum |= block[at];
	if (sum)
		abort();
}

static void aligned(void)
{
	enum { BYTES = 20000, COUNT = 10 };

	for (int i = 0; i < COUNT; i++)
		memset(keep(__func__, aligned_alloc(256, BYTES), BYTES), 1, BYTES / 2);
}

static char *page_of(char *block)
{
	return (char *)(((uintptr_t)block + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
}

static void given_back(void)
{
	enum { BYTES = 4 << 20, HALF = BYTES / 2 };
	char *block = keep(__func__, malloc(BYTES), BYTES);

	memset(block, 1, BYTES);
	if (madvise(page_of(block), HALF, MADV_DONTNEED) != 0)
		abort();
}

static void lazily(void)
{
	enum { BYTES = 1 << 20 };
	char *block = keep(__func__, malloc(BYTES), BYTES);

	memset(block, 1, BYTES);
	madvise(page_of(block), BYTES / 2, MADV_FREE);
}

static void moved(void)
{
	enum { BYTES = 1 << 20 };
	char *block = malloc(BYTES / 2);

	memset(block, 1, BYTES / 2);
	keep(__func__, realloc(block, BYTES), BYTES);
}

static void empty(void)
{
	keep(__func__, malloc(0), 0);
}

static void in_arena(void)
{
	enum { COUNT = 2000, BYTES = 3000, KEPT = 4 };
	static char *all[COUNT];

	for (int i = 0; i < COUNT; i++) {
		all[i] = malloc(BYTES);
		all[i][0] = 1;
	}
	for (int i = 0; i < COUNT; i++)
		if (i % KEPT == 0)
			keep(__func__, all[i], BYTES);
		else
			free(all[i]);
}

static pthread_barrier_t barrier;

static void *run_thread(void *unused)
{
	in_arena();
	pthread_barrier_wait(&barrier);
	pause();
	return unused;
}

static size_t resident_of(const char *block, size_t bytes)
{
	static unsigned char pages[(64 << 20) / PAGE + 2];
	const uintptr_t low = (uintptr_t)block & ~(uintptr_t)(PAGE - 1);
	const uintptr_t end = (uintptr_t)block + bytes;
	size_t sum = 0;

	if (bytes > 0 && mincore((void *)low, end - low, pages) != 0)
		abort();
	for (uintptr_t page = low; page < end; page += PAGE) {
		const uintptr_t from = page > (uintptr_t)block ? page : (uintptr_t)block;
		const uintptr_t to = page + PAGE < end ? page + PAGE : end;

		if (pages[(page - low) / PAGE] & 1)
			sum += to - from;
	}
	return sum;
}

static void print_truth(void)
{
	char line[100];

	for (size_t i = 0; i < count;) {
		const char *function = blocks[i].function;
		size_t sum = 0;
		size_t all = 0;
		int length;

		for (; i < count && blocks[i].function == function; i++) {
			sum += resident_of(blocks[i].block, blocks[i].bytes);
			all += blocks[i].bytes;
		}
		length = snprintf(line, sizeof(line), "%s %zu %zu\n", function, all, sum);
		if (write(STDOUT_FILENO, line, (size_t)length) != length)
			abort();
	}
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		abort();
}

static void share_pages(void)
{
	char byte;
	int gate[2];

	if (pipe(gate) != 0)
		abort();
	if (fork() == 0) {
		close(gate[1]);
		(void)!read(gate[0], &byte, 1); /* until the parent has ended */
		_exit(0);
	}
}

/* Allocates on two threads until the input ends. */
static atomic_bool is_over;

static void *be_busy(void *unused)
{
	enum { BYTES = 100, PAUSE_AFTER = 100 };

	for (int i = 0; !is_over; i++) {
		void *volatile block = malloc(BYTES);

		free(block);
		if (i % PAUSE_AFTER == 0)
			usleep(1000); /* else the trace grows too fast for the test */
	}
	return unused;
}

static void wait_for_input(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0) {
	}
}

static void stay_busy(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, be_busy, NULL) != 0)
		abort();
	wait_for_input();
	is_over = true;
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t thread;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* else the kernel may fill pages at any time */
	never();
	touched();
	sparse();
	small();
	zeros();
	aligned();
	given_back();
	lazily();
	moved();
	empty();
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, run_thread, NULL) != 0)
		abort();
	pthread_barrier_wait(&barrier);
	if (strcmp(mode, "fork") == 0)
		share_pages();
	print_truth();
	if (strcmp(mode, "wait") == 0)
		wait_for_input();
	if (strcmp(mode, "busy") == 0)
		stay_busy();
	return 0;
}
