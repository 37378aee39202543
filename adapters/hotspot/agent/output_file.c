/* SPDX-License-Identifier: MIT
 *
 * Writes a profile to a file. The file gets its name when it is complete. Anything but a regular file, such as
 * a pipe, is written directly.
 */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"

/* Whether the name leads to a file that is open, as /dev/stdout does. */
static bool is_of_system(const char *name)
{
	return !strncmp(name, "/dev/", 5) || !strncmp(name, "/proc/", 6);
}

/* Whether it is written itself and not replaced by a new file. */
static bool is_special(const char *name)
{
	struct stat status;

	return is_of_system(name) || (!stat(name, &status) && !S_ISREG(status.st_mode));
}

/* Whether another user could have put it there to get the profile, or to make the JVM wait. */
static bool is_trap(const struct stat *status)
{
	return (S_ISFIFO(status->st_mode) || S_ISLNK(status->st_mode)) &&
	       status->st_uid != geteuid() && status->st_uid != 0;
}

static bool leads_to_trap(const char *name)
{
	struct stat status;

	return is_special(name) && ((!lstat(name, &status) && is_trap(&status)) ||
				    (!stat(name, &status) && is_trap(&status)));
}

/* Makes the name that the file has while it is written, in the same folder. */
static bool make_temporary(const char *name, char temporary[AGENT_FILE_MAX])
{
	return snprintf(temporary, AGENT_FILE_MAX, "%s.%ld.part", name, (long)getpid()) <
	       AGENT_FILE_MAX;
}

/* Creates the file under the temporary name, which others can guess: so no link is followed, and nothing
 * that exists is opened. What an earlier process with the same number has left is removed. */
static int open_temporary(const char *temporary)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int file = open(temporary, flags, 0666);

	if (file < 0 && errno == EEXIST && !unlink(temporary))
		file = open(temporary, flags, 0666);
	return file;
}

const char *agent_file_probe(const char *name)
{
	char temporary[AGENT_FILE_MAX];
	struct stat status;
	int file;

	if (!make_temporary(name, temporary))
		return "the name is too long";
	if (!stat(name, &status) && S_ISDIR(status.st_mode))
		return "it is a directory";
	if (leads_to_trap(name))
		return "it is a link or a pipe of another user";
	if (is_special(name))
		return access(name, W_OK) ? strerror(errno) : NULL;
	if (!access(name, F_OK) && access(name, W_OK))
		return strerror(errno);
	file = open_temporary(temporary);
	if (file < 0)
		return strerror(errno);
	close(file);
	unlink(temporary);
	return NULL;
}

/* ---- writing ---- */

static FILE *open_stream(const char *temporary)
{
	const int file = open_temporary(temporary);
	FILE *stream = file < 0 ? NULL : fdopen(file, "w");

	if (file >= 0 && !stream)
		close(file);
	return stream;
}

/* Opens a pipe or a terminal, without waiting for a reader, for whom the JVM would not end. Somebody may have
 * put a link to a file in its place meanwhile, so nothing is truncated, and a regular file is refused. So is a
 * pipe of another user, who could stop reading. */
static FILE *open_special(const char *name)
{
	const int file = open(name, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	FILE *stream = NULL;

	errno = file < 0 && errno == ENXIO ? EPIPE : errno;
	if (file >= 0 && !fstat(file, &status) &&
	    (is_of_system(name) || !S_ISREG(status.st_mode)) && !is_trap(&status) &&
	    !fcntl(file, F_SETFL, O_APPEND))
		stream = fdopen(file, "w");
	else if (file >= 0)
		errno = EPERM;
	if (file >= 0 && !stream)
		close(file);
	return stream;
}

static int write_stream(const struct incstack_profile *profile, enum incstack_profile_format format,
			FILE *stream)
{
	int error = incstack_profile_write(profile, format, 0, stream);

	if (fclose(stream) && !error)
		error = INCSTACK_EIO;
	return error;
}

int agent_file_write(const char *name, const struct incstack_profile *profile,
		     enum incstack_profile_format format)
{
	char temporary[AGENT_FILE_MAX];
	const bool special = is_special(name);
	FILE *stream;
	int error;

	if (!make_temporary(name, temporary))
		return INCSTACK_EIO;
	stream = special ? open_special(name) : open_stream(temporary);
	if (!stream)
		return INCSTACK_EIO;
	error = write_stream(profile, format, stream);
	if (!special && !error && rename(temporary, name))
		error = INCSTACK_EIO;
	if (!special && error) {
		const int reason = errno;

		unlink(temporary);
		errno = reason;
	}
	return error;
}
