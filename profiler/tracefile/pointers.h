/* SPDX-License-Identifier: MIT
 *
 * Guesses the pointers of events, for a packed trace file. An allocator mostly hands out what was freed last, and a
 * program frees in the order, or in the reverse order, in which it has allocated. Packer and unpacker make the
 * same guesses, and the file has which of them is right. A pointer that nobody has guessed is in the file itself.
 *
 * The memory is bounded: blocks that are too old, and some others, are forgotten, by both in the same way.
 */
#ifndef INCSTACK_TRACEFILE_POINTERS_H
#define INCSTACK_TRACEFILE_POINTERS_H

#include <stdint.h>

struct incstack__columns;
struct incstack__pointers;

/* Returns null if there is no memory. */
struct incstack__pointers *incstack__pointers_create(void);
void incstack__pointers_destroy(struct incstack__pointers *pointers);

/* Each writes or reads the pointer of an event, and returns it. An unpacker passes any pointer. */
uint64_t incstack__pointers_allocated(struct incstack__pointers *pointers,
				      struct incstack__columns *columns, uint64_t pointer,
				      uint64_t size);
uint64_t incstack__pointers_freed(struct incstack__pointers *pointers,
				  struct incstack__columns *columns, uint64_t pointer);

#endif
