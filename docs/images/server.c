/* SPDX-License-Identifier: MIT
 *
 * The program of the picture in README.md: a server that forgets two of three sessions, and once fills a cache.
 * README.md of this folder says how the picture is made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session {
	char *name, *buffer;
	struct session *next;
};

static struct session *sessions;
static volatile double sum;

static void work(int count)
{
	for (int i = 0; i < count; i++)
		sum += i * 0.5;
}

static inline __attribute__((always_inline)) char *make_buffer(size_t size)
{
	return memset(malloc(size), 1, size);
}

__attribute__((noinline)) static void open_session(const char *name)
{
	struct session *session = malloc(sizeof(*session));

	session->name = strdup(name);
	session->buffer = make_buffer(2048);
	session->next = sessions;
	sessions = session;
}

__attribute__((noinline)) static void close_session(void)
{
	struct session *session = sessions;

	sessions = session->next;
	free(session->buffer);
	free(session);
}

__attribute__((noinline)) static char *parse_body(int parts)
{
	char *body = NULL;

	for (int i = 1; i <= parts; i++)
		body = realloc(body, (size_t)i * 700);
	return body;
}

__attribute__((noinline)) static void handle_request(int number)
{
	char name[32], *body;

	snprintf(name, sizeof(name), "session %d", number);
	open_session(name);
	body = parse_body(4 + number % 9);
	work(60000);
	free(body);
	if (number % 3 == 0)
		close_session();
}

__attribute__((noinline)) static void load_cache(void)
{
	char *entries[900];

	for (int i = 0; i < 900; i++) {
		entries[i] = malloc(4000);
		work(3000);
	}
	for (int i = 0; i < 900; i++)
		free(entries[i]);
}

int main(void)
{
	for (int i = 0; i < 1500; i++)
		handle_request(i);
	load_cache();
	for (int i = 0; i < 1200; i++)
		handle_request(i);
	return 0;
}
