/* SPDX-License-Identifier: MIT
 *
 * Files of split debug information (.dwo), which libdw opens by their names.
 */
#ifndef INCSTACK_TOOL_SPLIT_FILE_H
#define INCSTACK_TOOL_SPLIT_FILE_H

#include <stdbool.h>

/* In a jail: whether a file that a library opens is asked for as a module. */
void tool_split_files(bool are_wanted);

#endif
