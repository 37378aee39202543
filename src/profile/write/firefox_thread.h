/* SPDX-License-Identifier: MIT
 *
 * The parts of a thread in the Firefox Profiler's processed format that are the same with and without
 * a timeline.
 */
#ifndef INCSTACK_PROFILE_FIREFOX_THREAD_H
#define INCSTACK_PROFILE_FIREFOX_THREAD_H

#include "profile/cct.h"

/* The weights of a thread: in milliseconds, if the kind counts nanoseconds. Else the profiler would take them for
 * numbers of samples. The times of samples are milliseconds, too. */
const char *incstack__firefox_weight_type(const char *unit);
void incstack__firefox_weight(const char *unit, uint64_t weight, FILE *stream);

/* Writes the modules of the profile as the list of libraries, with its key. */
void incstack__firefox_libs(const struct incstack_profile *profile, FILE *stream);
/* Writes the names of the modules as further elements of a table of strings. */
void incstack__firefox_lib_names(const struct incstack_profile *profile, FILE *stream);

/* Writes what comes between the name of the thread and its tables. */
void incstack__firefox_head(int is_main, uint64_t tid, FILE *stream);
/* Writes the columns of the frame table after that of the functions, and ends it. `frames` has the
 * frame of each row; if it is null, each row has the frame of its number. */
void incstack__firefox_frames(const struct incstack_profile *profile, const uint32_t *frames,
			      uint64_t rows, FILE *stream);
/* Writes the module of a function, which `frame` belongs to, as a row of the function table. */
void incstack__firefox_resource(const struct incstack_profile *profile, uint32_t frame,
				uint64_t row, FILE *stream);
/* Writes the columns of the function table after the names, files and modules, and ends it. */
void incstack__firefox_functions(uint64_t rows, FILE *stream);
/* Writes the table of modules, whose names are the strings from `names` on, and the tables that are empty, and
 * ends the thread. */
void incstack__firefox_end(const struct incstack_profile *profile, uint64_t names, FILE *stream);

#endif
