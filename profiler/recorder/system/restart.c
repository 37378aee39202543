/* SPDX-License-Identifier: MIT
 *
 * Restarts the system calls that the recorder's own signal interrupts. The kernel has overwritten
 * the number of the call with the result by the time the handler runs. So the number is read before
 * the signal is sent, and used if nothing else has changed.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "restart.h"
#include "system.h"

enum { SYSCALL_BYTES = 2 };

enum { WORDS = sizeof(struct incstack__blocked_call) / sizeof(uint64_t) };

/* The kernel writes the words in the order of the struct. */
static bool parse(const char *text, uint64_t words[WORDS])
{
	int count = 0;

	for (char *end; count < WORDS; count++, text = end) {
		words[count] = strtoull(text, &end, 0);
		if (end == text)
			break;
	}
	return count == WORDS;
}

/* Stores the system call that blocks a thread, before the thread is asked. If the thread was asked
 * before and has not answered yet, the signal has woken it, and it is in no call. Then the call
 * that was read before stays stored. If the handler runs during the stores, it may see parts of two
 * calls, which do not agree with its registers. */
void incstack__restart_prepare(pid_t tid, struct incstack__blocked_call *call)
{
	_Atomic uint64_t *to = (_Atomic uint64_t *)call;
	uint64_t words[WORDS];
	char path[64];
	char text[256];

	snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", (long)tid);
	if (incstack__record_read_small(path, text, sizeof(text)) == 0 || !parse(text, words))
		return;
	for (int i = 0; i < WORDS; i++)
		atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
}

/* The number of the call, or -1 if it must not be made again. A second connect fails because the
 * first goes on. A close that fails has released the descriptor, which may belong to another file
 * by now. The kernel's restart_syscall continues a call that a handler has ended. */
static int64_t number_of(const struct incstack__blocked_call *call)
{
	const int64_t number = atomic_load_explicit(&call->number, memory_order_relaxed);

	switch (number) {
	case SYS_connect:
	case SYS_close:
	case SYS_restart_syscall:
		return -1;
	default:
		return number;
	}
}

static bool is_that_of(const struct incstack__blocked_call *call, const greg_t *registers)
{
	static const int places[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};

	for (int i = 0; i < 6; i++)
		if ((uint64_t)registers[places[i]] !=
		    atomic_load_explicit(&call->arguments[i], memory_order_relaxed))
			return false;
	return (uint64_t)registers[REG_RSP] ==
		       atomic_load_explicit(&call->sp, memory_order_relaxed) &&
	       (uint64_t)registers[REG_RIP] ==
		       atomic_load_explicit(&call->pc, memory_order_relaxed);
}

void incstack__restart(const struct incstack__blocked_call *call, void *ucontext)
{
	ucontext_t *context = ucontext;
	greg_t *registers = context->uc_mcontext.gregs;
	const int64_t number = number_of(call);

	if (number < 0 || !is_that_of(call, registers) || !incstack__restart_failed_call(context))
		return;
	registers[REG_RIP] -= SYSCALL_BYTES;
	registers[REG_RAX] = number;
}
