/* SPDX-License-Identifier: MIT
 *
 * A program that is interrupted in the middle of the recorder, and ends in all ways but the
 * usual one. Its arguments are steps:
 *   handlers=N     N allocations; a signal handler allocates at each instruction of the
 *                  recorder that one of them runs; prints how often
 *   jumps=N        a signal handler jumps out of the recorder, at its first instruction, its
 *                  second and so on, as long as the recorder runs that many; after each N
 *                  allocations; prints how many those are in all
 *   forks=N:E      a signal handler forks at each E'th instruction of the recorder, and the
 *                  child allocates once in the handler, goes on, allocates N times, and exits;
 *                  prints how many forks, and how many children did not end well
 *   blocks=N       N blocks of 1000000 bytes
 *   count=FILE     from now on each thread counts there what it has allocated, in a word of
 *                  its own; the second word is how many microseconds the blocks took
 *   threads=T:US   T threads allocate at changing depths; goes on after US microseconds
 *   growing=T:US   T threads allocate without pause, the Nth with N frames of descend, each block
 *                  a byte larger; after US microseconds prints how many blocks each has
 *   crash=HOW      in a new thread: see end()
 *   rawfork=N      a child that is not announced allocates N blocks, and exits
 *   fork=N:HOW     the same by fork, ends in that way
 *   segv, abort, kill, exit_group, exit, _exit, _Exit, quick_exit
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static void *volatile kept;

NOINLINE static void allocate(size_t bytes)
{
	kept = malloc(bytes);
	free(kept);
}

/* ---- instruction by instruction --------------------------------------------------- */

static uintptr_t recorder_low, recorder_high; /* its code */
static volatile long instruction;             /* of the recorder, in the event */
static volatile long jump_at;
static volatile long handled;
static volatile long forking; /* what a handler does: it forks, at each of so many */
static volatile long forks;
static volatile int is_child;
static volatile long bad_children;
static sigjmp_buf out;

static int find_recorder(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (strstr(info->dlpi_name, "libincstack_recorder") == NULL)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_flags & PF_X) {
			recorder_low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			recorder_high = recorder_low + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

/* Where the recorder blocks signals, no handler of the program would run. */
static int may_interrupt(const ucontext_t *at)
{
	const uintptr_t pc = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];

	return pc >= recorder_low && pc < recorder_high && !sigismember(&at->uc_sigmask, SIGALRM);
}

static void fork_in_handler(ucontext_t *at)
{
	const pid_t child = fork();
	int status = 0;

	forks++;

	if (child == 0) {
		void *volatile block = malloc(1 << 20);

		(void)block;
		is_child = 1;
		at->uc_mcontext.gregs[REG_EFL] &= ~0x100;
		return;
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		bad_children++;
}

static void on_instruction(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	if (is_child) /* no more steps */
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
	if (is_child || !may_interrupt(context))
		return;
	instruction++;
	if (forking != 0) {
		if (instruction % forking == 0)
			fork_in_handler(context);
	} else if (jump_at == 0) {
		void *volatile block =
			malloc(1 << 20); /* mapped: malloc proper may be interrupted */

		(void)block;
		handled++;
	} else if (instruction == jump_at) {
		siglongjmp(out, 1);
	}
}

static inline void set_single_step(int on)
{
	if (on)
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

NOINLINE static void step_through_allocation(void)
{
	instruction = 0;
	set_single_step(1);
	kept = malloc(24);
	set_single_step(0);
	free(kept);
}

static void start_stepping(void)
{
	const struct sigaction action = {.sa_sigaction = on_instruction, .sa_flags = SA_SIGINFO};

	dl_iterate_phdr(find_recorder, NULL);
	sigaction(SIGTRAP, &action, NULL);
}

static void run_handlers(long count)
{
	start_stepping();
	allocate(24);
	for (long i = 0; i < count; i++)
		step_through_allocation();
	printf("handlers %ld\n", handled);
}

static void run_forks(const char *argument)
{
	const long count = atol(argument);

	start_stepping();
	allocate(24);
	forking = atol(strchr(argument, ':') + 1);
	step_through_allocation();
	for (long i = 0; i < count; i++)
		allocate(48);
	if (is_child)
		_exit(0);
	printf("forks %ld %ld\n", forks, bad_children);
}

static void run_jumps(long count)
{
	volatile long allocations = 0;

	start_stepping();
	allocate(24);
	for (jump_at = 1;; jump_at++) {
		if (sigsetjmp(out, 1) == 0)
			step_through_allocation();
		set_single_step(0);
		if (instruction < jump_at)
			break;
		for (long i = 0; i < count; i++, allocations++)
			allocate(200);
	}
	printf("jumps %ld %ld\n", jump_at - 1, allocations);
}

/* ---- ends ---------------------------------------------------------------------------- */

enum { THREADS_MAX = 64, WORDS = 8 }; /* a line of the cache each */

static uint64_t unseen[(THREADS_MAX + 1) * WORDS];
static volatile uint64_t *counts = unseen;
static __thread unsigned number; /* 0: the main thread */

static void count_in(const char *file)
{
	const int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0666);

	if (fd < 0 || ftruncate(fd, sizeof(unseen)) != 0)
		exit(3);
	counts = mmap(NULL, sizeof(unseen), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

NOINLINE static void allocate_counted(size_t bytes, int freed)
{
	void *block = malloc(bytes);

	counts[number * WORDS]++;
	kept = block;
	if (freed)
		free(block);
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void run_blocks(long count)
{
	const uint64_t start = now_us();

	while (count-- > 0)
		allocate_counted(1000000, 0);
	counts[1] = now_us() - start;
}

static void nest(int depth);
static void (*volatile again)(int) = nest;

NOINLINE static void nest(int depth)
{
	if (depth > 0)
		again(depth - 1);
	allocate_counted(48, 1);
}

static void *allocate_for_ever(void *argument)
{
	unsigned random = 1;

	number = (unsigned)(uintptr_t)argument;
	for (;;) {
		random = random * 1103515245 + 12345;
		again((int)(random >> 16 & 15));
	}
	return NULL;
}

static void run_threads(const char *argument)
{
	const unsigned count = (unsigned)atoi(argument);
	pthread_t thread;

	for (unsigned i = 1; i <= count && i <= THREADS_MAX; i++)
		if (pthread_create(&thread, NULL, allocate_for_ever, (void *)(uintptr_t)i) != 0)
			exit(3);
	usleep((unsigned)atoi(strchr(argument, ':') + 1));
}

/* Each block is a byte larger than the one before, up to a limit. */
enum { LARGEST = 4096 };

static void descend(int depth);
static void (*volatile further)(int) = descend;

NOINLINE static void descend(int depth)
{
	if (depth > 1)
		further(depth - 1);
	for (;;)
		allocate_counted(1 + counts[number * WORDS] % LARGEST, 1);
}

static void *grow_for_ever(void *argument)
{
	number = (unsigned)(uintptr_t)argument;
	further((int)number);
	return NULL;
}

/* Prints how many blocks each thread has allocated when the program goes on. */
static void run_growing(const char *argument)
{
	const unsigned count = (unsigned)atoi(argument);
	pthread_t thread;

	for (unsigned i = 1; i <= count && i <= THREADS_MAX; i++)
		if (pthread_create(&thread, NULL, grow_for_ever, (void *)(uintptr_t)i) != 0)
			exit(3);
	usleep((unsigned)atoi(strchr(argument, ':') + 1));
	printf("growing");
	for (unsigned i = 1; i <= count; i++)
		printf(" %lu", (unsigned long)counts[i * WORDS]);
	printf("\n");
	fflush(stdout);
}

static int *volatile nowhere;

static void end(const char *how)
{
	if (strcmp(how, "segv") == 0)
		*nowhere = 1;
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "exit_group") == 0)
		syscall(SYS_exit_group, 0);
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strcmp(how, "_Exit") == 0)
		_Exit(0);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(0);
	if (strcmp(how, "exit") == 0)
		exit(0);
	exit(4);
}

static void *crash(void *how)
{
	number = 1;
	for (int i = 0; i < 100; i++)
		again(i % 5);
	end(how);
	return NULL;
}

static void run_crash(const char *how)
{
	pthread_t thread;

	pthread_create(&thread, NULL, crash, (void *)(uintptr_t)how);
	pthread_join(thread, NULL);
}

NOINLINE static void in_child(long count)
{
	for (long i = 0; i < count; i++)
		allocate_counted(777, 0);
}

static void run_raw_fork(const char *argument)
{
	const pid_t child = (pid_t)syscall(SYS_fork);

	if (child == 0) {
		in_child(atol(argument));
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void run_fork(const char *argument)
{
	const pid_t child = fork();

	if (child == 0) {
		in_child(atol(argument));
		end(strchr(argument, ':') + 1);
	}
	waitpid(child, NULL, 0);
}

static const char *value(const char *step, const char *name)
{
	const size_t length = strlen(name);

	return strncmp(step, name, length) == 0 && step[length] == '=' ? step + length + 1 : NULL;
}

static int run_step(const char *step)
{
	const char *argument;

	if ((argument = value(step, "handlers")) != NULL)
		run_handlers(atol(argument));
	else if ((argument = value(step, "jumps")) != NULL)
		run_jumps(atol(argument));
	else if ((argument = value(step, "forks")) != NULL)
		run_forks(argument);
	else if ((argument = value(step, "blocks")) != NULL)
		run_blocks(atol(argument));
	else if ((argument = value(step, "count")) != NULL)
		count_in(argument);
	else if ((argument = value(step, "threads")) != NULL)
		run_threads(argument);
	else if ((argument = value(step, "growing")) != NULL)
		run_growing(argument);
	else if ((argument = value(step, "crash")) != NULL)
		run_crash(argument);
	else if ((argument = value(step, "rawfork")) != NULL)
		run_raw_fork(argument);
	else if ((argument = value(step, "fork")) != NULL)
		run_fork(argument);
	else
		end(step);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc && status == 0; i++)
		status = run_step(argv[i]);
	return status;
}
