/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that wait for input, for output, or for an event of a descriptor.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "waits.h"

#define WAITS(type, name, parameters, arguments) \
	INCSTACK__WAITS(type, name, INCSTACK__STATE_IO, parameters, arguments)

WAITS(ssize_t, read, (int fd, void *to, size_t bytes), (fd, to, bytes))
WAITS(ssize_t, write, (int fd, const void *from, size_t bytes), (fd, from, bytes))
WAITS(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
WAITS(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
WAITS(ssize_t, pread, (int fd, void *to, size_t bytes, off_t at), (fd, to, bytes, at))
WAITS(ssize_t, pwrite, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at))
WAITS(ssize_t, pread64, (int fd, void *to, size_t bytes, off64_t at), (fd, to, bytes, at))
WAITS(ssize_t, pwrite64, (int fd, const void *from, size_t bytes, off64_t at),
      (fd, from, bytes, at))
WAITS(ssize_t, recv, (int fd, void *to, size_t bytes, int flags), (fd, to, bytes, flags))
WAITS(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
WAITS(ssize_t, send, (int fd, const void *from, size_t bytes, int flags), (fd, from, bytes, flags))
WAITS(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WAITS(ssize_t, recvfrom,
      (int fd, void *to, size_t bytes, int flags, struct sockaddr *from, socklen_t *length),
      (fd, to, bytes, flags, from, length))
WAITS(ssize_t, sendto,
      (int fd, const void *from, size_t bytes, int flags, const struct sockaddr *to,
       socklen_t length),
      (fd, from, bytes, flags, to, length))
WAITS(int, accept, (int fd, struct sockaddr *from, socklen_t *length), (fd, from, length))
WAITS(int, accept4, (int fd, struct sockaddr *from, socklen_t *length, int flags),
      (fd, from, length, flags))
WAITS(int, fsync, (int fd), (fd))
WAITS(int, fdatasync, (int fd), (fd))

/* A second call would not do what the first does: it says that a connection is being made. */
INCSTACK__WAITS_UNINTERRUPTED(int, connect, INCSTACK__STATE_IO,
			      (int fd, const struct sockaddr *to, socklen_t length),
			      (fd, to, length))

/* ---- with a timeout ---------------------------------------------------------------------- */

/* Sets the milliseconds that are left. */
static void shorten(int *timeout, int all, uint64_t *first, uint64_t begin)
{
	*first = *first != 0 ? *first : begin;
	if (all > 0)
		*timeout = (int)((incstack__waiting_left((int64_t)all * 1000000, *first) + 999999) /
				 1000000);
}

#define WAITS_MS(name, state, parameters, arguments) \
	INCSTACK__REAL(name) \
	INCSTACK__INTERPOSED int name parameters \
	{ \
		const int all = timeout; \
		uint64_t first = 0; \
		int result; \
		INCSTACK__WAITING(state, result, name##_next() arguments, \
				  result == -1 && errno == EINTR, \
				  shorten(&timeout, all, &first, waiting.wait.begin)) \
\
		return result; \
	}

WAITS_MS(poll, count > 0 ? INCSTACK__STATE_IO : INCSTACK__STATE_SLEEP,
	 (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
WAITS_MS(epoll_wait, INCSTACK__STATE_IO,
	 (int fd, struct epoll_event *events, int most, int timeout), (fd, events, most, timeout))
WAITS_MS(epoll_pwait, INCSTACK__STATE_IO,
	 (int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask),
	 (fd, events, most, timeout, mask))
INCSTACK__WAITS_TIME(ppoll, INCSTACK__STATE_IO,
		     (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
		      const sigset_t *mask),
		     (fds, count, timeout, mask))
INCSTACK__WAITS_TIME(pselect, INCSTACK__STATE_IO,
		     (int count, fd_set *from, fd_set *to, fd_set *others,
		      const struct timespec *timeout, const sigset_t *mask),
		     (count, from, to, others, timeout, mask))

/* The kernel sets the timeout to what is left of it. */
WAITS(int, select, (int count, fd_set *from, fd_set *to, fd_set *others, struct timeval *timeout),
      (count, from, to, others, timeout))
