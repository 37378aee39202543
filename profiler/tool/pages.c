/* SPDX-License-Identifier: MIT
 *
 * Looks at the pages of another process, which goes on meanwhile.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "pages.h"

static int64_t read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return pread(fd, to, bytes, (off_t)offset);
}

static uint64_t now(clockid_t clock)
{
	struct timespec time = {0};

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

struct incstack__moment_block *tool_pages_look(const struct tool_pages_files *files, void **memory)
{
	const struct incstack__moment_source source = {
		.maps = files->maps,
		.pagemap = files->pagemap,
		.rollup = files->rollup,
		.read = read_at,
	};
	const uint64_t begin = now(CLOCK_MONOTONIC);
	struct incstack__moment_block *block = NULL;

	*memory = malloc(INCSTACK__MOMENT_ROOM);
	if (*memory != NULL && files->maps >= 0 && files->pagemap >= 0)
		block = incstack__moment_look(&source, *memory, INCSTACK__MOMENT_ROOM);
	if (block != NULL) {
		block->head.time_ns = now(CLOCK_REALTIME);
		block->head.took_ns = now(CLOCK_MONOTONIC) - begin;
	}
	return block;
}
