/* SPDX-License-Identifier: MIT
 *
 * Looks at the pages of this process when its recording has ended, if the user wants that. The block is written after
 * everything else, so that there is room for the events first.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "recorder/output/output.h"
#include "recorder/system/kernel.h"
#include "recorder/system/system.h"
#include "tracefile/moment.h"

static int64_t read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return incstack__kernel_pread(fd, to, bytes, (off_t)offset);
}

/* The main thread may have ended, and then only the other threads show the memory of the process. */
static int open_own(const char *path)
{
	return incstack__kernel_open(path, O_RDONLY | O_CLOEXEC, 0);
}

static void close_own(int fd)
{
	if (fd >= 0)
		incstack__kernel_close(fd);
}

static uint64_t now(clockid_t clock)
{
	struct timespec time = {0};

	incstack__clock(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void look(struct incstack__record_moment *moment)
{
	const uint64_t begin = now(CLOCK_MONOTONIC_COARSE);
	const struct incstack__moment_source source = {
		.maps = open_own("/proc/thread-self/maps"),
		.pagemap = open_own("/proc/thread-self/pagemap"),
		.rollup = open_own("/proc/thread-self/smaps_rollup"),
		.read = read_at,
	};

	if (source.maps >= 0 && source.pagemap >= 0)
		moment->block = incstack__moment_look(&source, moment->memory, moment->room);
	close_own(source.maps);
	close_own(source.pagemap);
	close_own(source.rollup);
	if (!moment->block)
		return;
	moment->block->head.flags |= INCSTACK__MOMENT_OF_END;
	moment->block->head.time_ns = now(CLOCK_REALTIME_COARSE);
	moment->block->head.took_ns = now(CLOCK_MONOTONIC_COARSE) - begin;
}

void incstack__record_moment_look(struct incstack__record_moment *moment)
{
	*moment = (struct incstack__record_moment){.memory = NULL};
	if (!incstack__recording.resident)
		return;
	for (size_t room = INCSTACK__MOMENT_ROOM;
	     !moment->memory && room >= INCSTACK__MOMENT_ROOM_LEAST; room /= 8) {
		moment->memory = incstack__record_map(room);
		moment->room = room;
	}
	if (moment->memory)
		look(moment);
	if (!moment->block)
		incstack__record_note(INCSTACK__NOTE_NO_MOMENT);
}

void incstack__record_moment_write(struct incstack__record_moment *moment)
{
	const size_t bytes = moment->block ? incstack__moment_seal(moment->block) : 0;

	if (bytes > 0 && !incstack__record_has_room(bytes))
		incstack__record_note(INCSTACK__NOTE_NO_MOMENT);
	else if (bytes > 0)
		incstack__record_write(moment->block, bytes);
	incstack__record_unmap(moment->memory, moment->room);
}
