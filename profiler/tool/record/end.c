/* SPDX-License-Identifier: MIT
 *
 * Writes into the trace file what only the parent of the process knows: how it ended, and that the
 * program which it executed was not recorded. These are words of the counters area, not blocks, because
 * the last block may be cut off.
 */
#include <stddef.h>
#include <unistd.h>

#include "tracefile/format.h"
#include "tool/foreign.h"
#include "record.h"

/* Whether the file belongs to this process, and not to an earlier run or to another process with
 * the same file name. */
static int is_of(int fd, uint64_t pid)
{
	static struct incstack__tracefile_header header;

	return pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	       header.magic == INCSTACK__TRACEFILE_MAGIC && header.pid == pid &&
	       header.version == INCSTACK__TRACEFILE_VERSION;
}

/* Changes a word of the first counter slot. */
static void put(int fd, uint64_t pid, size_t member, uint64_t value, int add)
{
	const off_t at = INCSTACK__TRACEFILE_HEADER_BYTES + (off_t)member;
	uint64_t before = 0;

	if (add && pread(fd, &before, sizeof(before), at) == (ssize_t)sizeof(before))
		value |= before;
	if (is_of(fd, pid) && pwrite(fd, &value, sizeof(value), at) != (ssize_t)sizeof(value)) {
		/* If the disk is full, the report does not have it. */
	}
}

void tool_record_note_end(const char *file, uint64_t pid, int status)
{
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK | TOOL_FOREIGN_WRITE};
	const char *why;
	const int fd = tool_foreign_open(file, &terms, NULL, &why);

	if (fd < 0)
		return;
	put(fd, pid, offsetof(struct incstack__tracefile_slot, end),
	    INCSTACK__TRACEFILE_ENDED | (uint16_t)status, 0);
	close(fd);
}

void tool_record_note(int fd, uint64_t pid, unsigned note)
{
	put(fd, pid, offsetof(struct incstack__tracefile_slot, notes), UINT64_C(1) << note, 1);
}
