/* SPDX-License-Identifier: MIT
 *
 * The blocks of memory that are live, with their sizes and contexts: a hash table by address.
 *
 * All functions are called with the recording's lock.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
	size_t size;
	uint32_t context;
};

enum blocks_added { BLOCKS_REFUSED, BLOCKS_NEW, BLOCKS_REPLACED };

enum blocks_added blocks_add(uintptr_t address, struct block block, struct block *was);
bool blocks_remove(uintptr_t address, struct block *block);
void blocks_free(void);

#endif
