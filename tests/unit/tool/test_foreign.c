/* SPDX-License-Identifier: MIT
 *
 * Tests the opening of files that somebody else names: only regular files are opened, nothing waits, and
 * each refusal has its reason.
 */
#include "tool/foreign.c"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "run_suite.h"

static char folder[40];

static void enter(void)
{
	FILE *file;

	strcpy(folder, "/tmp/incstack-foreign-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
	umask(022);
	file = fopen("file", "w");
	ck_assert_ptr_nonnull(file);
	fputs("content", file);
	fclose(file);
}

static void leave(void)
{
	static const char *const names[] = {"file",      "pipe", "socket",   "to-pipe",
					    "to-device", "link", "dangling", "round"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* Returns the reason, or "" and closes the file. */
static const char *reason(const char *name, struct tool_foreign terms)
{
	const char *why;
	struct stat status;
	const int fd = tool_foreign_open(name, &terms, &status, &why);

	if (fd < 0)
		return why;
	ck_assert_ptr_null(why);
	ck_assert(S_ISREG(status.st_mode));
	close(fd);
	return "";
}

#define ANY ((struct tool_foreign){0})
#define NO_LINK ((struct tool_foreign){.flags = TOOL_FOREIGN_NO_LINK})
#define OWNED(by) ((struct tool_foreign){.flags = TOOL_FOREIGN_OWNED, .owner = (by)})

START_TEST(regular_files)
{
	char text[16] = "";
	const char *why;
	FILE *stream = tool_foreign_stream("file", NULL, NULL, &why);

	ck_assert_ptr_nonnull(stream);
	ck_assert_uint_eq(fread(text, 1, sizeof(text), stream), 7);
	ck_assert_str_eq(text, "content");
	ck_assert_int_ne(fcntl(fileno(stream), F_GETFD) & FD_CLOEXEC, 0);
	fclose(stream);
	ck_assert_str_eq(reason("file", NO_LINK), "");
	ck_assert_str_eq(reason("file", (struct tool_foreign){.bytes_most = 7}), "");
	ck_assert_str_eq(reason("file", (struct tool_foreign){.bytes_most = 6}), "is too large");
	ck_assert_str_eq(reason("file", (struct tool_foreign){.flags = TOOL_FOREIGN_WRITE}), "");
	ck_assert_str_eq(reason("missing", ANY), strerror(ENOENT));
	ck_assert_str_eq(reason("", ANY), strerror(ENOENT));
	ck_assert_str_eq(reason("file/x", ANY), strerror(ENOTDIR));
}
END_TEST

/* A process that opens a pipe in order to read waits until another one writes. */
START_TEST(other_files)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	const int number = socket(AF_UNIX, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(number, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(mkfifo("pipe", 0600), 0);
	ck_assert_int_eq(symlink("pipe", "to-pipe"), 0);
	ck_assert_int_eq(symlink("/dev/zero", "to-device"), 0);
	ck_assert_str_eq(reason("pipe", ANY), "is not a regular file");
	ck_assert_str_eq(reason("to-pipe", ANY), "is not a regular file");
	ck_assert_str_eq(reason("socket", ANY), "is not a regular file");
	ck_assert_str_eq(reason("to-device", ANY), "is not a regular file");
	ck_assert_str_eq(reason("/dev/tty", ANY), "is not a regular file");
	ck_assert_str_eq(reason(".", ANY), "is a directory");
	close(number);
}
END_TEST

START_TEST(links)
{
	ck_assert_int_eq(symlink("file", "link"), 0);
	ck_assert_int_eq(symlink("missing", "dangling"), 0);
	ck_assert_int_eq(symlink("round", "round"), 0);
	ck_assert_str_eq(reason("link", ANY), "");
	ck_assert_str_eq(reason("link", NO_LINK), "is a symbolic link");
	ck_assert_str_eq(reason("dangling", ANY), strerror(ENOENT));
	ck_assert_str_eq(reason("dangling", NO_LINK), "is a symbolic link");
	ck_assert_str_eq(reason("round", ANY), strerror(ELOOP));
}
END_TEST

START_TEST(owners)
{
	ck_assert_str_eq(reason("file", OWNED(geteuid())), "");
	if (geteuid() != 0)
		ck_assert_str_eq(reason("file", OWNED(geteuid() + 1)), "belongs to another user");
	else
		ck_assert_str_eq(reason("file", OWNED(1)), ""); /* of root, as most files are */
	ck_assert_int_eq(chmod("file", 0666), 0);
	ck_assert_str_eq(reason("file", OWNED(geteuid())), "may be written by other users");
	ck_assert_int_eq(chmod("file", 0664), 0); /* by the group */
	ck_assert_str_eq(reason("file", OWNED(geteuid())),
			 getegid() == geteuid() ? "" : "may be written by other users");
	if (geteuid() == 0) {
		ck_assert_int_eq(chown("file", 0, 1), 0);
		ck_assert_str_eq(reason("file", OWNED(0)), "may be written by other users");
	}
	ck_assert_int_eq(chmod("file", 0644), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown("file", 1, 1), 0);
		ck_assert_str_eq(reason("file", OWNED(0)), "belongs to another user");
		ck_assert_str_eq(reason("file", OWNED(1)), "");
	}
}
END_TEST

/* A file that another process has a lease of is not waited for (up to 45 seconds). */
START_TEST(leased_file)
{
	const pid_t pid = getpid();
	int ready[2], status;
	char byte;
	pid_t child;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		const int fd = open("file", O_RDWR);

		signal(SIGIO, SIG_IGN);
		if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0)
			_exit(1); /* the file system has no leases */
		if (write(ready[1], "x", 1) != 1)
			_exit(2);
		while (getppid() == pid)
			usleep(1000);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) == 1)
		ck_assert_str_eq(reason("file", ANY), strerror(EAGAIN));
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	close(ready[0]);
}
END_TEST

/* Nothing stays open. */
START_TEST(descriptors)
{
	const int before = dup(0);
	int after;

	close(before);
	for (int i = 0; i < 100; i++) {
		reason("file", NO_LINK);
		reason(".", ANY);
		reason("missing", ANY);
	}
	after = dup(0);
	close(after);
	ck_assert_int_eq(after, before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("foreign files");
	TCase *tests = tcase_create("foreign files");

	tcase_add_checked_fixture(tests, enter, leave);
	tcase_add_test(tests, regular_files);
	tcase_add_test(tests, other_files);
	tcase_add_test(tests, links);
	tcase_add_test(tests, owners);
	tcase_add_test(tests, leased_file);
	tcase_add_test(tests, descriptors);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
