/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of the reader of OTLP files.
 */
#define FUZZ_FORMAT INCSTACK_FORMAT_OTLP
#include "profile_fuzz.h"
