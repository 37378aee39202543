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

/* Opens the file from which the names of a recorded module can be read. Returns -1 if there is none, and
 * in *why the reason, as the end of a sentence whose subject is the file. */
int tool_module_file_open(const struct incstack__tracefile_module_info *info, const char **why);

#endif
