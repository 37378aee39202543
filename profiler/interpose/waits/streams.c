/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions of libc that call read and write inside libc, and the checked forms of functions that
 * _FORTIFY_SOURCE puts in place of the others.
 */
#undef _FORTIFY_SOURCE
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "waits.h"

ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t bytes, size_t room, int flags,
		       struct sockaddr *from, socklen_t *length);
char *__fgets_chk(char *to, size_t room, int bytes, FILE *stream);
size_t __fread_chk(void *to, size_t room, size_t bytes, size_t count, FILE *stream);

INCSTACK__WAITS(ssize_t, __read_chk, INCSTACK__STATE_IO,
		(int fd, void *to, size_t bytes, size_t room), (fd, to, bytes, room))
INCSTACK__WAITS(ssize_t, __recv_chk, INCSTACK__STATE_IO,
		(int fd, void *to, size_t bytes, size_t room, int flags),
		(fd, to, bytes, room, flags))
INCSTACK__WAITS(ssize_t, __recvfrom_chk, INCSTACK__STATE_IO,
		(int fd, void *to, size_t bytes, size_t room, int flags, struct sockaddr *from,
		 socklen_t *length),
		(fd, to, bytes, room, flags, from, length))

#define WAITS(type, name, parameters, arguments) \
	INCSTACK__WAITS_UNINTERRUPTED(type, name, INCSTACK__STATE_IO, parameters, arguments)

WAITS(size_t, fread, (void *to, size_t bytes, size_t count, FILE *stream),
      (to, bytes, count, stream))
WAITS(char *, fgets, (char *to, int bytes, FILE *stream), (to, bytes, stream))
WAITS(ssize_t, getline, (char **to, size_t *room, FILE *stream), (to, room, stream))
WAITS(ssize_t, getdelim, (char **to, size_t *room, int end, FILE *stream), (to, room, end, stream))
WAITS(int, fflush, (FILE * stream), (stream))
WAITS(char *, __fgets_chk, (char *to, size_t room, int bytes, FILE *stream),
      (to, room, bytes, stream))
WAITS(size_t, __fread_chk, (void *to, size_t room, size_t bytes, size_t count, FILE *stream),
      (to, room, bytes, count, stream))
WAITS(int, getaddrinfo,
      (const char *name, const char *service, const struct addrinfo *hints,
       struct addrinfo **result_of),
      (name, service, hints, result_of))
