/* SPDX-License-Identifier: MIT
 *
 * For embedders that generate code: gives the code names that other tools can read.
 * perf reads a map file, gdb its JIT interface. Part of libincstack_profile.a.
 * Conventions as in incstack.h and profile.h.
 */
#ifndef INCSTACK_JIT_H
#define INCSTACK_JIT_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* ---- perf ---------------------------------------------------------------------- */

/* Names the code in [address, address + size), in the file where perf looks for names:
 * /tmp/perf-PID.map. If the same code gets several names, the last one counts. A newline in a name
 * becomes a space. The first call in a process replaces a file of this name and follows no symbolic
 * link. A child of fork gets a file of its own. The file stays, because perf reads it after the
 * program ended. Errors: EINVAL, ENOMEM; EIO (INCSTACK_EIO of profile.h): errno has the reason.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on the file. */
INCSTACK_API int incstack_perf_map_add(uintptr_t address, size_t size, const char *name);

/* ---- gdb ------------------------------------------------------------------------- */

/* A function that is registered with gdb. */
struct incstack_jit_code;

/* Registers a function that occupies [address, address + size) with gdb, for backtraces,
 * breakpoints and disassembly. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on other registrations. */
INCSTACK_API int incstack_jit_register(uintptr_t address, size_t size, const char *name,
				       struct incstack_jit_code **code);

/* Removes the registration; null is allowed. Call it before the code is freed.
 * Thread: any. Signal: no. Allocates: never. Blocks: on other registrations. */
INCSTACK_API void incstack_jit_unregister(struct incstack_jit_code *code);

INCSTACK_END_C

#endif
