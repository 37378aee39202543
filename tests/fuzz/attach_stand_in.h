/* SPDX-License-Identifier: MIT
 *
 * A broker for the fuzzers of incstack -p: every file, list and memory that is asked for has the bytes of
 * the input.
 */
#ifndef FUZZ_ATTACH_STAND_IN_H
#define FUZZ_ATTACH_STAND_IN_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/attach/process/ask.h"

static int input_fd = -1; /* of the bytes */
static const uint8_t *input;
static size_t input_bytes;

static void set_input(const uint8_t *data, size_t size)
{
	input = data;
	input_bytes = size;
	if (input_fd < 0)
		input_fd = memfd_create("input", MFD_CLOEXEC);
	if (input_fd < 0 || ftruncate(input_fd, 0) != 0 ||
	    pwrite(input_fd, data, size, 0) != (ssize_t)size)
		abort();
}

/* With a place of its own in the file. */
static int again(void)
{
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", input_fd);
	return open(name, O_RDONLY | O_CLOEXEC);
}

int tool_attach_ask_file(const struct tool_attach_mapping *mapping, char **path)
{
	if (path != NULL)
		*path = strdup(mapping->path);
	return mapping->inode % 2 != 0 ? again() : -1;
}

int tool_attach_ask_maps(void)
{
	return again();
}

int tool_attach_ask_memory(void)
{
	return again();
}

size_t tool_attach_ask_facts(enum tool_attach_facts what, pid_t tid, char *text, size_t size)
{
	const size_t bytes = input_bytes < size - 1 ? input_bytes : size - 1;

	(void)what;
	(void)tid;
	if (bytes > 0)
		memcpy(text, input, bytes);
	text[bytes] = '\0';
	return bytes;
}

#endif
