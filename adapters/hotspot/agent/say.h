/* SPDX-License-Identifier: MIT
 *
 * Prints the messages of the agent: single lines on the standard error.
 */
#ifndef AGENT_SAY_H
#define AGENT_SAY_H

/* Prints one line, which begins with "incstack: ", in one write. */
__attribute__((format(printf, 1, 2))) void agent_say(const char *format, ...);

/* Makes the calling thread read and print numbers as C does, whatever the JVM has set for the
 * process, until the matching leave. */
struct agent_locale {
	void *made, *before;
};
void agent_locale_enter(struct agent_locale *locale);
void agent_locale_leave(const struct agent_locale *locale);

#endif
