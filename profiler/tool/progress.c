/* SPDX-License-Identifier: MIT
 *
 * Shows on a terminal what a long report is doing, once a second. The handler of a timer's signal
 * writes the line, so the code that works need not read the clock.
 */
#include "progress.h"
#include "names.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static char head[256]; /* the constant part of the line */
static size_t head_length;
static const char *volatile phase = "";
static volatile sig_atomic_t seconds;

static size_t put_text(char *line, size_t at, size_t size, const char *text)
{
	for (; *text != 0 && at < size; text++)
		line[at++] = *text;
	return at;
}

static size_t put_number(char *line, size_t at, size_t size, unsigned number)
{
	char digits[12];
	size_t first = sizeof(digits) - 1;

	digits[first] = 0;
	do
		digits[--first] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	return put_text(line, at, size, digits + first);
}

static void on_second(int number)
{
	const int error = errno;
	char line[sizeof(head) + 64];
	size_t length = head_length;

	(void)number;
	memcpy(line, head, head_length);
	length = put_text(line, length, sizeof(line), phase);
	length = put_text(line, length, sizeof(line), ", ");
	length = put_number(line, length, sizeof(line), (unsigned)++seconds);
	length = put_text(line, length, sizeof(line), " s\033[K");
	if (write(STDERR_FILENO, line, length) < 0) {
		/* The terminal may be gone; the error cannot be reported. */
	}
	errno = error;
}

static void set_timer(time_t interval)
{
	const struct itimerval timer = {{interval, 0}, {interval, 0}};

	setitimer(ITIMER_REAL, &timer, NULL);
}

void tool_progress_start(const char *file)
{
	const struct sigaction action = {.sa_handler = on_second, .sa_flags = SA_RESTART};
	FILE *out;

	if (!isatty(STDERR_FILENO))
		return;
	out = fmemopen(head, sizeof(head), "w");
	if (out == NULL)
		return;
	fputs("\rincstack: report of ", out);
	tool_name_clip(file, 40, '<', out);
	fputs(": ", out);
	head_length = fclose(out) == 0 ? strlen(head) : 0;
	seconds = 0;
	sigaction(SIGALRM, &action, NULL);
	set_timer(1);
}

void tool_progress_phase(const char *text)
{
	phase = text;
}

void tool_progress_end(void)
{
	if (head_length == 0)
		return;
	set_timer(0);
	if (seconds > 0)
		fputs("\r\033[K", stderr);
	head_length = 0;
}
