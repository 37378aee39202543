/* SPDX-License-Identifier: MIT
 *
 * Prints the messages of the agent.
 */
#include "say.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/names.h"

void agent_say(const char *format, ...)
{
	char line[6000] = "incstack: ";
	char text[6000] = "";
	const size_t begin = strlen(line);
	FILE *shown;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line + begin, sizeof(line) - begin - 1, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	/* Names of files and options may come from others. */
	shown = fmemopen(text, sizeof(text), "w");
	if (!shown)
		return;
	tool_name_put(line, strlen(line), shown);
	fputc('\n', shown);
	if (fclose(shown) || write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* nobody listens */
}

void agent_locale_enter(struct agent_locale *locale)
{
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);

	locale->made = plain;
	locale->before = plain ? uselocale(plain) : NULL;
}

void agent_locale_leave(const struct agent_locale *locale)
{
	if (!locale->made)
		return;
	uselocale(locale->before);
	freelocale(locale->made);
}
