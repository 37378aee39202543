/* SPDX-License-Identifier: MIT
 *
 * Copies parts of an object, in blocks, when they are first needed. A few files stay open; the others
 * are opened again, for a process may have many more files than the tool may have descriptors.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ask.h"
#include "copy.h"

enum { BLOCK = 16 << 10 };
enum { OPEN_LEAST = 8, OPEN_MOST = 256, OPEN_PART = 8 };
#define SIZE_MOST (UINT64_C(4) << 30)
#define RESERVED_MOST (UINT64_C(64) << 30) /* address space, of which little is used */
#define BYTES_MOST (UINT64_C(512) << 20)

void tool_attach_copies_init(struct tool_attach_copies *all)
{
	struct rlimit limit = {.rlim_cur = 0};

	*all = (struct tool_attach_copies){.open_most = OPEN_LEAST};
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur / OPEN_PART > OPEN_LEAST)
		all->open_most = limit.rlim_cur / OPEN_PART;
	if (all->open_most > OPEN_MOST)
		all->open_most = OPEN_MOST;
}

/* ---- descriptors --------------------------------------------------------------------------------- */

static void unlink_copy(struct tool_attach_copy *copy)
{
	struct tool_attach_copies *all = copy->all;

	*(copy->newer ? &copy->newer->older : &all->newest) = copy->older;
	*(copy->older ? &copy->older->newer : &all->oldest) = copy->newer;
	copy->newer = copy->older = NULL;
}

static void link_copy(struct tool_attach_copy *copy)
{
	struct tool_attach_copies *all = copy->all;

	copy->older = all->newest;
	*(all->newest ? &all->newest->newer : &all->oldest) = copy;
	all->newest = copy;
}

static void close_file(struct tool_attach_copy *copy)
{
	if (copy->fd < 0)
		return;
	unlink_copy(copy);
	close(copy->fd);
	copy->fd = -1;
	copy->all->open_count--;
}

static void keep_file(struct tool_attach_copy *copy, int fd)
{
	struct tool_attach_copies *all = copy->all;

	if (all->open_count >= all->open_most)
		close_file(all->oldest);
	copy->fd = fd;
	link_copy(copy);
	all->open_count++;
}

/* Makes sure that the file is open, and the last one to be closed. */
static bool open_file(struct tool_attach_copy *copy)
{
	int fd;

	if (copy->fd >= 0) {
		unlink_copy(copy);
		link_copy(copy);
		return true;
	}
	if (!copy->mapping.path) /* it has no file */
		return false;
	fd = tool_attach_ask_file(&copy->mapping, NULL);
	if (fd >= 0)
		keep_file(copy, fd);
	return fd >= 0;
}

bool tool_attach_copy_read(struct tool_attach_copy *copy, uint64_t offset, void *data, size_t bytes)
{
	size_t done = 0;

	if (offset > (uint64_t)INT64_MAX - bytes || !open_file(copy))
		return false;
	while (done < bytes) {
		const ssize_t got = pread(copy->fd, (unsigned char *)data + done, bytes - done,
					  (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

/* ---- blocks ---------------------------------------------------------------------------------------- */

/* Only what is copied counts as memory of the tool. */
static bool make_block(const struct tool_attach_copy *copy, uint64_t low, uint64_t high)
{
	return mprotect(copy->memory + low, high - low, PROT_READ | PROT_WRITE) == 0;
}

static bool copy_block(struct tool_attach_copy *copy, uint64_t low)
{
	const uint64_t high = copy->size - low < BLOCK ? copy->size : low + BLOCK;
	bool done = true;

	if (copy->all->bytes + BLOCK > BYTES_MOST || !make_block(copy, low, high)) {
		copy->all->refused++;
		return false;
	}
	copy->all->bytes += BLOCK;
	for (unsigned i = 0; i < copy->count && done; i++) {
		const struct tool_attach_part *part = &copy->parts[i];
		const uint64_t from = part->low > low ? part->low : low;
		const uint64_t to = part->high < high ? part->high : high;

		if (from < to)
			done = tool_attach_copy_read(copy, part->offset + (from - part->low),
						     copy->memory + from, to - from);
	}
	copy->failed = !done;
	copy->copied[low / BLOCK / CHAR_BIT] |= (unsigned char)(1u << low / BLOCK % CHAR_BIT);
	return done;
}

bool tool_attach_copy_get(struct tool_attach_copy *copy, uint64_t at, uint64_t bytes)
{
	if (at > copy->size || bytes > copy->size - at)
		return false;
	if (!copy->copied || bytes == 0) /* all is there */
		return true;
	for (uint64_t block = at / BLOCK; block * BLOCK < at + bytes && !copy->failed; block++)
		if (!(copy->copied[block / CHAR_BIT] >> block % CHAR_BIT & 1) &&
		    !copy_block(copy, block * BLOCK))
			return false;
	return !copy->failed;
}

/* ---- begin and end ---------------------------------------------------------------------------------- */

static bool reserve(struct tool_attach_copy *copy, uint64_t size)
{
	struct tool_attach_copies *all = copy->all;
	void *memory;

	if (size == 0 || size > SIZE_MOST || size > RESERVED_MOST - all->reserved) {
		all->refused++;
		return false;
	}
	memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	all->reserved += size;
	copy->memory = memory;
	copy->size = size;
	return true;
}

struct tool_attach_copy *tool_attach_copy_new(struct tool_attach_copies *all,
					      const struct tool_attach_mapping *mapping, int fd,
					      uint64_t size)
{
	struct tool_attach_copy *copy = calloc(1, sizeof(*copy));

	if (!copy) {
		close(fd);
		return NULL;
	}
	copy->all = all;
	copy->users = 1;
	copy->mapping = *mapping;
	copy->mapping.path = strdup(mapping->path);
	copy->fd = -1;
	keep_file(copy, fd);
	if (copy->mapping.path && reserve(copy, size))
		copy->copied = calloc(1, size / BLOCK / CHAR_BIT + 1);
	if (copy->copied) {
		all->last = copy;
		return copy;
	}
	tool_attach_copy_free(copy);
	return NULL;
}

struct tool_attach_copy *tool_attach_copy_of_memory(struct tool_attach_copies *all,
						    const void *memory, uint64_t size)
{
	struct tool_attach_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->all = all;
	copy->users = 1;
	copy->fd = -1;
	if (reserve(copy, size) && make_block(copy, 0, size)) {
		memcpy(copy->memory, memory, size);
		return copy;
	}
	tool_attach_copy_free(copy);
	return NULL;
}

void tool_attach_copy_free(struct tool_attach_copy *copy)
{
	if (!copy || --copy->users > 0)
		return;
	if (copy->all->last == copy)
		copy->all->last = NULL;
	close_file(copy);
	if (copy->memory) {
		munmap(copy->memory, copy->size);
		copy->all->reserved -= copy->size;
	}
	for (uint64_t i = 0; copy->copied && i < copy->size / BLOCK + 1; i++)
		if (copy->copied[i / CHAR_BIT] >> i % CHAR_BIT & 1)
			copy->all->bytes -= BLOCK;
	free(copy->copied);
	free(copy->path);
	free((char *)copy->mapping.path);
	free(copy);
}
