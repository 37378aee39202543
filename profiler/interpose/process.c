/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that end a process image, and has the records written first.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "stub.h"

INCSTACK__REAL(_exit)
INCSTACK__REAL(_Exit)
INCSTACK__REAL(execve)
INCSTACK__REAL(execv)
INCSTACK__REAL(execvp)
INCSTACK__REAL(execvpe)
INCSTACK__REAL(fexecve)
INCSTACK__REAL(execveat)

static void announce_exec(void)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_exec();
}

static void announce_exit(void)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_exit();
}

INCSTACK__INTERPOSED void _exit(int status)
{
	announce_exit();
	_exit_next()(status);
	__builtin_unreachable();
}

INCSTACK__INTERPOSED void _Exit(int status)
{
	announce_exit();
	_Exit_next()(status);
	__builtin_unreachable();
}

INCSTACK__INTERPOSED int execve(const char *path, char *const argv[], char *const envp[])
{
	announce_exec();
	return execve_next()(path, argv, envp);
}

INCSTACK__INTERPOSED int execv(const char *path, char *const argv[])
{
	announce_exec();
	return execv_next()(path, argv);
}

INCSTACK__INTERPOSED int execvp(const char *file, char *const argv[])
{
	announce_exec();
	return execvp_next()(file, argv);
}

INCSTACK__INTERPOSED int execvpe(const char *file, char *const argv[], char *const envp[])
{
	announce_exec();
	return execvpe_next()(file, argv, envp);
}

INCSTACK__INTERPOSED int fexecve(int fd, char *const argv[], char *const envp[])
{
	announce_exec();
	return fexecve_next()(fd, argv, envp);
}

INCSTACK__INTERPOSED int execveat(int fd, const char *path, char *const argv[], char *const envp[],
				  int flags)
{
	announce_exec();
	return execveat_next()(fd, path, argv, envp, flags);
}

/* Returns the number of arguments, including the terminating null. */
static size_t count_arguments(va_list list)
{
	size_t count = 2;

	while (va_arg(list, char *))
		count++;
	return count;
}

static void copy_arguments(char **argv, const char *first, va_list list)
{
	*argv = (char *)(uintptr_t)first;
	while (*argv)
		*++argv = va_arg(list, char *);
}

/* Makes a vector of an argument list, in the frame in which this macro is used. */
#define LIST_TO_VECTOR(argv, list, first) \
	va_start(list, first); \
	char *argv[count_arguments(list)]; \
	va_end(list); \
	va_start(list, first); \
	copy_arguments(argv, first, list)

INCSTACK__INTERPOSED int execl(const char *path, const char *first, ...)
{
	va_list list;
	LIST_TO_VECTOR(argv, list, first);

	va_end(list);
	return execv(path, argv);
}

INCSTACK__INTERPOSED int execlp(const char *file, const char *first, ...)
{
	va_list list;
	LIST_TO_VECTOR(argv, list, first);

	va_end(list);
	return execvp(file, argv);
}

INCSTACK__INTERPOSED int execle(const char *path, const char *first, ...)
{
	char **envp;
	va_list list;
	LIST_TO_VECTOR(argv, list, first);

	envp = va_arg(list, char **);
	va_end(list);
	return execve(path, argv, envp);
}
