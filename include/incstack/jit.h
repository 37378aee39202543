/* SPDX-License-Identifier: MIT
 *
 * For embedders that generate code: names for it that other tools understand, perf
 * through a map file and gdb through its JIT interface. Part of
 * libincstack_profile.a; conventions as in incstack.h and profile.h.
 */
#ifndef INCSTACK_JIT_H
#define INCSTACK_JIT_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* ---- perf ---------------------------------------------------------------------- */

struct incstack_perf_map;

/* Starts the file in which perf looks for names: path, or /tmp/perf-PID.map if that is
 * null. An existing file is replaced, and a link is not followed.
 * Errors: EINVAL, ENOMEM, EIO (INCSTACK_EIO of profile.h; errno says why).
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on the file. */
INCSTACK_API int incstack_perf_map_create(const char *path, struct incstack_perf_map **map);

/* Names the code in [address, address + size), also anew: the last name holds. In
 * names a newline becomes a space. Errors: EINVAL, ENOMEM, EIO.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on the file. */
INCSTACK_API int incstack_perf_map_add(struct incstack_perf_map *map, uintptr_t address,
				       size_t size, const char *name);

/* Closes the file, which stays: perf reads it after the program ended.
 * Thread: any, as the last call. Signal: no. Allocates: never. Blocks: on the file. */
INCSTACK_API int incstack_perf_map_destroy(struct incstack_perf_map *map);

/* ---- gdb ------------------------------------------------------------------------- */

struct incstack_jit_code;

/* Shows gdb a function that occupies [address, address + size): in backtraces, for
 * breakpoints, in disassembly. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on other registrations. */
INCSTACK_API int incstack_jit_register(uintptr_t address, size_t size, const char *name,
				       struct incstack_jit_code **code);

/* Called before the code goes. Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: on other registrations. */
INCSTACK_API int incstack_jit_unregister(struct incstack_jit_code *code);

INCSTACK_END_C

#endif
