/* SPDX-License-Identifier: MIT
 *
 * Tests the jail: what a broker serves and what it refuses, and how it tells the end of its worker.
 */
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "jail_run.h"

static int ask(const struct tool_jail *in, uint32_t kind, const char *text,
	       struct tool_jail_answer *answer, int *fd)
{
	static struct tool_jail_request request;
	static char bytes[TOOL_JAIL_BYTES_MOST];

	if (tool_jail_request(&request, kind, text) != 0)
		return ENAMETOOLONG;
	request.numbers[0] = 41;
	return tool_jail_ask(in, &request, answer, bytes, sizeof(bytes), fd);
}

/* ---- what is served ----------------------------------------------------------------------- */

static int work_served(const struct tool_jail *in, void *context)
{
	struct tool_jail_answer answer;
	char text[sizeof(content)];
	int fd = -1;

	if (ask(in, DATA, "hello", &answer, NULL) != 0 || answer.length != 5 ||
	    answer.numbers[0] != 42)
		return 2;
	if (ask(in, FILE_OF, "", &answer, &fd) != 0 || fd < 0 ||
	    pread(fd, text, sizeof(text), 0) != sizeof(text) || strcmp(text, content) != 0)
		return 3;
	if (ask(in, REFUSE, "", &answer, &fd) != EPERM || fd >= 0)
		return 4;
	return 7;
}

START_TEST(test_served)
{
	ck_assert_int_eq(run(work_served), 7);
	ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(test_served_if_children_are_ignored)
{
	signal(SIGCHLD, SIG_IGN);
	ck_assert_int_eq(run(work_served), 7);
}
END_TEST

/* ---- requests that are refused ------------------------------------------------------------ */

/* By the two calls that a worker may make. */
static ssize_t put(const struct tool_jail *in, const void *bytes, size_t size)
{
	struct iovec part = {(void *)(uintptr_t)bytes, size};
	const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	return sendmsg(in->channel, &message, MSG_NOSIGNAL);
}

static ssize_t take(const struct tool_jail *in, void *bytes, size_t size)
{
	struct iovec part = {bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	return recvmsg(in->channel, &message, 0);
}

static int send_raw(const struct tool_jail *in, const void *bytes, size_t size)
{
	struct tool_jail_answer answer = {0};

	if (put(in, bytes, size) < 0 || take(in, &answer, sizeof(answer)) != sizeof(answer))
		return -1;
	return answer.error;
}

/* Request number i is bad in a way of its own. Returns how many bytes of it are sent. */
static size_t make_bad(unsigned i, struct tool_jail_request *request)
{
	tool_jail_request(request, DATA, "text");
	switch (i % 5) {
	case 0: /* an unknown kind */
		request->kind = i % 2 ? UINT32_MAX - i : 100 + i;
		break;
	case 1: /* a text that is longer or shorter than it says */
		request->length = i % 2 ? 5 + i : i % 4;
		break;
	case 2: /* a length outside */
		request->length = i % 2 ? UINT32_MAX - i : TOOL_JAIL_TEXT + i;
		break;
	case 3: /* bytes behind the text */
		request->text[TOOL_JAIL_TEXT - 1 - i] = 'x';
		break;
	default: /* too short */
		return i * sizeof(*request) / 50 + 1;
	}
	return sizeof(*request);
}

static int work_bad(const struct tool_jail *in, void *context)
{
	static char large[2 * sizeof(struct tool_jail_request)];
	static struct tool_jail_request request;

	for (unsigned i = 0; i < 50; i++) {
		const size_t size = make_bad(i, &request);
		const int error = send_raw(in, &request, size);

		if (error != EBADMSG && error != ENOSYS)
			return 2;
	}
	if (send_raw(in, large, sizeof(large)) != EBADMSG)
		return 3;
	return work_served(in, NULL);
}

START_TEST(test_bad_requests_are_refused)
{
	ck_assert_int_eq(run(work_bad), 7);
}
END_TEST

static int work_sends_descriptor(const struct tool_jail *in, void *context)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer = {0};
	struct iovec part = {&request, sizeof(request)};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	const struct msghdr message = {.msg_iov = &part,
				       .msg_iovlen = 1,
				       .msg_control = &control,
				       .msg_controllen = sizeof(control)};
	const int fd = STDERR_FILENO;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	tool_jail_request(&request, DATA, "text");
	if (sendmsg(in->channel, &message, 0) < 0 ||
	    take(in, &answer, sizeof(answer)) != sizeof(answer))
		return 2;
	return answer.error == EBADMSG ? 7 : 3;
}

START_TEST(test_descriptors_are_not_taken)
{
	ck_assert_int_eq(run(work_sends_descriptor), 7);
}
END_TEST

/* A worker that never reads is ended when its answers fill the socket. */
static int work_floods(const struct tool_jail *in, void *context)
{
	static struct tool_jail_request request;

	tool_jail_request(&request, DATA, "text");
	while (put(in, &request, sizeof(request)) > 0)
		;
	return 7;
}

START_TEST(test_flood_is_ended)
{
	ck_assert_int_eq(run(work_floods), TOOL_JAIL_FAILED);
	ck_assert_said("ended by signal 9");
}
END_TEST

/* ---- ends --------------------------------------------------------------------------------- */

static int work_crashes(const struct tool_jail *in, void *context)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 2;
}

START_TEST(test_crash)
{
	ck_assert_int_eq(run(work_crashes), TOOL_JAIL_FAILED);
	ck_assert_said("ended by signal 11");
}
END_TEST

static int work_aborts(const struct tool_jail *in, void *context)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

START_TEST(test_abort)
{
	ck_assert_int_eq(run(work_aborts), TOOL_JAIL_FAILED);
	ck_assert_said("ended by signal 6");
}
END_TEST

/* The broker is ended by SIGTERM, which it passes on. */
static int work_waits(const struct tool_jail *in, void *context)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer;

	tool_jail_request(&request, HELD, "");
	request.numbers[0] = SIGTERM;
	tool_jail_ask(in, &request, &answer, NULL, 0, NULL);
	for (;;)
		nanosleep(&(struct timespec){.tv_sec = 100}, NULL);
}

START_TEST(test_signal_ends_both)
{
	const pid_t broker = fork();
	int status;

	if (broker == 0) {
		signal(SIGTERM, SIG_DFL);
		_exit(tool_jail_run(&jail, work_waits, NULL));
	}
	ck_assert_int_eq(waitpid(broker, &status, 0), broker);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}
END_TEST

/* A worker that holds signals back ends by the second one. */
static int work_does_not_listen(const struct tool_jail *in, void *context)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	tool_jail_request(&request, HELD, "");
	request.numbers[0] = SIGTERM;
	for (;;)
		tool_jail_ask(in, &request, &answer, NULL, 0, NULL);
}

START_TEST(test_second_signal_ends_both)
{
	const pid_t broker = fork();
	int status;

	if (broker == 0) {
		signal(SIGTERM, SIG_DFL);
		_exit(tool_jail_run(&jail, work_does_not_listen, NULL));
	}
	ck_assert_int_eq(waitpid(broker, &status, 0), broker);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jail");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, test_served);
	tcase_add_test(tcase, test_served_if_children_are_ignored);
	tcase_add_test(tcase, test_bad_requests_are_refused);
	tcase_add_test(tcase, test_descriptors_are_not_taken);
	tcase_add_test(tcase, test_flood_is_ended);
	tcase_add_test(tcase, test_crash);
	tcase_add_test(tcase, test_abort);
	tcase_add_test(tcase, test_signal_ends_both);
	tcase_add_test(tcase, test_second_signal_ends_both);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
