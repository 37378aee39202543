/* SPDX-License-Identifier: MIT
 *
 * Blocks signals around code that a jump out of a signal handler must not leave half done, and tells
 * whether a handler runs on a signal stack.
 */
#ifndef INCSTACK__SIGNALS_H
#define INCSTACK__SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

bool incstack__signals_block(uint64_t *before);
void incstack__signals_restore(bool blocked, const uint64_t *before);
bool incstack__on_signal_stack(void);

#endif
