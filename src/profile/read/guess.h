/* SPDX-License-Identifier: MIT
 *
 * Recognizes the files of other programs by their content.
 */
#ifndef INCSTACK_PROFILE_GUESS_H
#define INCSTACK_PROFILE_GUESS_H

#include <stddef.h>

/* Returns the format of a file that begins with these bytes, behind which is a zero byte; or 0. */
int incstack__guess(const char *text, size_t size);

#endif
