/* SPDX-License-Identifier: MIT
 *
 * The map file of perf: lines "START SIZE name" with hexadecimal numbers. Each line is one write
 * to a file that was opened for appending, so threads need no lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <incstack/jit.h>
#include <incstack/profile.h>

struct incstack_perf_map {
	int file;
};

/* Creates the file. Everyone may write to the folder /tmp, so an existing file is not trusted. */
static int create_file(const char *path)
{
	char usual[64];

	if (!path) {
		snprintf(usual, sizeof(usual), "/tmp/perf-%ld.map", (long)getpid());
		path = usual;
	}
	if (unlink(path) && errno != ENOENT)
		return -1;
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
}

int incstack_perf_map_create(const char *path, struct incstack_perf_map **map)
{
	struct incstack_perf_map *made;

	if (!map)
		return INCSTACK_EINVAL;
	made = malloc(sizeof(*made));
	if (!made)
		return INCSTACK_ENOMEM;
	made->file = create_file(path);
	if (made->file < 0) {
		free(made);
		return INCSTACK_EIO;
	}
	*map = made;
	return 0;
}

int incstack_perf_map_add(struct incstack_perf_map *map, uintptr_t address, size_t size,
			  const char *name)
{
	char *line;
	int length, error = 0;

	if (!map || !size || !name || !*name || size > UINTPTR_MAX - address)
		return INCSTACK_EINVAL;
	length = asprintf(&line, "%" PRIxPTR " %zx %s\n", address, size, name);
	if (length < 0)
		return INCSTACK_ENOMEM;
	for (int i = 0; i + 1 < length; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	if (write(map->file, line, (size_t)length) != length)
		error = INCSTACK_EIO;
	free(line);
	return error;
}

void incstack_perf_map_destroy(struct incstack_perf_map *map)
{
	if (!map)
		return;
	close(map->file);
	free(map);
}
