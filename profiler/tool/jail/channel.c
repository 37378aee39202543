/* SPDX-License-Identifier: MIT
 *
 * What the worker and the broker say to each other. A message is one datagram of a socket that keeps
 * their borders. The worker waits for the answer to each request, so there is one message at a time.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"

/* Room for one descriptor, aligned as sendmsg wants it. */
union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int tool_jail_request(struct tool_jail_request *request, uint32_t kind, const char *text)
{
	const size_t length = strlen(text);

	memset(request, 0, sizeof(*request));
	if (length >= sizeof(request->text))
		return ENAMETOOLONG;
	request->kind = kind;
	request->length = (uint32_t)length;
	memcpy(request->text, text, length);
	return 0;
}

/* ---- the broker ---------------------------------------------------------------------------- */

static bool is_well_formed(const struct tool_jail_request *request, size_t size)
{
	if (size != sizeof(*request) || request->length >= sizeof(request->text))
		return false;
	if (memchr(request->text, '\0', sizeof(request->text)) != request->text + request->length)
		return false;
	for (size_t i = request->length; i < sizeof(request->text); i++)
		if (request->text[i] != '\0')
			return false;
	return true;
}

int tool_jail_dispatch(const struct tool_jail *jail, const struct tool_jail_request *request,
		       size_t size, struct tool_jail_served *served)
{
	int error = EBADMSG;

	memset(&served->answer, 0, sizeof(served->answer));
	served->fd = -1;
	if (is_well_formed(request, size)) {
		error = ENOSYS;
		for (size_t i = 0; i < jail->row_count; i++)
			if (jail->rows[i].kind == request->kind)
				error = jail->rows[i].serve(jail->context, request, served);
	}
	if (error != 0) {
		if (served->fd >= 0)
			close(served->fd);
		served->fd = -1;
		memset(&served->answer, 0, sizeof(served->answer));
	}
	served->answer.error = error;
	return error;
}

/* There is no room for descriptors: the kernel closes those that the worker sends, and says so. */
ssize_t tool_jail_receive(int channel, struct tool_jail_request *request, bool *is_whole)
{
	struct iovec part = {request, sizeof(*request)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	const ssize_t got = recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*is_whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
	return got;
}

int tool_jail_answer(int channel, struct tool_jail_served *served)
{
	struct iovec parts[] = {{&served->answer, sizeof(served->answer)},
				{served->bytes, served->answer.length}};
	union control control = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t sent;

	if (served->fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &served->fd, sizeof(served->fd));
	}
	/* A worker that does not take its answers must not stop the broker. */
	sent = sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (served->fd >= 0)
		close(served->fd);
	return sent < 0 ? -1 : 0;
}

/* ---- the worker ---------------------------------------------------------------------------- */

static int send_request(int channel, const struct tool_jail_request *request)
{
	struct iovec part = {(void *)(uintptr_t)request, sizeof(*request)};
	const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	while (sendmsg(channel, &message, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno;
	return 0;
}

static ssize_t receive_answer(int channel, struct tool_jail_answer *answer, void *bytes,
			      size_t room, int *fd)
{
	struct iovec parts[] = {{answer, sizeof(*answer)}, {bytes, room}};
	union control control = {0};
	struct msghdr message = {.msg_iov = parts,
				 .msg_iovlen = 2,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t got;

	do
		got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	*fd = -1;
	if (got > 0 && message.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(&control.head), sizeof(*fd));
	return got;
}

int tool_jail_ask(const struct tool_jail *jail, const struct tool_jail_request *request,
		  struct tool_jail_answer *answer, void *bytes, size_t room, int *fd)
{
	int came = -1;
	ssize_t got;
	int error = send_request(jail->channel, request);

	if (fd != NULL)
		*fd = -1;
	if (error != 0)
		return error;
	got = receive_answer(jail->channel, answer, bytes, room, &came);
	if (got < (ssize_t)sizeof(*answer))
		return EPIPE; /* the broker is gone */
	if (answer->length > room)
		answer->length = (uint32_t)room;
	if (fd != NULL)
		*fd = came;
	else if (came >= 0)
		close(came);
	return answer->error;
}
