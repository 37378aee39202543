/* SPDX-License-Identifier: MIT
 *
 * incstack plugin links with: -nostartfiles
 *
 * Like stacks_unload_a, without the compiler's start files: nothing announces its unload.
 */
#include "stacks_unload_a.c"
