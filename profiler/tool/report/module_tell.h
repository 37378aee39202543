/* SPDX-License-Identifier: MIT
 *
 * Says which names and lines are missing or doubtful, and what would help.
 */
#ifndef INCSTACK_TOOL_MODULE_TELL_H
#define INCSTACK_TOOL_MODULE_TELL_H

#include <stdio.h>

#include "module_symbols.h"

/* Each line begins with `before`. */
void tool_modules_tell(const struct tool_module_symbols *modules, unsigned count,
		       const char *before, FILE *out);

#endif
