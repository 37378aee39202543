/* SPDX-License-Identifier: MIT
 *
 * Amounts that people write, with a unit or as a percentage: 64k, 1.5M, 10ms, 5%.
 */
#ifndef INCSTACK_TOOL_PROFILE_AMOUNT_H
#define INCSTACK_TOOL_PROFILE_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Reads an amount of a unit ("bytes", "nanoseconds" or any other). A percentage is that of `whole`. Returns
 * whether the text is such an amount. */
bool tool_amount_read(const char *text, const char *unit, uint64_t whole, double *amount);
/* Whether it is an amount of any unit. */
bool tool_amount_is_one(const char *text);

#endif
