/* SPDX-License-Identifier: MIT
 *
 * Makes code at run time, tells its name to perf in one of its ways, and runs it: jit_target map|old|link|
 * dump SECONDS. The code calls work() and then spins by itself. Prints its process number first.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

typedef void made_fn(void (*work)(void), unsigned long spins);

/* push %rsi; call *%rdi; pop %rcx; 1: dec %rcx; jnz 1b; ret */
static const unsigned char code[] = {0x56, 0xff, 0xd7, 0x59, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3};
static volatile unsigned long sink;

static __attribute__((noinline)) void spin(void)
{
	for (int i = 0; i < 1000000; i++)
		sink++;
}

static __attribute__((noinline)) void inner(void)
{
	spin();
	sink++;
}

static __attribute__((noinline)) void work(void)
{
	inner();
	sink++;
}

static void write_map(const char *path, uintptr_t address)
{
	FILE *file = fopen(path, "w");

	if (file == NULL)
		exit(1);
	fprintf(file, "not a line of a map\n%lx 40 what_was_there_before\n",
		(unsigned long)address - 16);
	fprintf(file, "%lx %zx made at run time\n", (unsigned long)address, sizeof(code));
	fclose(file);
}

static void write_dump(uintptr_t address)
{
	static const char name[] = "made at run time";
	struct {
		uint32_t magic, version, bytes, machine, padding, pid;
		uint64_t time, flags;
	} head = {0x4a695444, 1, sizeof(head), 62, 0, (uint32_t)getpid(), 0, 0};
	struct {
		uint32_t id, bytes;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, address, size, index;
	} load = {0,       sizeof(load) + sizeof(name) + sizeof(code),
		  0,       0,
		  0,       address,
		  address, sizeof(code),
		  0};
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
	file = fopen(path, "w");
	if (file == NULL)
		exit(1);
	fwrite(&head, sizeof(head), 1, file);
	fwrite(&load, sizeof(load), 1, file);
	fwrite(name, sizeof(name), 1, file);
	fwrite(code, sizeof(code), 1, file);
	fclose(file);
}

static void tell(const char *how, uintptr_t address)
{
	const struct utimbuf long_ago = {1, 1};
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	if (strcmp(how, "dump") == 0)
		write_dump(address);
	else if (strcmp(how, "link") == 0)
		write_map("map", address);
	else
		write_map(path, address);
	if (strcmp(how, "link") == 0 && symlink("map", path) != 0)
		exit(1);
	if (strcmp(how, "open") == 0 && chmod(path, 0666) != 0)
		exit(1);
	if (strcmp(how, "stranger") == 0 && chown(path, 65534, 65534) != 0)
		exit(1);
	if (strcmp(how, "old") == 0 && utime(path, &long_ago) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const clock_t end = argc == 3 ? (clock_t)(atof(argv[2]) * CLOCKS_PER_SEC) : 0;
	made_fn *made;

	if (argc != 3 || memory == MAP_FAILED)
		return 2;
	memcpy(memory, code, sizeof(code));
	memcpy(&made, &memory, sizeof(made));
	tell(argv[1], (uintptr_t)memory);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (clock() < end)
		made(work, 3000000);
	return 0;
}
