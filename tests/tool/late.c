/* SPDX-License-Identifier: MIT
 *
 * late PLUGIN: opens a plugin and forks at once. The child allocates in the plugin and is killed,
 * so it does not write what it recorded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void leak_fn(int count);

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	leak_fn *leak = NULL;
	int status = 0;

	if (library != NULL)
		*(void **)&leak = dlsym(library, "leak_in_plugin");
	if (leak == NULL)
		return 3;
	if (fork() == 0) {
		leak(40);
		kill(getpid(), SIGKILL);
	}
	return wait(&status) > 0 && WIFSIGNALED(status) ? 0 : 4;
}
