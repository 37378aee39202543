/* SPDX-License-Identifier: MIT
 *
 * The library libdebuginfod is loaded when a user has named servers, and not linked: most users need neither it
 * nor the libraries of networks that it needs. All servers together get a limited time, so that a trace of
 * thousands of modules that they do not know ends.
 */
#include "debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ID_DIGITS_MOST = 128, SECONDS_MOST = 300 };

typedef void *begin_fn(void);
typedef int find_fn(void *client, const unsigned char *id, int length, char **path);

static struct {
	bool is_tried;
	bool is_over;
	time_t spent; /* seconds */
	void *client; /* null: none */
	find_fn *find;
} servers;

static void give_up(const char *why)
{
	servers.is_over = true;
	fprintf(stderr,
		"incstack: note: debuginfod: %s; what it might know is missing, and it is not "
		"asked "
		"again\n",
		why);
}

static void load(void)
{
	void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	void *begin_symbol = library != NULL ? dlsym(library, "debuginfod_begin") : NULL;
	void *find_symbol = library != NULL ? dlsym(library, "debuginfod_find_debuginfo") : NULL;
	begin_fn *begin;

	if (begin_symbol == NULL || find_symbol == NULL) {
		give_up("the library libdebuginfod1 is not installed");
		return;
	}
	memcpy(&begin, &begin_symbol, sizeof(begin));
	memcpy(&servers.find, &find_symbol, sizeof(servers.find));
	/* Its own limits are a minute and a half without an answer, and none. */
	setenv("DEBUGINFOD_TIMEOUT", "10", 0);
	setenv("DEBUGINFOD_MAXTIME", "60", 0);
	servers.client = begin();
}

static bool is_ready(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (urls == NULL || urls[0] == 0 || servers.is_over)
		return false;
	if (!servers.is_tried)
		load();
	servers.is_tried = true;
	return servers.client != NULL;
}

static bool is_id(const char *id)
{
	const size_t length = strspn(id, "0123456789abcdef");

	return id[length] == 0 && length >= 4 && length <= ID_DIGITS_MOST && length % 2 == 0;
}

static time_t now(void)
{
	struct timespec time;

	return clock_gettime(CLOCK_MONOTONIC, &time) == 0 ? time.tv_sec : 0;
}

int tool_debuginfod_find(const char *id)
{
	const time_t start = now();
	char *path = NULL;
	int fd;

	if (!is_id(id) || !is_ready())
		return -1;
	/* A length of 0: the build-id is a text. */
	fd = servers.find(servers.client, (const unsigned char *)id, 0, &path);
	free(path);
	servers.spent += now() - start;
	if (fd < 0 && fd != -ENOENT)
		give_up(strerror(-fd));
	else if (servers.spent > SECONDS_MOST)
		give_up("it took too long");
	return fd < 0 ? -1 : fd;
}
