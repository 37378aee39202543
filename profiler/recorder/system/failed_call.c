/* SPDX-License-Identifier: MIT
 *
 * Finds out whether a signal has made a system call fail.
 */
#include <errno.h>
#include <string.h>

#include "native/native.h"
#include "restart.h"

/* The signal is delivered before the instruction behind the system call runs. */
bool incstack__restart_failed_call(const ucontext_t *context)
{
	static const unsigned char instruction[] = {0x0f, 0x05}; /* syscall */
	const greg_t *registers = context->uc_mcontext.gregs;
	const uintptr_t call = (uintptr_t)registers[REG_RIP] - sizeof(instruction);

	return registers[REG_RAX] == -EINTR &&
	       incstack__native_readable_once(call, sizeof(instruction)) &&
	       memcmp((const void *)call, instruction, sizeof(instruction)) == 0;
}
