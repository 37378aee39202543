/* SPDX-License-Identifier: MIT
 *
 * The map file of perf: lines "START SIZE name" with hexadecimal numbers. The file is opened for each line.
 * So no descriptor is left behind that a program might close and use for something else.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <incstack/jit.h>
#include <incstack/profile.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t maker; /* the process that has made its file; under `lock` */

/* Makes the file. Everyone may write to the folder /tmp, so an existing file is not trusted. */
static int make_file(const char *path)
{
	if (unlink(path) && errno != ENOENT)
		return -1;
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

/* Opens the file that was made before. If it was removed, another user may have put a file in its place. */
static int open_file(const char *path)
{
	struct stat status;
	int file = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (file < 0 ||
	    (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()))
		return file;
	close(file);
	errno = EPERM;
	return -1;
}

static int open_map(void)
{
	const pid_t pid = getpid();
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)pid);
	if (maker == pid)
		return open_file(path);
	file = make_file(path);
	if (file >= 0)
		maker = pid;
	return file;
}

static int write_line(const char *line, size_t length)
{
	int file = open_map(), error = 0;

	if (file < 0)
		return INCSTACK_EIO;
	if (write(file, line, length) != (ssize_t)length)
		error = INCSTACK_EIO;
	close(file);
	return error;
}

int incstack_perf_map_add(uintptr_t address, size_t size, const char *name)
{
	char *line;
	int length, error;

	if (!size || !name || !*name || size > UINTPTR_MAX - address)
		return INCSTACK_EINVAL;
	length = asprintf(&line, "%" PRIxPTR " %zx %s\n", address, size, name);
	if (length < 0)
		return INCSTACK_ENOMEM;
	for (int i = 0; i + 1 < length; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	pthread_mutex_lock(&lock);
	error = write_line(line, (size_t)length);
	pthread_mutex_unlock(&lock);
	free(line);
	return error;
}
