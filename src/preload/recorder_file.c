/* SPDX-License-Identifier: MIT
 *
 * The trace file of this process: its header and shared counters, appending
 * blocks, and the list of modules whenever it changed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

void *incstack__record_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void *incstack__record_remap(void *memory, size_t bytes, size_t more)
{
	void *moved = mremap(memory, bytes, more, MREMAP_MAYMOVE);

	return moved == MAP_FAILED ? NULL : moved;
}

void incstack__record_unmap(void *memory, size_t bytes)
{
	if (memory != NULL)
		munmap(memory, bytes);
}

static void read_command(char *command, size_t size)
{
	const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? read(fd, command, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	command[got > 0 ? got : 0] = '\0';
	for (ssize_t i = 0; i + 1 < got; i++)
		if (command[i] == '\0')
			command[i] = ' ';
}

/* Once a block could not be written whole, nothing that follows can be read. */
static int give_up(int error, const char *text)
{
	if (__atomic_exchange_n(&incstack__recording.failed, error, __ATOMIC_RELAXED) == 0 &&
	    write(STDERR_FILENO, text, strlen(text)) < 0)
		return -1;
	return -1;
}

/* Keeps the descriptor out of the low numbers, which targets close or dup onto. */
static int open_high(const char *path, int flags)
{
	const int low = open(path, flags | O_APPEND | O_CLOEXEC, 0666);
	const int high = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, 900) : -1;

	if (high < 0)
		return low;
	close(low);
	return high;
}

static int is_file(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_dev == incstack__recording.device &&
	       status.st_ino == incstack__recording.inode;
}

/* The descriptor of the file, opened again where the target has closed it: by now the
 * number may be that of a file of its own. Negative: it cannot be opened. */
static int descriptor(void)
{
	int *fd = &incstack__recording.fd;
	int closed = __atomic_load_n(fd, __ATOMIC_RELAXED);
	int again;

	if (is_file(closed))
		return closed;
	again = open_high(incstack__recording.path, O_WRONLY);
	if (again >= 0 && is_file(again) &&
	    __atomic_compare_exchange_n(fd, &closed, again, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return again;
	if (again >= 0)
		close(again);
	return is_file(closed) ? closed : -1; /* another thread has opened it */
}

void incstack__record_close(void)
{
	if (is_file(incstack__recording.fd))
		close(incstack__recording.fd);
}

void incstack__record_note(enum incstack__trace_note note)
{
	struct incstack__trace_slot *slots = incstack__recording.slots;

	if (slots != NULL)
		__atomic_fetch_or(&slots[0].notes, UINT64_C(1) << note, __ATOMIC_RELAXED);
}

int incstack__record_write(const void *data, size_t bytes)
{
	const unsigned char *at = data;
	int fd;

	if (__atomic_load_n(&incstack__recording.failed, __ATOMIC_RELAXED) != 0)
		return -1;
	fd = descriptor();
	if (fd < 0)
		return give_up(EBADF, "incstack: the program closed the trace file, and it cannot "
				      "be opened again; nothing more is recorded\n");
	while (bytes > 0) {
		const ssize_t done = write(fd, at, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return give_up(done < 0 ? errno : ENOSPC,
				       "incstack: the trace file cannot be written (is the disk "
				       "full?); nothing more is recorded\n");
		at += done;
		bytes -= (size_t)done;
	}
	return 0;
}

static int write_header(void)
{
	static struct incstack__trace_header header;
	char command[sizeof(header.command)];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	read_command(command, sizeof(command));
	incstack__trace_header_init(&header, (uint64_t)incstack__recording.pid,
				    (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
				    incstack__recording.interval, incstack__recording.mode,
				    command);
	return incstack__record_write(&header, sizeof(header));
}

/* The file is known by what it is, and opened again by its path. */
static int create(const char *path)
{
	struct incstack__recording *r = &incstack__recording;
	struct stat status;

	r->fd = open_high(path, O_RDWR | O_CREAT | O_TRUNC);
	if (r->fd < 0 || fstat(r->fd, &status) != 0)
		return -1;
	r->device = status.st_dev;
	r->inode = status.st_ino;
	snprintf(r->path, sizeof(r->path), "%s", path);
	return 0;
}

int incstack__record_open(const char *path)
{
	struct incstack__recording *r = &incstack__recording;
	void *slots;

	r->failed = 0;
	if (create(path) != 0 || write_header() != 0)
		return -1;
	/* The space is taken now: a store to a mapped page that finds the disk full would
	 * end the process. */
	errno = posix_fallocate(r->fd, 0, INCSTACK__TRACE_START);
	if (errno != 0)
		return -1;
	slots = mmap(NULL, INCSTACK__TRACE_COUNTERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		     r->fd, INCSTACK__TRACE_HEADER_BYTES);
	if (slots == MAP_FAILED)
		return -1;
	r->slots = slots;
	r->slots[0].notes = r->why;
	r->adds = 0;
	return 0;
}

static int see_counts(struct dl_phdr_info *info, size_t size, void *context)
{
	unsigned long long *counts = context;

	(void)size;
	counts[0] = info->dlpi_adds;
	counts[1] = info->dlpi_subs;
	return 1;
}

static void module_range(const struct dl_phdr_info *info, uint64_t *low, uint64_t *high)
{
	*low = UINT64_MAX;
	*high = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + p->p_vaddr < *low)
			*low = info->dlpi_addr + p->p_vaddr;
		if (info->dlpi_addr + p->p_vaddr + p->p_memsz > *high)
			*high = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
	char path[4096];
	const char *name = info->dlpi_name;
	uint64_t low;
	uint64_t high;

	(void)size;
	module_range(info, &low, &high);
	if (low >= high)
		return 0;
	if (name == NULL || *name == '\0') { /* the program has no name there */
		const ssize_t got = readlink("/proc/self/exe", path, sizeof(path) - 1);

		path[got > 0 ? got : 0] = '\0';
		name = path;
	}
	return incstack__trace_modules_add(context, name, info->dlpi_addr, low, high) != 0;
}

static void write_modules(uint32_t thread)
{
	const size_t bytes = 1u << 20;
	struct incstack__trace_modules modules;
	unsigned char *buffer = incstack__record_map(bytes);
	int64_t used;

	if (buffer == NULL)
		return;
	incstack__trace_modules_begin(&modules, buffer, bytes, incstack__recording.epoch);
	dl_iterate_phdr(add_module, &modules);
	used = incstack__trace_modules_finish(&modules, thread);
	if (used > 0)
		incstack__record_write(buffer, (size_t)used);
	incstack__record_unmap(buffer, bytes);
}

/* A new list is a new epoch: batches name the one that they were taken in. */
void incstack__record_modules(uint32_t thread)
{
	struct incstack__recording *r = &incstack__recording;
	unsigned long long counts[2] = {0, 0};

	dl_iterate_phdr(see_counts, counts);
	if (counts[0] == r->adds && counts[1] == r->subs)
		return;
	r->adds = counts[0];
	r->subs = counts[1];
	__atomic_add_fetch(&r->epoch, 1, __ATOMIC_RELEASE);
	write_modules(thread);
	incstack__record_host_look();
}
