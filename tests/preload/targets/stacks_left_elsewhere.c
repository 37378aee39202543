/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 1200
 * incstack heap varies
 *
 * As stacks_left_at_exit, but when the process ends, the threads stand where their frames cannot be
 * found: in code without unwind rules, on the stack of a coroutine, or on that of a context, whose
 * frames were left by a jump, too.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Both wait for ever. The first has no unwind rules. The second does so on the stack that ends at its
 * argument, which has no known bounds. */
__asm__(".text\n"
	".type wait_undescribed, @function\n"
	"wait_undescribed:\n"
	"	push %rbx\n"
	"1:	mov $34, %eax\n" /* pause */
	"	syscall\n"
	"	jmp 1b\n"
	".size wait_undescribed, . - wait_undescribed\n"
	".type wait_on, @function\n"
	"wait_on:\n"
	"	mov %rdi, %rsp\n"
	"	xor %ebp, %ebp\n"
	"	push $0\n"
	"	jmp wait_for_ever\n"
	".size wait_on, . - wait_on\n");
void wait_undescribed(void);
void wait_on(char *end);

enum { STACK_BYTES = 64 << 10, ENDS = 3 };

static int at_the_end;

static void allocate(void)
{
	void *volatile block = malloc(32);

	free(block);
}

__attribute__((noinline)) static void go_down_and_jump(void **before, int frames)
{
	char local[64];

	memset(local, frames, sizeof(local));
	allocate();
	__asm__ volatile("" : : "r"(local) : "memory");
	if (frames == 0)
		__builtin_longjmp(before, 1);
	go_down_and_jump(before, frames - 1);
	__asm__ volatile("");
}

__attribute__((noinline)) static void leave_frames(int frames)
{
	void *before[5];

	if (__builtin_setjmp(before) == 0)
		go_down_and_jump(before, frames);
	__asm__ volatile(""); /* no tail call: the jump comes back to this frame */
}

__attribute__((noinline, used)) void wait_for_ever(void)
{
	__atomic_fetch_add(&at_the_end, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static char *make_stack(void)
{
	char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		exit(1);
	return stack;
}

static void end_undescribed(void)
{
	__atomic_fetch_add(&at_the_end, 1, __ATOMIC_SEQ_CST);
	wait_undescribed();
}

static void end_on_coroutine(void)
{
	wait_on(make_stack() + STACK_BYTES);
}

/* Each fills the memory of the frames that were left. */
__attribute__((noinline)) static void end_deeper(void (*end)(void), int frames)
{
	char local[200];

	memset(local, 0x41, sizeof(local));
	__asm__ volatile("" : : "r"(local) : "memory");
	if (frames > 0)
		end_deeper(end, frames - 1);
	else
		end();
	__asm__ volatile("");
}

static void run_context(void)
{
	leave_frames(60);
	end_deeper(wait_for_ever, 3);
}

static void end_in_context(void)
{
	static __thread ucontext_t from, to;
	char *stack = make_stack();

	if (getcontext(&to) != 0)
		exit(1);
	to.uc_stack.ss_sp = stack;
	to.uc_stack.ss_size = STACK_BYTES;
	makecontext(&to, run_context, 0);
	swapcontext(&from, &to);
}

struct way {
	void (*end)(void);
	int left, later; /* how many frames are left, and how many come then */
};

static void *run(void *argument)
{
	const struct way *way = argument;

	for (int i = 0; i < 30; i++)
		allocate();
	leave_frames(way->left);
	end_deeper(way->end, way->later);
	return argument;
}

int main(void)
{
	static void (*const ends[ENDS])(void) = {end_undescribed, end_on_coroutine, end_in_context};
	static struct way ways[] = {
		{NULL, 20, 0}, {NULL, 20, 12}, {NULL, 60, 1}, {NULL, 60, 3}, {NULL, 60, 20}};
	enum { WAYS = sizeof(ways) / sizeof(ways[0]) };
	static struct way all[WAYS * ENDS];
	pthread_t thread;

	for (int i = 0; i < WAYS * ENDS; i++) {
		all[i] = ways[i % WAYS];
		all[i].end = ends[i / WAYS];
		if (pthread_create(&thread, NULL, run, &all[i]) != 0)
			exit(1);
	}
	while (__atomic_load_n(&at_the_end, __ATOMIC_SEQ_CST) < WAYS * ENDS)
		usleep(100);
	exit(0);
}
