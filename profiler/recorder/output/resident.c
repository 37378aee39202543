/* SPDX-License-Identifier: MIT
 *
 * Notes how much memory the process has had, when it ends: the recorder sees only what malloc hands out.
 */
#include <stdatomic.h>
#include <string.h>

#include "recorder/output/output.h"
#include "recorder/system/system.h"

/* The line Groups, which comes before the numbers, is long if the user is in very many groups. */
enum { STATUS_BYTES = 4096 };

/* Returns the number of a line, in KiB; 0 if there is no such line, or if it is cut off. */
static uint64_t number_of(const char *status, const char *name)
{
	const char *at = strstr(status, name);
	uint64_t number = 0;

	if (!at)
		return 0;
	at += strlen(name);
	while (*at == ' ' || *at == '\t')
		at++;
	for (; *at >= '0' && *at <= '9' && number < UINT32_MAX; at++)
		number = 10 * number + (uint64_t)(*at - '0');
	while (*at >= '0' && *at <= '9')
		at++;
	if (strncmp(at, " kB", 3) != 0)
		return 0;
	return number < UINT32_MAX ? number : UINT32_MAX;
}

void incstack__record_resident(void)
{
	char status[STATUS_BYTES];
	uint64_t peak;

	(void)incstack__record_read_small("/proc/self/status", status, sizeof(status));
	peak = number_of(status, "\nVmHWM:");
	atomic_store_explicit(&incstack__recording.slots[0].memory,
			      peak << 32 | number_of(status, "\nRssAnon:"), memory_order_relaxed);
}
