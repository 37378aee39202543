/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 20000
 *
 * A daemon: it leaves its directory and closes every descriptor that it does not know. Later its
 * own file is at every number, and nothing else may write to that file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCKS = 10000, NUMBERS = 1000 };

static void allocate(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *volatile block = malloc((size_t)i % 100 + 1);

		free(block);
	}
}

int main(void)
{
	const struct rlimit numbers = {NUMBERS, NUMBERS};
	FILE *own = tmpfile();
	struct stat status;

	if (own == NULL || setrlimit(RLIMIT_NOFILE, &numbers) != 0 || chdir("/") != 0)
		return 2;
	allocate();
	for (int fd = fileno(own) + 1; fd < NUMBERS; fd++)
		close(fd);
	while (dup(fileno(own)) >= 0)
		;
	for (int fd = NUMBERS - 20; fd < NUMBERS; fd++)
		close(fd); /* room for others */
	allocate();
	return fstat(fileno(own), &status) != 0 || status.st_size != 0;
}
