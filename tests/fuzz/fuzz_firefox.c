/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of the firefox reader.
 */
#define FUZZ_FORMAT INCSTACK_FORMAT_FIREFOX
#include "profile_fuzz.h"
