/* SPDX-License-Identifier: MIT
 *
 * The file of the spool (spool.c), from which memory is cut. The spool's lock is held in all calls.
 */
#ifndef INCSTACK_RECORDER_SPOOL_FILE_H
#define INCSTACK_RECORDER_SPOOL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "tracefile/spool_format.h"

/* The mapped beginning of the file; null: there is no file. */
struct incstack__spool_header *incstack__spool_file_header(void);

/* Returns memory that was never used before. Null: the file cannot grow, or it does not grow
 * because the caller is the handler of a tick. */
void *incstack__spool_file_cut(size_t bytes);

/* Enlarges the file if it has less memory left than `bytes`. */
void incstack__spool_file_ahead(size_t bytes);

/* The memory's place in the file; 0: it is not there. */
uint64_t incstack__spool_file_offset(const void *memory);

/* Ends the use of the file, and unmaps its memory or replaces it by a private copy. */
void incstack__spool_file_leave(void);
void incstack__spool_file_make_private(void);

#endif
