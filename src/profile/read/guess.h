/* SPDX-License-Identifier: MIT
 *
 * Recognizes the files of other programs by their content.
 */
#ifndef INCSTACK_PROFILE_GUESS_H
#define INCSTACK_PROFILE_GUESS_H

/* Returns the format of a file that begins with this text, or 0. */
int incstack__guess(const char *text);

#endif
