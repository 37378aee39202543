/* SPDX-License-Identifier: MIT
 *
 * Tests which files the broker of an attachment opens for a worker that may ask for anything: only
 * regular files, by their own names, that the process has mapped or that its user can read.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/attach/process/source.h"
#include "run_suite.h"

enum { PAGE = 4096, NOBODY = 65534 };

static char folder[64];
static char name[96];
static char other[96];
static struct tool_attach_target target;

static void begin(void)
{
	strcpy(folder, "/tmp/attach_source.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chmod(folder, 0755), 0);
	snprintf(name, sizeof(name), "%s/file", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	ck_assert_int_eq(tool_attach_target_open(&target, getpid()), 0);
}

static void end(void)
{
	tool_attach_target_close(&target);
	unlink(name);
	unlink(other);
	rmdir(folder);
}

static void make_file(mode_t mode)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, PAGE), 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

/* A mapping of that file which nobody has. */
static struct tool_attach_mapping mapping_of(const char *path)
{
	struct stat status;

	ck_assert_int_eq(stat(path, &status), 0);
	return (struct tool_attach_mapping){.low = PAGE,
					    .high = 2 * PAGE,
					    .device = status.st_dev,
					    .inode = status.st_ino,
					    .is_code = true,
					    .path = path};
}

static bool can_open(const struct tool_attach_mapping *mapping)
{
	const int fd = tool_attach_source_open(&target, mapping, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

START_TEST(a_file_is_opened_by_its_name)
{
	struct tool_attach_mapping mapping;
	char *path;
	int fd;

	make_file(0644);
	mapping = mapping_of(name);
	fd = tool_attach_source_open(&target, &mapping, &path);
	ck_assert_int_ge(fd, 0);
	ck_assert_str_eq(path, name);
	free(path);
	close(fd);
	mapping.inode++;
	ck_assert(!can_open(&mapping));
}
END_TEST

/* Also by a mapping, if the name has gone. */
START_TEST(a_removed_file_is_opened_by_its_mapping)
{
	struct tool_attach_mapping mapping;
	void *memory;
	int fd;

	if (geteuid() != 0)
		return;
	make_file(0600);
	mapping = mapping_of(name);
	fd = open(name, O_RDONLY);
	memory = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert(memory != MAP_FAILED);
	close(fd);
	unlink(name);
	ck_assert(!can_open(&mapping));
	mapping.low = (uintptr_t)memory;
	mapping.high = mapping.low + PAGE;
	ck_assert(can_open(&mapping));
	munmap(memory, PAGE);
}
END_TEST

START_TEST(nothing_but_regular_files_is_opened)
{
	struct tool_attach_mapping mapping;

	ck_assert_int_eq(mkfifo(name, 0666), 0);
	mapping = mapping_of(name);
	ck_assert(!can_open(&mapping)); /* at once */
	mapping = mapping_of("/dev/null");
	ck_assert(!can_open(&mapping));
	mapping = mapping_of(folder);
	ck_assert(!can_open(&mapping));
}
END_TEST

START_TEST(links_are_not_followed)
{
	struct tool_attach_mapping mapping;

	make_file(0644);
	ck_assert_int_eq(symlink(name, other), 0);
	mapping = mapping_of(name);
	mapping.path = other;
	ck_assert(!can_open(&mapping));
	unlink(other);
	ck_assert_int_eq(symlink(folder, other), 0);
	mapping = mapping_of(name);
	snprintf(other + strlen(other), 8, "/file");
	mapping.path = other;
	ck_assert(!can_open(&mapping));
	other[strlen(other) - 5] = '\0';
}
END_TEST

/* A worker of root that asks for a file which the process could not open gets nothing. */
START_TEST(a_name_is_opened_with_the_rights_of_the_process)
{
	struct tool_attach_mapping mapping;

	if (geteuid() != 0)
		return;
	target.user = target.group = NOBODY;
	make_file(0600);
	mapping = mapping_of(name);
	ck_assert(!can_open(&mapping));
	ck_assert_int_eq(access(name, R_OK), 0);
	ck_assert_int_eq(chmod(name, 0644), 0);
	ck_assert(can_open(&mapping));
	ck_assert_int_eq(chmod(name, 0600), 0);
	ck_assert_int_ge(open(name, O_RDONLY), 0); /* the tool has its rights again */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("attach source");
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, begin, end);
	tcase_add_test(all, a_file_is_opened_by_its_name);
	tcase_add_test(all, a_removed_file_is_opened_by_its_mapping);
	tcase_add_test(all, nothing_but_regular_files_is_opened);
	tcase_add_test(all, links_are_not_followed);
	tcase_add_test(all, a_name_is_opened_with_the_rights_of_the_process);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
