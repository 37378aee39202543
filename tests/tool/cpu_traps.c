/* SPDX-License-Identifier: MIT
 *
 * cpu_traps CASE: what a program may do with SIGTRAP and with signals, descriptors and limits. A profiler
 * that uses SIGTRAP must change none of it. Each case prints what it has seen; the output must be the same with
 * and without the profiler.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long turns;
static volatile sig_atomic_t handled;
static volatile sig_atomic_t was_blocked; /* whether SIGUSR1 was, in the handler */

static long used_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((noinline)) void spin(long ms)
{
	const long end = used_ms() + ms;

	while (used_ms() < end)
		for (int i = 0; i < 20000; i++)
			turns++;
}

static void count(int number)
{
	sigset_t now;

	(void)number;
	sigprocmask(SIG_BLOCK, NULL, &now);
	was_blocked = sigismember(&now, SIGUSR1);
	handled++;
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
}

static void unblock_all(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
}

static int own_handler(void)
{
	struct sigaction own = {.sa_handler = count};
	struct sigaction old;

	spin(50);
	sigaction(SIGTRAP, NULL, &old);
	printf("default %d\n", old.sa_handler == SIG_DFL);
	sigemptyset(&own.sa_mask);
	sigaddset(&own.sa_mask, SIGUSR1);
	sigaction(SIGTRAP, &own, &old);
	printf("default %d\n", old.sa_handler == SIG_DFL);
	spin(50);
	raise(SIGTRAP);
	__asm__ volatile("int3");
	printf("handled %d, blocked %d\n", (int)handled, (int)was_blocked);
	printf("own %d\n", signal(SIGTRAP, SIG_DFL) == count);
	own.sa_flags = (int)SA_RESETHAND;
	sigaction(SIGTRAP, &own, NULL);
	raise(SIGTRAP);
	sigaction(SIGTRAP, NULL, &old);
	printf("handled %d, default %d\n", (int)handled, old.sa_handler == SIG_DFL);
	spin(50);
	return 0;
}

static int ends(void (*how)(void))
{
	int status = 0;
	const pid_t child = fork();

	if (child == 0) {
		spin(20);
		how();
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void raise_trap(void)
{
	raise(SIGTRAP);
}

static void break_here(void)
{
	__asm__ volatile("int3");
}

static void ignore_trap(void)
{
	signal(SIGTRAP, SIG_IGN);
	raise(SIGTRAP);
	spin(20);
}

static void ignore_and_break(void)
{
	signal(SIGTRAP, SIG_IGN);
	break_here();
}

static void kill_self(void)
{
	kill(getpid(), SIGTRAP);
	spin(20);
}

static int defaults(void)
{
	spin(20);
	printf("raise %d int3 %d", ends(raise_trap), ends(break_here));
	printf(" ignored %d ignored int3 %d", ends(ignore_trap), ends(ignore_and_break));
	printf(" kill %d\n", ends(kill_self));
	return 0;
}

/* Nothing waits for a program that has used CPU time with all signals blocked. */
static int waits(void)
{
	const struct timespec none = {0};
	sigset_t all;
	siginfo_t info;
	int fd;

	block_all();
	sigfillset(&all);
	spin(100);
	printf("sigtimedwait %d\n", sigtimedwait(&all, &info, &none) < 0 ? errno : info.si_signo);
	spin(100);
	fd = signalfd(-1, &all, SFD_NONBLOCK);
	printf("signalfd %d\n", poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0));
	spin(100);
	printf("signalfd %d\n", poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0));
	raise(SIGUSR1);
	printf("sigtimedwait %d\n", sigtimedwait(&all, &info, &none) == SIGUSR1);
	unblock_all();
	spin(20);
	return 0;
}

static void *spin_blocked(void *argument)
{
	block_all();
	spin(100);
	return argument;
}

static int blocked(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, spin_blocked, NULL);
	pthread_join(thread, NULL);
	spin(100);
	puts("done");
	return 0;
}

/* A trap that is pending would end the next program when it unblocks the signal. */
static int execute(char **argv)
{
	char left[16];
	const int again = atoi(argv[2]);

	unblock_all();
	spin(5);
	if (again == 0) {
		puts("alive");
		return 0;
	}
	snprintf(left, sizeof(left), "%d", again - 1);
	block_all();
	spin(7);
	execv("/proc/self/exe", (char *[]){argv[0], argv[1], left, NULL});
	return 1;
}

static int open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int files = 0;

	for (const struct dirent *at; (at = readdir(directory));)
		files += at->d_name[0] != '.' && atoi(at->d_name) < 64;
	closedir(directory);
	return files;
}

static void *spin_little(void *argument)
{
	spin(20);
	return argument;
}

static int descriptors(void)
{
	pthread_t threads[8];

	setrlimit(RLIMIT_NOFILE, &(const struct rlimit){64, 64});
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, spin_little, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	printf("files %d\n", open_files());
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, spin_little, NULL);
	spin(20);
	for (int i = 3; i < 64; i++)
		syscall(SYS_close, i);
	printf("lowest %d\n", open("/dev/null", O_RDONLY));
	spin(50);
	printf("lowest %d\n", dup(0));
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int limits(void)
{
	pthread_t thread;

	setrlimit(RLIMIT_SIGPENDING, &(const struct rlimit){0, 0});
	spin(50);
	pthread_create(&thread, NULL, spin_little, NULL);
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}

/* A handler that the recorder cannot see may meet some traps, but not for long. */
static int raw(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} action;
	int before;

	spin(20);
	syscall(SYS_rt_sigaction, SIGTRAP, NULL, &action, 8);
	signal(SIGUSR2, count);
	syscall(SYS_rt_sigaction, SIGUSR2, NULL, &action, 8);
	syscall(SYS_rt_sigaction, SIGTRAP, &action, NULL, 8);
	spin(100);
	before = handled;
	spin(100);
	printf("handled %d\n", handled - before);
	return 0;
}

static int forbid_events(unsigned result)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, result),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 4, .filter = filter};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int filtered(void)
{
	pthread_t thread;

	spin(20);
	printf("filter %d\n", forbid_events(SECCOMP_RET_KILL_PROCESS));
	spin(50);
	pthread_create(&thread, NULL, spin_little, NULL);
	pthread_join(thread, NULL);
	return 0;
}

static int vforks(void)
{
	static volatile int wrong;

	for (volatile int i = 0; i < 200; i++) {
		int status = 1;
		const pid_t child = vfork();

		if (child == 0) {
			signal(SIGTRAP, i % 2 == 0 ? SIG_DFL : SIG_IGN);
			execl("/bin/true", "true", NULL);
			_exit(127);
		}
		waitpid(child, &status, 0);
		wrong = wrong + (status != 0);
		spin(1);
	}
	printf("wrong %d\n", wrong);
	return 0;
}

static int spin_long(void)
{
	spin(300);
	return 0;
}

__attribute__((noinline)) void calls(long ms)
{
	static char zeros[1 << 16];
	const int fd = open("/dev/zero", O_RDONLY);
	const long end = used_ms() + ms;

	while (used_ms() < end)
		if (read(fd, zeros, sizeof(zeros)) < 0)
			abort();
	close(fd);
}

static int mixed(void)
{
	for (int i = 0; i < 20; i++) {
		spin(20);
		calls(20);
	}
	return 0;
}

int main(int arguments, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} cases[] = {{"own_handler", own_handler},
		     {"defaults", defaults},
		     {"waits", waits},
		     {"blocked", blocked},
		     {"descriptors", descriptors},
		     {"limits", limits},
		     {"raw", raw},
		     {"filtered", filtered},
		     {"vforks", vforks},
		     {"spin", spin_long},
		     {"mixed", mixed}};

	setvbuf(stdout, NULL, _IONBF, 0);
	setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
	if (arguments == 3 && strcmp(argv[1], "execute") == 0)
		return execute(argv);
	if (arguments > 2 && strcmp(argv[1], "forbid") == 0) {
		forbid_events(SECCOMP_RET_ERRNO | EPERM);
		return execv(argv[2], argv + 2);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (arguments == 2 && strcmp(argv[1], cases[i].name) == 0)
			return cases[i].run();
	return 2;
}
