/* SPDX-License-Identifier: MIT
 *
 * incstack heap options: --follow-children
 *
 * Like stacks_fork, but the children record into files of their own.
 */
#include "stacks_fork.c"
