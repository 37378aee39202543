/* SPDX-License-Identifier: MIT
 *
 * incstack heap options: --follow-children
 *
 * As stacks_fork, where the children record into files of their own.
 */
#include "stacks_fork.c"
