/* SPDX-License-Identifier: MIT
 *
 * Uses CPU time in three functions in turns of random length, measures how much by the clock of the
 * thread, and prints it: the truth about its profile. The first argument is the CPU time in seconds.
 * With a second argument the program kills itself after that, without any call that a recorder could
 * interpose.
 *   by_loop   has a loop that calls nothing
 *   by_leaf   has a loop around a function that is always inlined
 *   by_ends   calls a function that mostly saves and restores registers
 * Between two turns almost nothing happens.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static __attribute__((noinline)) uint64_t by_loop(uint64_t turns)
{
	uint64_t sum = turns;

	for (uint64_t i = 0; i < 3 * turns; i++) {
		sum = sum * 31 + i;
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}

static inline __attribute__((always_inline)) uint64_t leaf(uint64_t x)
{
	for (int i = 0; i < 4; i++) {
		x ^= x << 13 | 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static __attribute__((noinline)) uint64_t by_leaf(uint64_t turns)
{
	uint64_t sum = turns;

	for (uint64_t i = 0; i < turns; i++)
		sum += leaf(sum + i);
	return sum;
}

static __attribute__((noinline)) uint64_t tiny(uint64_t x)
{
	__asm__ volatile("" : "+r"(x)::"rbx", "r12", "r13", "r14", "r15");
	return x + 1;
}

static __attribute__((noinline)) uint64_t by_ends(uint64_t turns)
{
	uint64_t sum = turns;

	for (uint64_t i = 0; i < turns; i++)
		sum = tiny(sum);
	return sum;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t (*run)(uint64_t);
	} parts[] = {{"by_loop", by_loop}, {"by_leaf", by_leaf}, {"by_ends", by_ends}};
	const uint64_t all = (uint64_t)(argc > 1 ? atoi(argv[1]) : 1) * 1000000000u;
	uint64_t truth[3] = {0};
	uint64_t random = 88172645463325252u;
	uint64_t result = 0;

	for (uint64_t start = now(), end; start < all; start = end) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		result += parts[random % 3].run(10000 + (random >> 32) % 500000);
		__asm__ volatile("" ::"r"(result)); /* it is needed, so the work is done */
		end = now();
		truth[random % 3] += end - start;
	}
	if (argc > 2)
		return raise(SIGKILL);
	for (int i = 0; i < 3; i++)
		printf("%s %" PRIu64 "\n", parts[i].name, truth[i]);
	return 0;
}
