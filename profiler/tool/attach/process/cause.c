/* SPDX-License-Identifier: MIT
 *
 * A thread that waits is in a system call, or it waits for a page of its memory. The kernel reports the thread's
 * registers, but not the number of the call. A library of C loads a constant number just before the call,
 * so the number is read from the code. Other code that computes its number waits "otherwise".
 */
#include <sys/syscall.h>

#include "cause.h"

enum {
	CALL_BYTES = 2,   /* of the instruction syscall */
	CODE_BYTES = 40,  /* in which the number is looked for */
	FUTEX_WAITV = 449 /* SYS_futex_waitv, which older headers lack */
};

static const short locks[] = {
	SYS_futex, SYS_flock, SYS_semop, SYS_semtimedop, FUTEX_WAITV,
};

static const short sleeps[] = {
	SYS_nanosleep, SYS_clock_nanosleep, SYS_pause, SYS_rt_sigtimedwait, SYS_rt_sigsuspend,
};

static const short transfers[] = {
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_pread64,
	SYS_pwrite64,
	SYS_preadv,
	SYS_pwritev,
	SYS_preadv2,
	SYS_pwritev2,
	SYS_poll,
	SYS_ppoll,
	SYS_select,
	SYS_pselect6,
	SYS_epoll_wait,
	SYS_epoll_pwait,
	SYS_epoll_pwait2,
	SYS_accept,
	SYS_accept4,
	SYS_connect,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_recvmmsg,
	SYS_sendto,
	SYS_sendmsg,
	SYS_sendmmsg,
	SYS_open,
	SYS_openat,
	SYS_openat2,
	SYS_close,
	SYS_fsync,
	SYS_fdatasync,
	SYS_sync,
	SYS_syncfs,
	SYS_sync_file_range,
	SYS_msync,
	SYS_sendfile,
	SYS_splice,
	SYS_tee,
	SYS_vmsplice,
	SYS_copy_file_range,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_ioctl,
	SYS_io_uring_enter,
	SYS_io_getevents,
	SYS_getdents64,
	SYS_stat,
	SYS_newfstatat,
	SYS_statx,
	SYS_rename,
	SYS_unlink,
	SYS_unlinkat,
	SYS_mkdir,
	SYS_readahead,
};

static bool has(const short *numbers, size_t count, long number)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

#define HAS(numbers, number) has(numbers, sizeof(numbers) / sizeof((numbers)[0]), number)

enum incstack__state tool_attach_cause_of_call(long number)
{
	if (number < 0)
		return INCSTACK__STATE_FAULT;
	if (HAS(locks, number))
		return INCSTACK__STATE_LOCK;
	if (HAS(sleeps, number))
		return INCSTACK__STATE_SLEEP;
	return HAS(transfers, number) ? INCSTACK__STATE_IO : INCSTACK__STATE_OTHER;
}

/* Returns the constant that `mov $number, %eax` loads there, or -1. Another register has a prefix. */
static long loaded(const unsigned char *at, const unsigned char *begin)
{
	enum { LOAD_EAX = 0xb8, PREFIX_B = 0x41, PREFIX_WB = 0x49 };

	if (at[0] != LOAD_EAX || at[2] > 1 || at[3] != 0 || at[4] != 0)
		return -1;
	if (at > begin && (at[-1] == PREFIX_B || at[-1] == PREFIX_WB))
		return -1;
	return at[1] | at[2] << 8;
}

static bool clears_eax(const unsigned char *at)
{
	enum { XOR_TO = 0x31, XOR_FROM = 0x33, EAX_EAX = 0xc0 };

	return (at[0] == XOR_TO || at[0] == XOR_FROM) && at[1] == EAX_EAX;
}

/* Returns the number of the call whose instruction ends the code, -1 if there is no call, or a number that no
 * call has if it is not a constant. */
static long number_of(const unsigned char *code, size_t count)
{
	enum { LOAD_BYTES = 5, CLEAR_BYTES = 2 };
	const unsigned char *call = code + count - CALL_BYTES;

	if (count < CALL_BYTES || call[0] != 0x0f || call[1] != 0x05)
		return -1;
	if (count >= CALL_BYTES + CLEAR_BYTES && clears_eax(call - CLEAR_BYTES))
		return SYS_read;
	for (const unsigned char *at = call - LOAD_BYTES; at >= code; at--)
		if (loaded(at, code) >= 0)
			return loaded(at, code);
	return INT32_MAX;
}

enum incstack__state tool_attach_cause_of_code(const unsigned char *code, size_t count)
{
	return tool_attach_cause_of_call(number_of(code, count));
}

enum incstack__state tool_attach_cause(struct tool_attach_space *space, uint64_t pc)
{
	for (size_t count = CODE_BYTES; count >= CALL_BYTES; count /= 2) {
		const unsigned char *code = tool_attach_space_code(space, pc - count, count);

		if (code)
			return tool_attach_cause_of_code(code, count);
	}
	return INCSTACK__STATE_OTHER;
}
