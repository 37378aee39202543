/* SPDX-License-Identifier: MIT
 *
 * Our functions in front of Python's allocators.
 */
#ifndef ALLOCATORS_H
#define ALLOCATORS_H

#include <stdbool.h>

/* All are called with Python's lock. `is_traced` says that tracemalloc is at work. */
bool allocators_install(bool is_traced);
void allocators_remove(void);
bool allocators_are_called(void);

#endif
