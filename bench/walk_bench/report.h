/* SPDX-License-Identifier: MIT
 *
 * Prints the rows of the table, and which goals are reached.
 */
#ifndef INCSTACK_BENCH_REPORT_H
#define INCSTACK_BENCH_REPORT_H

#include <stdio.h>

#include "measure.h"

void report_csv_header(FILE *out);
void report_csv(FILE *out, const struct result *result);
void report_header(FILE *out);
void report_cell(FILE *out, const struct result *result);

/* Prints what is required and what was measured. */
void report_goals(FILE *out, const struct result *results, int count);
void report_growth(FILE *out, const struct cell *deep, const struct cell *flat, struct ratio ratio);

#endif
