/* SPDX-License-Identifier: MIT
 *
 * Runs code that it makes and that no unwind table describes: frame_pointers keeps|lies SECONDS. With `keeps` the code
 * has frame pointers. With `lies` the register holds other things, while another thread maps and unmaps memory to which
 * it may point. Prints its process number first, and writes the names of the code for perf.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef void inner_fn(void *unused, unsigned long spins);
typedef void outer_fn(inner_fn *inner, unsigned long spins);
typedef void liar_fn(uintptr_t pointer, unsigned long spins);

/* push %rbp; mov %rsp,%rbp; push %rbx; sub $8,%rsp; call *%rdi; add $8,%rsp; pop %rbx; pop %rbp; ret */
static const unsigned char outer_code[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x08,
					   0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d, 0xc3};
/* push %rbp; mov %rsp,%rbp; 1: dec %rsi; jnz 1b; pop %rbp; ret */
static const unsigned char inner_code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
					   0xce, 0x75, 0xfb, 0x5d, 0xc3};
/* push %rbp; mov %rdi,%rbp; 1: dec %rsi; jnz 1b; pop %rbp; ret */
static const unsigned char liar_code[] = {0x55, 0x48, 0x89, 0xfd, 0x48, 0xff,
					  0xce, 0x75, 0xfb, 0x5d, 0xc3};
enum { OUTER = 0, INNER = 64, LIAR = 128, BYTES = 4096, SPINS = 1000000 };

static unsigned char *code;
static atomic_bool stop;
static void *_Atomic unsteady; /* memory that comes and goes */

static void make(size_t at, const void *bytes, size_t count, const char *name, FILE *map)
{
	memcpy(code + at, bytes, count);
	fprintf(map, "%lx %zx %s\n", (unsigned long)(uintptr_t)(code + at), count, name);
}

static void make_all(void)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	map = fopen(path, "w");
	code = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (!map || code == MAP_FAILED)
		exit(1);
	make(OUTER, outer_code, sizeof(outer_code), "made_outer", map);
	make(INNER, inner_code, sizeof(inner_code), "made_inner", map);
	make(LIAR, liar_code, sizeof(liar_code), "made_liar", map);
	fclose(map);
}

static void *come_and_go(void *nothing)
{
	while (!atomic_load(&stop)) {
		void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		atomic_store(&unsteady, memory);
		usleep(10);
		munmap(memory, BYTES);
	}
	return nothing;
}

static __attribute__((noinline)) void keep(outer_fn *outer, inner_fn *inner)
{
	outer(inner, SPINS);
}

/* Pointers to the stack lead to words that are no return addresses, or below the frame. */
static __attribute__((noinline)) void lie(liar_fn *liar, unsigned turn)
{
	uintptr_t words[64];
	const uintptr_t pointers[] = {
		8,
		~(uintptr_t)0,
		(uintptr_t)&words[8],
		(uintptr_t)&words[8] + 3,
		(uintptr_t)&words[0] - 4096,
		(uintptr_t)code,
		(uintptr_t)atomic_load(&unsteady),
		(uintptr_t)1 << 63,
		(uintptr_t)words | 0x7ffff000,
	};

	for (unsigned i = 0; i < 64; i++)
		words[i] = i % 2 ? (uintptr_t)(i % 4 == 1 ? (void *)words
							  : (void *)atomic_load(&unsteady)) +
					   i
				 : (uintptr_t)&words[(i + 2) % 64];
	liar(pointers[turn % (sizeof(pointers) / sizeof(pointers[0]))], SPINS);
}

int main(int argc, char **argv)
{
	const clock_t end = argc == 3 ? (clock_t)(atof(argv[2]) * CLOCKS_PER_SEC) : 0;
	const bool lies = argc == 3 && strcmp(argv[1], "lies") == 0;
	pthread_t thread;

	make_all();
	printf("%d\n", (int)getpid());
	fflush(stdout);
	if (lies && pthread_create(&thread, NULL, come_and_go, NULL) != 0)
		return 1;
	for (unsigned turn = 0; clock() < end; turn++)
		if (lies)
			lie((liar_fn *)(uintptr_t)(code + LIAR), turn);
		else
			keep((outer_fn *)(uintptr_t)(code + OUTER),
			     (inner_fn *)(uintptr_t)(code + INNER));
	atomic_store(&stop, true);
	return 0;
}
