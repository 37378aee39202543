/* SPDX-License-Identifier: MIT
 *
 * incstack heap preload: locks_files.so
 * incstack heap traces: 3000
 *
 * Its first allocation, and many others, come from a function for files that holds a lock.
 */
#include <fcntl.h>
#include <unistd.h>

#include "nest.h"

static void use_file(void)
{
	char byte;
	const int fd = open("/dev/zero", O_RDONLY);

	if (read(fd, &byte, 1) != 1 || pread(fd, &byte, 1, 0) != 1 || close(fd) != 0)
		abort();
}

int main(void)
{
	use_file();
	for (int i = 0; i < 1000; i++)
		nest(i % 20, use_file);
	return 0;
}
