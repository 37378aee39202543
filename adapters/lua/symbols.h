/* SPDX-License-Identifier: MIT
 *
 * The names of the machine's functions.
 */
#ifndef INCSTACK_LUA_SYMBOLS_H
#define INCSTACK_LUA_SYMBOLS_H

#include <stdint.h>

/* Reads the symbol table of this program. Returns 1, or 0 if it has none. */
int symbols_open(void);

/* Returns the name of the function at an address, or null. */
const char *symbols_name(uintptr_t address);

#endif
