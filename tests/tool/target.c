/* SPDX-License-Identifier: MIT
 *
 * A program whose allocations are known exactly. Its arguments are steps:
 *   alloc=N        N blocks of 48 bytes, freed at once
 *   leak=N         N blocks of 100 bytes, never freed
 *   big=N          one block of N bytes, freed at the end
 *   mixed=N        N times 64 and 192 bytes in turn, from two functions, freed at once
 *   threads=T:N    T threads of which each allocates N blocks of 48 bytes
 *   stay=T:N       the same, and they sleep on until the process ends
 *   deaf=T:N       the same, and then they block all signals, libc's own too
 *   fork=K:N       K children of which each allocates N blocks and exits
 *   deep=N         N frames of one function of which each leaks a block of 8 bytes
 *   variable=N     N blocks get another size in a function whose frame is found by its frame pointer
 *   below=D:N      N blocks are allocated below D frames of one function
 *   map=N          N bytes from mmap are written to and never given back
 *   tight          the process gets no more memory; it has some to allocate from
 *   nest           a child forks a child
 *   exec=PROGRAM   the other arguments go to that program
 *   by=FUNCTION    the function that the next exec calls; a list has one argument
 *   kill, _exit, _Exit, abort, status (3)
 * It uses no stdio: what it allocates, it allocates here.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { THREADS_MAX = 64 };

static void *volatile kept;
static long per_thread;
static int deaf;
static pthread_barrier_t settled;

NOINLINE static void use(void *block, int freed)
{
	kept = block;
	if (freed)
		free(block);
}

NOINLINE void alloc_blocks(long count)
{
	for (long i = 0; i < count; i++)
		use(malloc(48), 1);
}

static void map_memory(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	memset(memory, 1, bytes);
	kept = memory;
}

NOINLINE void leak_blocks(long count)
{
	for (long i = 0; i < count; i++)
		use(malloc(100), 0);
}

NOINLINE void recurse(long depth)
{
	use(malloc(8), 0);
	if (depth > 1)
		recurse(depth - 1);
}

NOINLINE void alloc_below(long depth, long count)
{
	if (depth > 0)
		alloc_below(depth - 1, count);
	else
		alloc_blocks(count);
	__asm__ volatile("");
}

/* A frame of variable size, and no register that a callee saves has the frame pointer. */
NOINLINE void resize_one(size_t bytes)
{
	char *volatile room = __builtin_alloca(bytes);

	__asm__ volatile("xorl %%r12d, %%r12d\n\txorl %%r13d, %%r13d\n\t"
			 "xorl %%r14d, %%r14d\n\txorl %%r15d, %%r15d"
			 :
			 : "r"(room)
			 : "r12", "r13", "r14", "r15");
	use(realloc(malloc(8), bytes), 1);
}

NOINLINE void resize_blocks(long count)
{
	for (long i = 0; i < count; i++)
		resize_one(16 + (size_t)i % 64);
}

NOINLINE void alloc_small(void)
{
	use(malloc(64), 1);
}

NOINLINE void alloc_large(void)
{
	use(malloc(192), 1);
}

NOINLINE void alloc_mixed(long count)
{
	for (long i = 0; i < count; i++) {
		alloc_small();
		alloc_large();
	}
}

static void *thread_main(void *stays)
{
	const uint64_t all = UINT64_MAX;

	alloc_blocks(per_thread);
	if (deaf)
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	if (stays == NULL)
		return NULL;
	pthread_barrier_wait(&settled);
	for (;;)
		pause();
}

static void run_threads(const char *argument, int stay)
{
	pthread_t threads[THREADS_MAX];
	const int count = atoi(argument);

	per_thread = atol(strchr(argument, ':') + 1);
	pthread_barrier_init(&settled, NULL, (unsigned)count + 1);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, thread_main, stay ? &settled : NULL) != 0)
			exit(3);
	if (stay)
		pthread_barrier_wait(&settled);
	for (int i = 0; i < count && !stay; i++)
		pthread_join(threads[i], NULL);
}

static void run_children(const char *argument)
{
	for (int i = atoi(argument); i > 0; i--) {
		if (fork() == 0) {
			alloc_blocks(atol(strchr(argument, ':') + 1));
			exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
}

static void run_nested(void)
{
	if (fork() == 0) {
		if (fork() == 0) {
			alloc_blocks(10);
			exit(0);
		}
		exit(wait(NULL) > 0 ? 0 : 1);
	}
	wait(NULL);
}

/* No page more than the process has by now. */
static void forbid_memory(void)
{
	const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	struct rlimit limit = {0, 0};
	char text[128] = "";

	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_MAX, 0);
	use(malloc(16 << 20), 1);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		exit(4);
	close(fd);
	limit.rlim_cur = limit.rlim_max = (rlim_t)atol(text) * 4096;
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		exit(4);
}

static void end(const char *how)
{
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "status") == 0)
		exit(3);
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strcmp(how, "_Exit") == 0)
		_Exit(0);
}

static const char *exec_by = "execvp";

static int is_by(const char *name)
{
	return strcmp(exec_by, name) == 0;
}

static void execute_list(const char *program, const char *argument)
{
	if (is_by("execl"))
		execl(program, program, argument, (char *)NULL);
	else if (is_by("execlp"))
		execlp(program, program, argument, (char *)NULL);
	else if (is_by("execle"))
		execle(program, program, argument, (char *)NULL, environ);
}

static void execute(const char *program, char **arguments)
{
	char *own = arguments[0];

	arguments[0] = (char *)(uintptr_t)program;
	if (is_by("execvp"))
		execvp(program, arguments);
	else if (is_by("execv"))
		execv(program, arguments);
	else if (is_by("execve"))
		execve(program, arguments, environ);
	else if (is_by("execvpe"))
		execvpe(program, arguments, environ);
	else if (is_by("fexecve"))
		fexecve(open(program, O_RDONLY), arguments, environ);
	else if (is_by("execveat"))
		execveat(AT_FDCWD, program, arguments, environ, 0);
	else
		execute_list(program, arguments[1]);
	arguments[0] = own;
}

static const char *value(const char *step, const char *name)
{
	const size_t length = strlen(name);

	return strncmp(step, name, length) == 0 && step[length] == '=' ? step + length + 1 : NULL;
}

static void run_step(char **step)
{
	const char *argument;

	if ((argument = value(*step, "alloc")) != NULL)
		alloc_blocks(atol(argument));
	else if ((argument = value(*step, "leak")) != NULL)
		leak_blocks(atol(argument));
	else if ((argument = value(*step, "deep")) != NULL)
		recurse(atol(argument));
	else if ((argument = value(*step, "below")) != NULL)
		alloc_below(atol(argument), atol(strchr(argument, ':') + 1));
	else if ((argument = value(*step, "variable")) != NULL)
		resize_blocks(atol(argument));
	else if ((argument = value(*step, "map")) != NULL)
		map_memory((size_t)atol(argument));
	else if ((argument = value(*step, "mixed")) != NULL)
		alloc_mixed(atol(argument));
	else if ((argument = value(*step, "threads")) != NULL)
		run_threads(argument, 0);
	else if ((argument = value(*step, "stay")) != NULL)
		run_threads(argument, 1);
	else if ((argument = value(*step, "deaf")) != NULL)
		run_threads(argument, deaf = 1);
	else if ((argument = value(*step, "fork")) != NULL)
		run_children(argument);
	else if ((argument = value(*step, "by")) != NULL)
		exec_by = argument;
	else if ((argument = value(*step, "exec")) != NULL)
		execute(argument, step);
	else if (strcmp(*step, "tight") == 0)
		forbid_memory();
	else if (strcmp(*step, "nest") == 0)
		run_nested();
	else
		end(*step);
}

int main(int argc, char **argv)
{
	void *big = NULL;

	for (int i = 1; i < argc; i++) {
		if (value(argv[i], "big") != NULL)
			big = malloc((size_t)atol(value(argv[i], "big")));
		else
			run_step(argv + i);
	}
	free(big);
	return 0;
}
