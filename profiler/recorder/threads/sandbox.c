/* SPDX-License-Identifier: MIT
 *
 * Prepares for the moment when the program forbids itself system calls or the time-stamp counter.
 * If a seccomp filter would end the program, or run a handler of the program, at one of the
 * recorder's system calls, everything is written, all return addresses are restored, and from then
 * on the recorder makes no system call.
 */
#include <stdatomic.h>
#include <errno.h>
#include <linux/audit.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "recorder/system/kernel.h"
#include "recorder/system/seccomp_filter.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/threads/threads.h"

/* All system calls that the recorder may make after recording has begun. */
static const int calls[] = {
	SYS_access,          SYS_arch_prctl,
	SYS_clock_gettime,   SYS_clock_nanosleep,
	SYS_close,           SYS_fallocate,
	SYS_fcntl,           SYS_flock,
	SYS_fstat,           SYS_ftruncate,
	SYS_futex,           SYS_getpid,
	SYS_gettid,          SYS_lseek,
	SYS_madvise,         SYS_mmap,
	SYS_mprotect,        SYS_mremap,
	SYS_munmap,          SYS_newfstatat,
	SYS_openat,          SYS_pread64,
	SYS_prlimit64,       SYS_read,
	SYS_readlink,        SYS_rename,
	SYS_rt_sigaction,    SYS_rt_sigprocmask,
	SYS_rt_sigtimedwait, SYS_rt_tgsigqueueinfo,
	SYS_sigaltstack,     SYS_sched_getaffinity,
	SYS_sched_yield,     SYS_unlink,
	SYS_pwritev,         -1,
};

static bool survives(const struct sock_filter *filter, size_t count, struct seccomp_data call)
{
	uint32_t result;

	call.arch = AUDIT_ARCH_X86_64;
	return incstack__seccomp_run(filter, count, &call, &result) != 0 ||
	       incstack__seccomp_survives(result);
}

/* Whether writev() works. A filter that makes writev() fail also ends recording, because what was
 * recorded would be lost. */
static bool allows_write(const struct sock_filter *filter, size_t count)
{
	const struct seccomp_data call = {.nr = SYS_writev,
					  .arch = AUDIT_ARCH_X86_64,
					  .args = {(unsigned)incstack__recording.fd, 0, 3}};
	uint32_t result;

	return incstack__seccomp_run(filter, count, &call, &result) != 0 ||
	       (result & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ALLOW ||
	       (result & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_LOG;
}

/* `numbers` ends with -1. */
static bool allows_calls(const struct sock_filter *filter, size_t count, const int *numbers)
{
	for (; *numbers >= 0; numbers++)
		if (!survives(filter, count, (struct seccomp_data){.nr = *numbers}))
			return false;
	return true;
}

/* Programs that allow prctl often do so by its first argument. */
static bool allows_name(const struct sock_filter *filter, size_t count)
{
	return survives(filter, count,
			(struct seccomp_data){.nr = SYS_prctl, .args = {PR_GET_NAME}});
}

static bool allows_recording(const struct sock_filter *filter, size_t count)
{
	return allows_name(filter, count) && allows_calls(filter, count, calls) &&
	       allows_calls(filter, count, incstack__kind->system_calls) &&
	       allows_write(filter, count);
}

/* Whether the program's memory can be read. If not, the kernel will report it to the program. The
 * test uses rt_sigprocmask, which the recorder calls anyway. This call reads the mask before it
 * checks its first argument, which is invalid here. */
static bool is_readable(const void *memory, size_t bytes)
{
	const uintptr_t page = 4096;
	const uintptr_t end = (uintptr_t)memory + bytes;

	for (uintptr_t at = (uintptr_t)memory; at < end; at = (at | (page - 1)) + 1) {
		const uintptr_t word = at & ~(uintptr_t)7;

		if (incstack__system_call(SYS_rt_sigprocmask, -1, word, NULL, sizeof(uint64_t)) ==
		    -EFAULT)
			return false;
	}
	return true;
}

/* Returns true if the filter ends recording. A program may pass no filter, to find out whether
 * seccomp is available. */
static bool ends_recording(const struct sock_fprog *program)
{
	return program && is_readable(program, sizeof(*program)) &&
	       is_readable(program->filter, program->len * sizeof(*program->filter)) &&
	       !allows_recording(program->filter, program->len);
}

static bool is_recording(void)
{
	return atomic_load_explicit(&incstack__recording.on, memory_order_relaxed) &&
	       incstack__kernel_getpid() == incstack__recording.pid;
}

static void enter_sandbox(bool strict, const void *program)
{
	struct incstack__protection before;
	bool ends;

	if (!is_recording())
		return;
	incstack__record_protect(&before);
	ends = strict || ends_recording(program);
	incstack__record_unprotect(&before);
	if (!ends) {
		incstack__kind->restricted();
		return;
	}
	incstack__record_note(INCSTACK__NOTE_SECCOMP);
	atomic_store_explicit(&incstack__recording.stopping, 1, memory_order_seq_cst);
	if (incstack__record_local.state == 0)
		incstack__record_await_unlisted();
	incstack__record_exit();
}

/* From now on a counter orders the events of all threads. It begins at a value that the time-stamp
 * counter reaches only after about a second, because a thread may still be finishing an event
 * that the time-stamp counter orders. */
static void leave_clock(void)
{
	struct incstack__recording *r = &incstack__recording;
	uint64_t none = 0;

	if (!is_recording())
		return;
	incstack__record_note(INCSTACK__NOTE_NO_TSC);
	/* If the counter has begun, the thread may be forbidden to read the time-stamp counter
	 * already. */
	if (atomic_load_explicit(&r->counter, memory_order_relaxed) == 0)
		atomic_compare_exchange_strong_explicit(&r->counter, &none,
							__rdtsc() + (UINT64_C(1) << 32),
							memory_order_seq_cst, memory_order_seq_cst);
	incstack__record_share();
	atomic_fetch_add_explicit(&r->changes, 1, memory_order_seq_cst);
}

void incstack__record_forbid(enum incstack__forbidden what, const void *filter)
{
	const int saved = errno;

	if (what == INCSTACK__FORBIDDEN_CLOCK)
		leave_clock();
	else
		enter_sandbox(what == INCSTACK__FORBIDDEN_ALL_CALLS, filter);
	errno = saved;
}
