/* SPDX-License-Identifier: MIT
 *
 * A jail for the part of the tool that reads what strangers wrote. The tool forks: the child, the
 * worker, gives up its rights and then reads; the parent, the broker, keeps the rights and reads
 * nothing. The worker asks the broker for descriptors and for bytes, by requests of a fixed size. The
 * broker serves only the kinds of requests that the caller lists.
 */
#ifndef INCSTACK_TOOL_JAIL_H
#define INCSTACK_TOOL_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	TOOL_JAIL_TEXT = 4096,        /* of a request, with its zero byte */
	TOOL_JAIL_BYTES_MOST = 65536, /* of an answer */
	TOOL_JAIL_NUMBERS = 4,
	TOOL_JAIL_FAILED = 1, /* the exit status of a worker that was ended */
};

struct tool_jail_request {
	uint32_t kind;
	uint32_t length; /* of the text, without its zero byte */
	uint64_t numbers[TOOL_JAIL_NUMBERS];
	char text[TOOL_JAIL_TEXT]; /* after the text only zero bytes */
};

struct tool_jail_answer {
	int32_t error;   /* an errno; 0: served */
	uint32_t length; /* of the bytes that follow */
	uint64_t numbers[TOOL_JAIL_NUMBERS];
};

/* What the broker makes of a request. */
struct tool_jail_served {
	struct tool_jail_answer answer;
	int fd; /* -1: none. The broker closes it once it is sent */
	unsigned char bytes[TOOL_JAIL_BYTES_MOST];
};

/* A kind of request. `serve` runs in the broker, with its rights, on a request whose form is checked
 * and whose content is not. It returns 0 or an errno. */
struct tool_jail_row {
	uint32_t kind;
	int (*serve)(void *context, const struct tool_jail_request *request,
		     struct tool_jail_served *served);
};

/* A system call that a worker needs besides the usual ones. */
struct tool_jail_call {
	int number;     /* SYS_... */
	int argument;   /* -1: with any arguments */
	uint64_t value; /* of that argument */
};

/* What a worker may use. 0: no limit besides those of the tool. */
struct tool_jail_limits {
	uint64_t memory;  /* bytes of its own, RLIMIT_DATA */
	uint64_t seconds; /* of processor time */
	const int *keep;  /* descriptors that stay open besides 1, 2 and the channel */
	size_t keep_count;
	bool keeps_all; /* all descriptors stay open */
	const struct tool_jail_call *calls;
	size_t call_count;
};

struct tool_jail {
	const char *what; /* for messages: "the reader of FILE" */
	const struct tool_jail_row *rows;
	size_t row_count;
	void *context; /* of the rows */
	struct tool_jail_limits limits;
	unsigned patience; /* how many signals the worker gets before one more kills it; 0: one */
	/* Of the jail itself. */
	pid_t worker; /* in the broker; 0 in the worker */
	int channel;
};

/* Forks. Returns what fork returns: in the worker, which still has all rights, 0. The tool has no other
 * thread. After an error it has printed a line. */
pid_t tool_jail_fork(struct tool_jail *jail);

/* In the worker: gives up all rights. Does not return if they cannot be given up. */
void tool_jail_enter(const struct tool_jail *jail);

/* In the worker: asks the broker. Up to `room` bytes of the answer are copied to `bytes`. If `fd` is not
 * null, it becomes the descriptor that came, or -1. Returns 0 or an errno. */
int tool_jail_ask(const struct tool_jail *jail, const struct tool_jail_request *request,
		  struct tool_jail_answer *answer, void *bytes, size_t room, int *fd);

/* Makes a request with a text. Returns 0 or ENAMETOOLONG. */
int tool_jail_request(struct tool_jail_request *request, uint32_t kind, const char *text);

/* Answers a request, as the broker does, in a process that has no worker. */
int tool_jail_dispatch(const struct tool_jail *jail, const struct tool_jail_request *request,
		       size_t size, struct tool_jail_served *served);

/* In the broker: serves the worker until that has ended, and passes signals on to it. Returns the exit
 * status of the worker. If the worker was ended by a signal, it prints why, and the status is
 * TOOL_JAIL_FAILED; *signal becomes the signal, otherwise 0. */
int tool_jail_serve(struct tool_jail *jail, int *signal);

/* All of it: forks, lets the worker do the work in the jail, and serves it. Returns the exit status.
 * A signal by which a user ends a tool ends the broker like the worker. */
int tool_jail_run(struct tool_jail *jail, int (*work)(const struct tool_jail *jail, void *context),
		  void *context);

/* The parts of tool_jail_enter. They return 0 or an errno. */
int tool_jail_rights(bool *is_other_user); /* namespaces, user, capabilities */
int tool_jail_filter(const struct tool_jail_limits *limits);

#endif
