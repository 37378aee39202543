/* SPDX-License-Identifier: MIT
 *
 * incstack plugin links with: -nostartfiles
 *
 * As stacks_unload_b, without the compiler's start files: nobody is told when it goes.
 */
#include "stacks_unload_b.c"
