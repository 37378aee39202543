/* SPDX-License-Identifier: MIT
 *
 * Files of modules: which build a file is, and whether it is the one that was recorded.
 */
#ifndef INCSTACK_TOOL_MODULE_FILE_H
#define INCSTACK_TOOL_MODULE_FILE_H

#include "tracefile/read.h"

/* Finds the identity of the module in an open file; its kind is NONE if there is none. Returns 0, or -1
 * if the file is no complete module. */
int tool_module_file_identify(int fd, struct incstack__identity *identity);

/* Returns why the names of a recorded module cannot be read from the open file, as the end of a sentence
 * whose subject is the file; null: they can. */
const char *tool_module_file_doubt(const struct incstack__tracefile_module_info *info, int fd);

#endif
