/* SPDX-License-Identifier: MIT
 *
 * Progress of a report, for a terminal on stderr; otherwise nothing is written.
 */
#ifndef INCSTACK_TOOL_PROGRESS_H
#define INCSTACK_TOOL_PROGRESS_H

void tool_progress_start(const char *file);
/* Sets the name of the current phase; a string literal. */
void tool_progress_phase(const char *text);
void tool_progress_end(void);

#endif
