/* SPDX-License-Identifier: MIT
 *
 * The parts of a thread in the Firefox Profiler's processed format that are the same with and without
 * a timeline.
 */
#ifndef INCSTACK_PROFILE_FIREFOX_THREAD_H
#define INCSTACK_PROFILE_FIREFOX_THREAD_H

#include "profile/cct.h"

/* Writes what comes between the name of the thread and its tables. */
void incstack__firefox_head(int is_main, uint64_t tid, FILE *stream);
/* Writes the columns of the frame table after that of the functions, and ends it. `frames` has the
 * frame of each row; if it is null, each row has the frame of its number. */
void incstack__firefox_frames(const struct incstack_profile *profile, const uint32_t *frames,
			      uint64_t rows, FILE *stream);
/* Writes the columns of the function table after the names and files, and ends it. */
void incstack__firefox_functions(uint64_t rows, FILE *stream);
/* Writes the tables that are empty, and ends the thread. */
void incstack__firefox_end(FILE *stream);

#endif
