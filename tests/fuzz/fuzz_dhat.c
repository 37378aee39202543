/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of the reader of dhat files.
 */
#define FUZZ_FORMAT INCSTACK_FORMAT_DHAT
#define FUZZ_WRITTEN INCSTACK_FORMAT_PPROF
#include "profile_fuzz.h"
