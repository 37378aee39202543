/* SPDX-License-Identifier: MIT
 *
 * Allocates memory in functions that the tests of incstack heap -p know. It writes a line with the
 * addresses of malloc and free when it has begun. The first argument says how it goes on:
 *   spin     in by_spin, until it is killed
 *   strict   so, in seccomp's strict mode
 * The others wait until there is a file "go", and end some time later:
 *   counts   by every function that allocates
 *   zero     by realloc to no bytes
 *   threads  in threads that begin meanwhile; others free their blocks
 *   burst    as often as the second argument says
 *   forks    and children, in by_child
 *   parent   in by_spin, with a child that does nothing, until it is killed
 *   leaves   by_malloc; then its main thread ends, and another goes on until it is killed
 *   exec     in by_malloc, then it becomes this program with the other arguments
 *   jump     so, but some calls of malloc are left by a jump; only with an allocator of its own
 *   stuck    so, and then a call of malloc does not return; the same
 * With OWN_MALLOC it defines the functions itself. Some of them call others.
 */
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JUMP_BYTES = 12345, OLD = 100, GENERATIONS = 5, THREADS = 4, LEFT = 3 };

static jmp_buf out;
static volatile int is_stuck;

#ifdef OWN_MALLOC
static _Alignas(4096) char room[64 << 20];
static size_t used;

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noipa)) /* no call may go to a copy of it */
#endif

/* A block has its size before it. */
OWN void *malloc(size_t bytes)
{
	const size_t whole = (bytes + 31) / 16 * 16;
	size_t at;

	while (is_stuck)
		pause();
	if (bytes == JUMP_BYTES)
		longjmp(out, 1);
	if (bytes > sizeof(room))
		return NULL;
	at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
	if (at + whole > sizeof(room))
		return NULL;
	memcpy(room + at, &bytes, sizeof(bytes));
	return room + at + 16;
}

OWN void free(void *block)
{
	__asm__ volatile("" ::"r"(block) : "memory"); /* it gives nothing back */
}

OWN void *calloc(size_t count, size_t bytes)
{
	void *block = malloc(count * bytes);

	return block != NULL ? memset(block, 0, count * bytes) : NULL;
}

OWN void *realloc(void *old, size_t bytes)
{
	void *block = malloc(bytes);
	size_t before = 0;

	if (old != NULL && block != NULL) {
		memcpy(&before, (char *)old - 16, sizeof(before));
		memcpy(block, old, before < bytes ? before : bytes);
		free(old);
	}
	return block;
}

OWN void *memalign(size_t alignment, size_t bytes)
{
	char *block = malloc(bytes + 2 * alignment);

	return block + (alignment - (uintptr_t)block % alignment);
}

OWN void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

OWN void *valloc(size_t bytes)
{
	return memalign(4096, bytes);
}

OWN int posix_memalign(void **block, size_t alignment, size_t bytes)
{
	*block = memalign(alignment, bytes);
	return 0;
}
#endif

/* What was allocated before the test attaches. */
static void *old_blocks[OLD];
static void *old_block;
static void *kept[64];
static size_t kept_count;

static void keep(void *block)
{
	kept[kept_count++] = block;
}

static __attribute__((noinline)) void by_malloc(int times)
{
	for (int i = 0; i < times; i++)
		free(malloc(100));
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void by_calloc(void)
{
	for (int i = 0; i < 7; i++)
		keep(calloc(10, 10));
}

static __attribute__((noinline)) void by_realloc(void)
{
	void *block = malloc(50);

	for (size_t i = 1; i <= 300; i++)
		block = realloc(block, i);
	free(block);
	keep(realloc(NULL, 40));
}

static __attribute__((noinline)) void by_aligned(void)
{
	static void *block;

	if (posix_memalign(&block, 64, 111) == 0)
		keep(block);
	keep(aligned_alloc(64, 128));
	keep(memalign(32, 99));
	keep(valloc(33));
	keep(pvalloc(45)); /* always of libc, or of a preloaded allocator */
	free(aligned_alloc(128, 256));
}

static __attribute__((noinline)) void by_failure(void)
{
	volatile size_t much = SIZE_MAX / 2;

	for (int i = 0; i < 10; i++)
		keep(malloc(much));
}

static __attribute__((noinline)) void by_old(void)
{
	for (int i = 0; i < OLD; i++)
		free(old_blocks[i]);
	keep(realloc(old_block, 60));
}

static __attribute__((noinline)) void by_zero(void)
{
	for (int i = 0; i < 5; i++)
		keep(realloc(malloc(10), 0));
}

static __attribute__((noinline)) void *by_thread(void *blocks)
{
	for (int i = 0; i < LEFT; i++)
		((void **)blocks)[i] = malloc(10);
	for (int i = 0; i < 100; i++)
		free(malloc(64));
	return malloc(5);
}

static __attribute__((noinline)) int make_threads(void)
{
	static void *blocks[THREADS][LEFT];
	pthread_t threads[THREADS];
	void *result;

	for (int generation = 0; generation < GENERATIONS; generation++) {
		for (int i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, by_thread, blocks[i]) != 0)
				return 1;
		for (int i = 0; i < THREADS; i++) {
			if (pthread_join(threads[i], &result) != 0)
				return 1;
			keep(result);
			for (int j = 0; j < LEFT; j++)
				free(blocks[i][j]);
		}
	}
	return 0;
}

static __attribute__((noinline)) void by_child(void)
{
	for (int i = 0; i < 100; i++)
		free(malloc(30));
	_exit(0);
}

static __attribute__((noinline)) int make_children(void)
{
	int status = 0;

	for (int i = 0; i < 5 && status == 0; i++) {
		const pid_t pid = fork();

		if (pid == 0)
			by_child();
		by_malloc(10);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
	}
	return status;
}

static __attribute__((noinline)) void by_jump(void)
{
	for (volatile int i = 0; i < 10; i++)
		if (setjmp(out) == 0)
			keep(malloc(JUMP_BYTES));
}

static __attribute__((noinline)) void by_spin(void)
{
	for (;;) {
		free(malloc(100));
		for (volatile int i = 0; i < 20000; i++)
			;
	}
}

static void *stay(void *unused)
{
	pause();
	return unused;
}

static int leave(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, stay, NULL) != 0)
		return 1;
	by_malloc(1000);
	pthread_exit(NULL);
}

static int is(const char *text, const char *name)
{
	return strcmp(text, name) == 0;
}

static int run_once(const char *how, char **arguments)
{
	while (access("go", F_OK) != 0)
		usleep(1000);
	if (is(how, "threads"))
		return make_threads();
	if (is(how, "forks"))
		return make_children();
	if (is(how, "leaves"))
		return leave();
	if (is(how, "parent") && fork() == 0)
		for (;;)
			pause();
	if (is(how, "parent"))
		by_spin();
	if (is(how, "zero"))
		by_zero();
	if (is(how, "jump"))
		by_jump();
	by_malloc(is(how, "burst") ? atoi(arguments[0]) : 1000);
	is_stuck = is(how, "stuck");
	if (is_stuck)
		by_jump();
	if (is(how, "exec"))
		return execv("/proc/self/exe", arguments - 1);
	if (is(how, "counts")) {
		by_calloc();
		by_realloc();
		by_aligned();
		by_failure();
		by_old();
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "spin";

	for (int i = 0; i < OLD; i++)
		old_blocks[i] = malloc(200);
	old_block = malloc(20);
	printf("%p %p\n", (void *)(uintptr_t)malloc, (void *)(uintptr_t)free);
	fflush(stdout);
	if (is(how, "strict"))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (is(how, "spin") || is(how, "strict"))
		by_spin();
	return run_once(how, argv + 2);
}
