/* SPDX-License-Identifier: MIT
 *
 * Tells the tool that the recorder could not be loaded into this program, for example because of a
 * limit on memory. The trace file of the image before, or of the parent, gets a note. If there is
 * none, an empty file is left in its place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracefile/format.h"
#include "tracefile/notes.h"
#include "stub.h"

/* Notes are bits of any slot. The process whose file it is changes those of the first slot only. */
static void note_in(int fd)
{
	const off_t at = INCSTACK__TRACEFILE_HEADER_BYTES +
			 sizeof(struct incstack__tracefile_slot) +
			 offsetof(struct incstack__tracefile_slot, notes);
	uint64_t notes = 0;

	if (lseek(fd, 0, SEEK_END) < INCSTACK__TRACEFILE_START ||
	    pread(fd, &notes, sizeof(notes), at) != sizeof(notes))
		return;
	notes |= UINT64_C(1) << INCSTACK__NOTE_NO_RECORDER;
	if (pwrite(fd, &notes, sizeof(notes), at) != sizeof(notes)) {
		/* The bytes exist, so this is an error of the file system. */
	}
}

/* Whether this process should be recorded, because the tool has started it or because children are
 * followed. The configuration begins with the number of the first recorded process, if there was
 * such a process. */
static bool is_wanted(const char *configuration)
{
	const long starter = strncmp(configuration, "pid=", 4) == 0 ? atol(configuration + 4) : 0;

	return starter <= 0 || starter == getpid() || strstr(configuration, "follow=1;");
}

void incstack__stub_unloadable(const char *configuration)
{
	const int saved = errno;
	const char *file = strstr(configuration, "file="); /* the last option */
	int fd;

	if (!file || !is_wanted(configuration))
		return;
	file += strlen("file=");
	fd = open(file, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	else
		note_in(fd);
	if (fd >= 0)
		close(fd);
	errno = saved;
}
