/* SPDX-License-Identifier: MIT
 *
 * Prints names that others choose: of symbols, programs, threads, files. A terminal that shows UTF-8 gets
 * only characters that it prints, each in one column. What controls the terminal, changes the direction
 * of the text, or is no UTF-8 is shown as an escape: \x1b, \u{202e}, \xff.
 */
#ifndef INCSTACK_TOOL_NAMES_H
#define INCSTACK_TOOL_NAMES_H

#include <stdio.h>

/* Prints up to `width` columns of a name, cut at its start ('<') or end ('>'). */
void tool_name_clip(const char *name, size_t width, char cut, FILE *out);
/* Prints all of a name. It may contain zero bytes. */
void tool_name_put(const char *name, size_t bytes, FILE *out);
/* Returns how the name is printed, for messages. Valid until the tool ends. */
const char *tool_name(const char *name);
/* Writes a name as UTF-8, with escapes only for bytes that are none. What does not fit is left out.
 * Returns the length, without a zero byte at the end. */
size_t tool_name_valid(const char *name, char *text, size_t size);
/* Returns the last component of a path. */
const char *tool_base_name(const char *path);

#endif
