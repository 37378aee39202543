/* SPDX-License-Identifier: MIT
 *
 * The trace file of this process: writes its header, maps its shared counters, and appends
 * blocks.
 */
#include <stdatomic.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "recorder/system/open.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "tracefile/write.h"

static void read_command(char *command, size_t size)
{
	const size_t bytes = incstack__record_read_small("/proc/self/cmdline", command, size);

	for (size_t i = 0; i + 1 < bytes; i++)
		if (command[i] == '\0')
			command[i] = ' ';
}

/* Why the kernel refused something: what the file of this process says, and what the file of the
 * parent or of the image before says if there is no file. */
static const struct {
	int error;
	enum incstack__tracefile_note stopped;
	enum incstack__tracefile_note unrecorded;
} reasons[] = {
	{ENOSPC, INCSTACK__NOTE_FILE_FULL, INCSTACK__NOTE_UNRECORDED_FULL},
	{EDQUOT, INCSTACK__NOTE_FILE_QUOTA, INCSTACK__NOTE_UNRECORDED_FULL},
	{EFBIG, INCSTACK__NOTE_FILE_LIMIT, INCSTACK__NOTE_UNRECORDED_LIMIT},
	{ENOMEM, INCSTACK__NOTE_FILE_ERROR, INCSTACK__NOTE_UNRECORDED_MEMORY},
	{EMFILE, INCSTACK__NOTE_NO_DESCRIPTOR, INCSTACK__NOTE_UNRECORDED_OPEN},
	{ENFILE, INCSTACK__NOTE_NO_DESCRIPTOR, INCSTACK__NOTE_UNRECORDED_OPEN},
	{EACCES, INCSTACK__NOTE_FILE_ERROR, INCSTACK__NOTE_UNRECORDED_RIGHTS},
	{EPERM, INCSTACK__NOTE_FILE_ERROR, INCSTACK__NOTE_UNRECORDED_RIGHTS},
	{EROFS, INCSTACK__NOTE_FILE_ERROR, INCSTACK__NOTE_UNRECORDED_RIGHTS},
	{0, INCSTACK__NOTE_FILE_ERROR, INCSTACK__NOTE_UNRECORDED}, /* any other */
};

static size_t reason_of(int error)
{
	size_t i = 0;

	while (reasons[i].error != 0 && reasons[i].error != error)
		i++;
	return i;
}

enum incstack__tracefile_note incstack__record_unrecorded(int error)
{
	return reasons[reason_of(error)].unrecorded;
}

/* Called before exec. The new process image opens a trace file of its own, and may have other
 * rights than this process had when it opened its file. If the new image cannot open a file, a note
 * says so. */
void incstack__record_note_unwritable(void)
{
	char directory[sizeof(incstack__recording.file)];
	char *last;

	if (incstack__recording.stopping)
		return;
	snprintf(directory, sizeof(directory), "%s", incstack__recording.file);
	last = strrchr(directory, '/');
	if (last)
		last[last == directory] = '\0';
	if (incstack__kernel_access(last ? directory : ".", W_OK | X_OK) != 0)
		incstack__record_note(incstack__record_unrecorded(errno));
}

/* Stops writing. If a block was not written completely, no block after it could be read. */
static int give_up(enum incstack__tracefile_note note)
{
	if (atomic_exchange_explicit(&incstack__recording.failed, 1, memory_order_relaxed) == 0)
		incstack__record_note(note);
	return -1;
}

/* The other file belongs to this process before an exec, or to the parent. */
void incstack__record_note_in(const char *path, enum incstack__tracefile_note note)
{
	const int fd = incstack__kernel_open(path, O_RDWR | INCSTACK__RECORD_OPEN, 0);
	struct incstack__tracefile_slot *slots = MAP_FAILED;
	struct stat status;

	/* A mapping is used because a write beyond the limit on file sizes would end the
	 * program. */
	if (fd >= 0 && incstack__kernel_fstat(fd, &status) == 0 &&
	    status.st_size >= INCSTACK__TRACEFILE_START)
		slots = incstack__kernel_mmap(NULL, INCSTACK__TRACEFILE_COUNTERS_BYTES,
					      PROT_READ | PROT_WRITE, MAP_SHARED, fd,
					      INCSTACK__TRACEFILE_HEADER_BYTES);
	if (slots != MAP_FAILED) {
		atomic_fetch_or_explicit(&slots[0].notes, UINT64_C(1) << note,
					 memory_order_relaxed);
		incstack__kernel_munmap(slots, INCSTACK__TRACEFILE_COUNTERS_BYTES);
	}
	if (fd >= 0)
		incstack__kernel_close(fd);
}

/* Whether the file may grow to `end`. A write beyond the limit would raise a signal that ends the
 * program. */
static bool is_allowed(off_t end)
{
	struct rlimit limit;

	return incstack__kernel_getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
	       (rlim_t)end <= limit.rlim_cur;
}

bool incstack__record_has_room(size_t bytes)
{
	struct stat status;

	return incstack__record_descriptor(&status) >= 0 &&
	       is_allowed(status.st_size + (off_t)bytes);
}

/* Removes the pending SIGXFSZ, which is blocked. It is pending if the program has lowered the limit
 * in the meantime. */
static void take_limit_signal(void)
{
	const struct timespec none = {0, 0};
	const uint64_t signals = UINT64_C(1) << (SIGXFSZ - 1);

	incstack__system_call(SYS_rt_sigtimedwait, &signals, NULL, &none, sizeof(signals));
}

/* Skips the bytes that were written. */
static void advance(struct iovec *parts, int count, size_t done)
{
	for (int i = 0; i < count; i++) {
		const size_t here = done < parts[i].iov_len ? done : parts[i].iov_len;

		parts[i].iov_base = (unsigned char *)parts[i].iov_base + here;
		parts[i].iov_len -= here;
		done -= here;
	}
}

/* Called with signals blocked. */
static int write_all(int fd, struct iovec *parts, int count, size_t bytes)
{
	while (bytes > 0) {
		const ssize_t done = incstack__kernel_writev(fd, parts, count);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EFBIG)
			take_limit_signal();
		if (done <= 0)
			return give_up(reasons[reason_of(done < 0 ? errno : ENOSPC)].stopped);
		advance(parts, count, (size_t)done);
		bytes -= (size_t)done;
	}
	return 0;
}

int incstack__record_write_parts(struct iovec *parts, int count)
{
	struct stat status;
	size_t bytes = 0;
	int fd;

	for (int i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	if (atomic_load_explicit(&incstack__recording.failed, memory_order_relaxed) != 0)
		return -1;
	fd = incstack__record_descriptor(&status);
	if (fd < 0)
		return give_up(errno == EMFILE || errno == ENFILE ? INCSTACK__NOTE_NO_DESCRIPTOR
								  : INCSTACK__NOTE_FILE_CLOSED);
	if (!is_allowed(status.st_size + (off_t)bytes)) {
		errno = EFBIG;
		return give_up(INCSTACK__NOTE_FILE_LIMIT);
	}
	return write_all(fd, parts, count, bytes);
}

int incstack__record_write(const void *data, size_t bytes)
{
	struct iovec part = {(void *)(uintptr_t)data, bytes};

	return incstack__record_write_parts(&part, 1);
}

/* Writes the header and the first page of counter slots. Otherwise the kernel would read that page,
 * and others, from the empty file when a slot is touched for the first time. */
static int write_header(uint64_t *start_ns, uid_t owner)
{
	static struct incstack__tracefile_header header;
	static const unsigned char slots[4096];
	struct iovec parts[] = {{&header, sizeof(header)},
				{(void *)(uintptr_t)slots, sizeof(slots)}};
	char command[sizeof(header.command)];
	struct timespec now;

	/* The coarse clock does not read the time-stamp counter, which may be forbidden. */
	incstack__clock(CLOCK_REALTIME_COARSE, &now);
	*start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	read_command(command, sizeof(command));
	incstack__tracefile_header_init(&header, (uint64_t)incstack__recording.pid, *start_ns,
					incstack__recording.interval, incstack__recording.mode,
					command);
	header.kind = incstack__kind->number;
	header.owner = owner;
	header.checksum = incstack__tracefile_header_sum(header);
	return incstack__record_write_parts(parts, 2);
}

/* Creates the file. Later it is identified by device and inode, and opened again by its path. */
static int create(const char *path, uid_t *owner)
{
	struct incstack__recording *r = &incstack__recording;
	struct stat status;

	r->fd = incstack__record_create(path, &status);
	if (r->fd < 0)
		return -1;
	*owner = status.st_uid;
	r->device = status.st_dev;
	r->inode = status.st_ino;
	snprintf(r->path, sizeof(r->path), "%s", path);
	return 0;
}

static int map_slots(void)
{
	struct incstack__recording *r = &incstack__recording;
	void *slots;

	/* The space is allocated now, because a store to a mapped page would end the process if
	 * the disk were full. */
	errno = incstack__kernel_fallocate(r->fd, 0, INCSTACK__TRACEFILE_START);
	if (errno != 0)
		return -1;
	slots = incstack__kernel_mmap(NULL, INCSTACK__TRACEFILE_COUNTERS_BYTES,
				      PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
				      INCSTACK__TRACEFILE_HEADER_BYTES);
	if (slots == MAP_FAILED)
		return -1;
	r->slots = slots;
	r->slots[0].notes = r->why;
	return 0;
}

/* If recording cannot begin, no file is left, and errno tells why. */
int incstack__record_open(const char *path)
{
	struct incstack__recording *r = &incstack__recording;
	uint64_t start_ns;
	uid_t owner;
	int error;

	r->failed = 0;
	errno = EFBIG;
	if (!is_allowed(INCSTACK__TRACEFILE_START) || create(path, &owner) != 0)
		return -1;
	if (write_header(&start_ns, owner) == 0 && map_slots() == 0) {
		incstack__spool_open(path, start_ns);
		return 0;
	}
	error = errno;
	incstack__kernel_unlink(path);
	incstack__record_close();
	errno = error;
	return -1;
}
