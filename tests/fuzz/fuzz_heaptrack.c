/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of the reader of heaptrack files.
 */
#define FUZZ_FORMAT INCSTACK_FORMAT_HEAPTRACK
#define FUZZ_WRITTEN INCSTACK_FORMAT_PPROF
#include "profile_fuzz.h"
