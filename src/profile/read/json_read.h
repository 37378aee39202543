/* SPDX-License-Identifier: MIT
 *
 * Reads JSON as a stream of events at places that the caller names. No document is built.
 */
#ifndef INCSTACK_PROFILE_JSON_READ_H
#define INCSTACK_PROFILE_JSON_READ_H

#include "reader.h"

/* A place: keys joined by '.', '#' for any element of an array, "a.#.b". */
struct incstack__json_place {
	const char *path;
	int id; /* above 0 */
};

enum incstack__json_type {
	INCSTACK__JSON_NULL,
	INCSTACK__JSON_INTEGER,
	INCSTACK__JSON_DOUBLE,
	INCSTACK__JSON_STRING, /* UTF-8 */
	INCSTACK__JSON_BEGIN,  /* of an array or object */
	INCSTACK__JSON_END,
};

struct incstack__json_event {
	int id;
	enum incstack__json_type type;
	long long integer; /* of an integer */
	double number;     /* of both kinds of number */
	const char *text;  /* of a string; not terminated */
	size_t length;
};

struct incstack__json_client {
	const struct incstack__json_place *places; /* up to a null path */
	int (*event)(void *context, const struct incstack__json_event *event);
	void *context;
};

/* Reads one JSON text. If `event` returns an error, reading ends with it. */
int incstack__json_read(struct incstack__reader *reader,
			const struct incstack__json_client *client);

#endif
