/* SPDX-License-Identifier: MIT
 *
 * The files of the recorder that write its trace file, for tests, and a folder for each test.
 */
#include <stdlib.h>

#include "recorder/output/descriptor.c"
#include "recorder/output/file.c"
#include "recorder/system/memory.c"
#include "recorder/recording/recording.c"
#include "recorder/system/small_file.c"

#include "record_folder.h"

static unsigned spools;
static const struct incstack__kind of_cpu = {.number = INCSTACK__TRACEFILE_OF_CPU};

int incstack__clock(clockid_t clock, struct timespec *now)
{
	return clock_gettime(clock, now);
}

void incstack__spool_open(const char *of, uint64_t start_ns)
{
	ck_assert_str_eq(of, path);
	ck_assert_uint_gt(start_ns, 0);
	spools++;
}

static void make_folder(void)
{
	make_folder_for("trace");
	incstack__kind = &of_cpu;
	incstack__recording.pid = getpid();
	incstack__recording.interval = 1;
	incstack__recording.fd = -1;
}
