/* SPDX-License-Identifier: MIT
 *
 * Waits until a thread has returned from the recorder's signal handler.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recorder/system/system.h"

/* Returns the mask of signals in the line of /proc/PID/status that begins with `head`. */
static uint64_t mask_in(const char *status, const char *head)
{
	const char *at = strstr(status, head);

	return at ? strtoull(at + strlen(head), NULL, 16) : 0;
}

/* Whether the signal is blocked in the thread, as it is in the signal's handler, or is pending. The
 * kernel reads both masks at one moment. Also returns false if the masks cannot be read. */
static bool is_due(pid_t tid, int signal)
{
	char path[64];
	char text[4096];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	incstack__record_read_small(path, text, sizeof(text));
	return (mask_in(text, "\nSigBlk:\t") | mask_in(text, "\nSigPnd:\t")) >> (signal - 1) & 1;
}

void incstack__record_await_thread(pid_t tid, int signal, int steps)
{
	for (int step = 0; step < steps && is_due(tid, signal); step++)
		incstack__nap(50000);
}
