/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the tracing of frames on the heap. The first bytes choose the mode, the distance, how errors are
 * reported, which lies the embedder tells, and which allocation fails. The rest decides what the toy
 * interpreter of tests/heap does, step by step. Its oracle aborts at the first wrong trace.
 */
#include "../heap/toy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { HEAD = 7 };
	if (size <= HEAD)
		return 0;
	struct toy_options options = {.mode = data[0] % 3,
				      .distance = data[1] % (INCSTACK_HEAP_DISTANCE_MAX + 1),
				      .reports = (enum reports)(data[2] % 4),
				      .lies = data[3] % 16,
				      .lying = 2 + data[4] % 64,
				      .fail_after = data[5],
				      .still = data[3] % 16 != 0,
				      .depth_max = 1 + data[6],
				      .bytes = data + HEAD,
				      .size = size - HEAD};
	/* What trusts earlier reports is not used by an embedder that lies about marks. */
	if (options.lies & LIE_UNMARKED)
		options.reports = data[2] & 1 ? REPORT_EACH : REPORT_NOTHING;
	toy_open(&options);
	toy_run(UINT64_MAX);
	toy_close();
	return 0;
}
