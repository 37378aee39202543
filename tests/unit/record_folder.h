/* SPDX-License-Identifier: MIT
 *
 * A folder for the files of one test, and the size of a file in it.
 */
#ifndef RECORD_FOLDER_H
#define RECORD_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

static char folder[32];
static char path[80]; /* of the file */

static inline void make_folder_for(const char *file)
{
	strcpy(folder, "/tmp/incstack-record-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/%s", folder, file);
}

static inline void remove_folder(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

static inline off_t size_of_file(void)
{
	struct stat status;

	return stat(path, &status) == 0 ? status.st_size : -1;
}

#endif
