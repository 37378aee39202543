/* SPDX-License-Identifier: MIT
 *
 * The twin of stacks_unload_a with a frame of another size.
 */
#define FRAME "96"
#define NAME "visit_b"
#include "stacks_unload_a.c"
