/* SPDX-License-Identifier: MIT
 *
 * Interposes the longjmp family. A jump pops frames without returning from them, so it is announced
 * before it happens. The end of a thread that exits or was cancelled is also announced, because the
 * thread jumps inside libc from one cleanup handler of C code to the next.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <threads.h>

#include "stub.h"

/* The function that _FORTIFY_SOURCE calls. No header declares it. */
_Noreturn void __longjmp_chk(struct __jmp_buf_tag env[1], int value);

/* Called at the end of each cleanup handler of C code when a thread is cancelled or exits. */
_Noreturn void __pthread_unwind_next(__pthread_unwind_buf_t *buffer);

INCSTACK__REAL(longjmp)
INCSTACK__REAL(_longjmp)
INCSTACK__REAL(siglongjmp)
INCSTACK__REAL(__longjmp_chk)
INCSTACK__REAL(pthread_exit)
INCSTACK__REAL(thrd_exit)
INCSTACK__REAL(__pthread_unwind_next)

/* The word in which glibc for x86-64 keeps the stack pointer. It is xored with the thread's pointer
 * guard and rotated. */
enum { JUMP_SP_WORD = 6, GUARD_ROTATION = 17 };

static uintptr_t jump_target(const struct __jmp_buf_tag *env)
{
	uintptr_t sp = (uintptr_t)env->__jmpbuf[JUMP_SP_WORD];
	uintptr_t guard;

	__asm__("movq %%fs:0x30, %0" : "=r"(guard));
	sp = sp >> GUARD_ROTATION | sp << (64 - GUARD_ROTATION);
	return sp ^ guard;
}

static void announce(const struct __jmp_buf_tag *env)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_jump(jump_target(env));
}

static void announce_end(void)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_thread_end();
}

INCSTACK__INTERPOSED void longjmp(struct __jmp_buf_tag env[1], int value)
{
	announce(env);
	longjmp_next()(env, value);
	__builtin_unreachable();
}

INCSTACK__INTERPOSED void _longjmp(struct __jmp_buf_tag env[1], int value)
{
	announce(env);
	_longjmp_next()(env, value);
	__builtin_unreachable();
}

INCSTACK__INTERPOSED void siglongjmp(struct __jmp_buf_tag env[1], int value)
{
	announce(env);
	siglongjmp_next()(env, value);
	__builtin_unreachable();
}

INCSTACK__INTERPOSED void __longjmp_chk(struct __jmp_buf_tag env[1], int value)
{
	announce(env);
	__longjmp_chk_next()(env, value);
	__builtin_unreachable();
}

INCSTACK__INTERPOSED void pthread_exit(void *value)
{
	announce_end();
	pthread_exit_next()(value);
	__builtin_unreachable();
}

/* libc's thrd_exit calls libc's own pthread_exit. */
INCSTACK__INTERPOSED void thrd_exit(int result)
{
	announce_end();
	thrd_exit_next()(result);
	__builtin_unreachable();
}

INCSTACK__INTERPOSED void __pthread_unwind_next(__pthread_unwind_buf_t *buffer)
{
	announce_end();
	__pthread_unwind_next_next()(buffer);
	__builtin_unreachable();
}
