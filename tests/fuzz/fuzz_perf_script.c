/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of the reader of perf_script files.
 */
#define FUZZ_FORMAT INCSTACK_FORMAT_PERF_SCRIPT
#define FUZZ_WRITTEN INCSTACK_FORMAT_PPROF
#include "profile_fuzz.h"
