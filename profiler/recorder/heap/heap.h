/* SPDX-License-Identifier: MIT
 *
 * The events of a recording of the heap.
 */
#ifndef INCSTACK_RECORDER_HEAP_H
#define INCSTACK_RECORDER_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "interpose/preload.h"

/* heap.c */
void incstack__heap_on_alloc(const void *block, size_t bytes, struct incstack__caller caller);
void incstack__heap_on_free(const void *block);

/* new.c */
void incstack__heap_on_new(const void *block, size_t bytes, struct incstack__caller caller,
			   uint64_t position);
uint64_t incstack__heap_position(void);

#endif
