/* SPDX-License-Identifier: MIT
 *
 * Writes into the trace file how the process ended, which only its parent knows. It is a word of
 * the counters area, not a block, because the last block may be cut off.
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

void tool_record_note_end(const char *file, uint64_t pid, int status)
{
	const uint64_t end = INCSTACK__TRACEFILE_ENDED | (uint16_t)status;
	const off_t at =
		INCSTACK__TRACEFILE_HEADER_BYTES + offsetof(struct incstack__tracefile_slot, end);
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK | TOOL_FOREIGN_WRITE};
	const char *why;
	const int fd = tool_foreign_open(file, &terms, NULL, &why);

	if (fd < 0)
		return;
	if (is_of(fd, pid) && pwrite(fd, &end, sizeof(end), at) != (ssize_t)sizeof(end)) {
		/* If the disk is full, the report does not have it. */
	}
	close(fd);
}
