/* SPDX-License-Identifier: MIT
 *
 * Finds the name of a thread, which the thread or another thread may change at any time. The name
 * is looked up with each tally, so the last name counts.
 */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

/* Reads the name of another thread, which is held or gone. A thread that is gone
 * keeps its known name. */
static void read_other(pid_t tid, char name[INCSTACK__TRACEFILE_NAME_BYTES])
{
	char path[64];
	char text[INCSTACK__TRACEFILE_NAME_BYTES + 1];
	size_t bytes;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/comm", (long)tid);
	bytes = incstack__record_read_small(path, text, sizeof(text));
	if (bytes == 0)
		return;
	bytes -= text[bytes - 1] == '\n';
	memset(name, 0, INCSTACK__TRACEFILE_NAME_BYTES);
	memcpy(name, text, bytes);
}

void incstack__record_name_own(char name[INCSTACK__TRACEFILE_NAME_BYTES])
{
	incstack__kernel_call(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
}

static bool is_own(const struct incstack__record *record)
{
	const struct incstack__record *mine = incstack__record_local.mine;

	return record->tid == (mine ? mine->tid : incstack__kernel_gettid());
}

void incstack__record_name(const struct incstack__record *record,
			   char name[INCSTACK__TRACEFILE_NAME_BYTES])
{
	memcpy(name, record->live.newest.name, INCSTACK__TRACEFILE_NAME_BYTES);
	if (record->tid == 0)
		return;
	if (is_own(record))
		incstack__record_name_own(name);
	else
		read_other(record->tid, name);
}
