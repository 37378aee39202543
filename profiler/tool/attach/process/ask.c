/* SPDX-License-Identifier: MIT
 *
 * The worker's end of the requests. The broker says no more than the kernel would say to somebody who
 * may look at this process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "tool/proc.h"

static const struct tool_jail *broker;

void tool_attach_ask_begin(const struct tool_jail *jail)
{
	broker = jail;
}

/* Returns 0 or an error number. */
static int ask(enum tool_attach_request kind, const uint64_t *numbers, const char *text,
	       struct tool_jail_answer *answer, void *bytes, size_t room, int *fd)
{
	static struct tool_jail_request request;
	const int error = tool_jail_request(&request, kind, text);

	if (fd)
		*fd = -1;
	if (error != 0)
		return error;
	memcpy(request.numbers, numbers, sizeof(request.numbers));
	return tool_jail_ask(broker, &request, answer, bytes, room, fd);
}

/* Asks for what has neither text nor bytes. */
static int ask_plainly(enum tool_attach_request kind, uint64_t number, int *fd)
{
	const uint64_t numbers[TOOL_JAIL_NUMBERS] = {number};
	struct tool_jail_answer answer;

	return ask(kind, numbers, "", &answer, NULL, 0, fd);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int ask_mapped(enum tool_attach_request kind, const struct tool_attach_mapping *mapping,
		      struct tool_jail_answer *answer, char *name, size_t room, int *fd)
{
	const uint64_t numbers[TOOL_JAIL_NUMBERS] = {mapping->low, mapping->high, mapping->device,
						     mapping->inode};

	return ask(kind, numbers, mapping->path, answer, name, room, fd);
}

/* Returns the text of an answer, or null. */
static char *text_of(const struct tool_jail_answer *answer, const char *bytes)
{
	return answer->length > 0 ? strndup(bytes, answer->length) : NULL;
}

int tool_attach_ask_file(const struct tool_attach_mapping *mapping, char **path)
{
	static char name[TOOL_JAIL_TEXT];
	struct tool_jail_answer answer;
	int fd;
	const int error =
		ask_mapped(TOOL_ATTACH_REQUEST_FILE, mapping, &answer, name, sizeof(name), &fd);

	if (path)
		*path = error == 0 ? text_of(&answer, name) : NULL;
	return fd;
}

int tool_attach_ask_maps(void)
{
	int fd;

	ask_plainly(TOOL_ATTACH_REQUEST_MAPS, 0, &fd);
	return fd;
}

int tool_attach_ask_memory(void)
{
	int fd;

	ask_plainly(TOOL_ATTACH_REQUEST_MEMORY, 0, &fd);
	return fd;
}

int tool_attach_ask_pages(enum tool_attach_pages which)
{
	int fd;

	ask_plainly(TOOL_ATTACH_REQUEST_PAGES, which, &fd);
	return fd;
}

int tool_attach_ask_output(char **path)
{
	static const uint64_t none[TOOL_JAIL_NUMBERS];
	static char name[TOOL_JAIL_TEXT];
	struct tool_jail_answer answer;
	int fd;

	*path = NULL;
	if (ask(TOOL_ATTACH_REQUEST_OUTPUT, none, "", &answer, name, sizeof(name), &fd) == 0)
		*path = text_of(&answer, name);
	return fd;
}

/* ---- facts ---------------------------------------------------------------------------------- */

size_t tool_attach_ask_facts(enum tool_attach_facts what, pid_t tid, char *text, size_t size)
{
	const uint64_t numbers[TOOL_JAIL_NUMBERS] = {what, (uint64_t)tid};
	struct tool_jail_answer answer = {.length = 0};

	if (ask(TOOL_ATTACH_REQUEST_FACTS, numbers, "", &answer, text, size - 1, NULL) != 0)
		answer.length = 0;
	text[answer.length] = '\0';
	return answer.length;
}

bool tool_attach_ask_has_ended(void)
{
	char status[4096];

	return tool_attach_ask_facts(TOOL_ATTACH_STATUS, 0, status, sizeof(status)) == 0 ||
	       tool_proc_has_ended(status);
}

void tool_attach_ask_threads(void (*call)(void *context, pid_t tid), void *context)
{
	static pid_t tids[TOOL_JAIL_BYTES_MOST / sizeof(pid_t)];
	uint64_t numbers[TOOL_JAIL_NUMBERS] = {0};
	struct tool_jail_answer answer;
	size_t count;

	do {
		if (ask(TOOL_ATTACH_REQUEST_TASKS, numbers, "", &answer, tids, sizeof(tids),
			NULL) != 0)
			return;
		count = answer.length / sizeof(tids[0]);
		for (size_t i = 0; i < count; i++)
			call(context, tids[i]);
		numbers[0] += count;
	} while (count == sizeof(tids) / sizeof(tids[0]));
}

/* ---- the program that is run ------------------------------------------------------------------ */

void tool_attach_ask_let_go(void)
{
	ask_plainly(TOOL_ATTACH_REQUEST_LET_GO, 0, NULL);
}

void tool_attach_ask_signal(int number)
{
	ask_plainly(TOOL_ATTACH_REQUEST_SIGNAL, (uint64_t)number, NULL);
}

/* ---- probes ----------------------------------------------------------------------------------- */

int tool_attach_ask_probe(const struct tool_attach_mapping *mapping, uint64_t offset,
			  uint32_t number, unsigned kind)
{
	struct tool_jail_answer answer;
	uint64_t numbers[TOOL_JAIL_NUMBERS] = {0, offset, number, kind};
	const int error = ask_mapped(TOOL_ATTACH_REQUEST_PROBED, mapping, &answer, NULL, 0, NULL);

	if (error != 0)
		return error;
	numbers[0] = answer.numbers[0];
	return ask(TOOL_ATTACH_REQUEST_PROBE, numbers, "", &answer, NULL, 0, NULL);
}

int tool_attach_ask_probes(void)
{
	return ask_plainly(TOOL_ATTACH_REQUEST_PROBES_OPEN, 0, NULL);
}

void tool_attach_ask_no_probes(void)
{
	ask_plainly(TOOL_ATTACH_REQUEST_PROBES_CLOSE, 0, NULL);
}

bool tool_attach_ask_children(void)
{
	static const uint64_t none[TOOL_JAIL_NUMBERS];
	struct tool_jail_answer answer = {.error = 0};

	return ask(TOOL_ATTACH_REQUEST_CHILDREN, none, "", &answer, NULL, 0, NULL) == 0 &&
	       answer.numbers[0] != 0;
}
