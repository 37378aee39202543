/* SPDX-License-Identifier: MIT
 *
 * Turns yajl's events into events with their places. A place is looked up once per array or key,
 * not once per element.
 */
#include "json_read.h"
#include "json_surrogates.h"

#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

enum { DEPTH_MAX = 64, PATH_MAX_BYTES = 512 };

struct level {
	size_t path; /* length of the path of this array or object */
	int id;      /* of the container itself */
	bool array;
};

struct json {
	struct incstack__reader *reader;
	const struct incstack__json_client *client;
	struct level levels[DEPTH_MAX];
	size_t depth;
	char path[PATH_MAX_BYTES]; /* of the next value */
	size_t length;
	int next; /* its place; 0: not one of the caller's */
	int error;
};

static int find_place(const struct json *json)
{
	const struct incstack__json_place *place = json->client->places;

	for (; place->path; place++)
		if (!strcmp(place->path, json->path))
			return place->id;
	return 0;
}

/* Appends to the path. If it is too long for the buffer, it is not one of the caller's. */
static void append(struct json *json, const char *text, size_t length)
{
	size_t dot = json->length > 0;

	if (json->length + dot + length + 1 > sizeof(json->path)) {
		json->path[0] = '!';
		json->length = 1;
		dot = 0;
		length = 0;
	}
	if (dot)
		json->path[json->length] = '.';
	memcpy(json->path + json->length + dot, text, length);
	json->length += dot + length;
	json->path[json->length] = 0;
	json->next = memchr(text, 0, length) ? 0 : find_place(json);
}

/* Shortens the path to that of the innermost container. */
static void rewind_path(struct json *json)
{
	json->length = json->depth ? json->levels[json->depth - 1].path : 0;
	json->path[json->length] = 0;
}

static int send(struct json *json, struct incstack__json_event event)
{
	if (event.id)
		json->error = json->client->event(json->client->context, &event);
	return !json->error;
}

static int on_null(void *context)
{
	struct json *json = context;

	return send(json, (struct incstack__json_event){.id = json->next});
}

static int on_boolean(void *context, int value)
{
	(void)value;
	return on_null(context);
}

static int on_integer(void *context, long long value)
{
	struct json *json = context;

	return send(json, (struct incstack__json_event){.id = json->next,
							.type = INCSTACK__JSON_INTEGER,
							.integer = value,
							.number = (double)value});
}

static int on_double(void *context, double value)
{
	struct json *json = context;

	return send(json, (struct incstack__json_event){.id = json->next,
							.type = INCSTACK__JSON_DOUBLE,
							.number = value});
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
	struct json *json = context;

	return send(json, (struct incstack__json_event){.id = json->next,
							.type = INCSTACK__JSON_STRING,
							.text = (const char *)text,
							.length = length});
}

static int open_level(struct json *json, bool array)
{
	int id = json->next;

	if (json->depth == DEPTH_MAX) {
		json->error = incstack__refuse(json->reader, "nested too deep");
		return 0;
	}
	json->levels[json->depth++] =
		(struct level){.path = json->length, .id = id, .array = array};
	if (!send(json, (struct incstack__json_event){.id = id, .type = INCSTACK__JSON_BEGIN}))
		return 0;
	json->next = 0;
	if (array)
		append(json, "#", 1);
	return 1;
}

static int close_level(void *context)
{
	struct json *json = context;
	const struct level *level = &json->levels[--json->depth];

	json->length = level->path;
	json->path[json->length] = 0;
	if (!send(json, (struct incstack__json_event){.id = level->id, .type = INCSTACK__JSON_END}))
		return 0;
	/* In an array the next element has the same place. */
	json->next = json->depth && json->levels[json->depth - 1].array ? level->id : 0;
	return 1;
}

static int on_map(void *context)
{
	return open_level(context, false);
}

static int on_array(void *context)
{
	return open_level(context, true);
}

static int on_key(void *context, const unsigned char *key, size_t length)
{
	struct json *json = context;

	rewind_path(json);
	append(json, (const char *)key, length);
	return 1;
}

static const char *why_not(yajl_handle parser)
{
	unsigned char *text = yajl_get_error(parser, 0, NULL, 0);
	const char *why = "not valid JSON";

	if (text && strstr((const char *)text, "premature EOF"))
		why = "the JSON text is cut off";
	else if (text && strstr((const char *)text, "overflow"))
		why = "a number beyond 2^63 - 1";
	yajl_free_error(parser, text);
	return why;
}

static int failed(struct json *json, yajl_handle parser, uint64_t before)
{
	json->reader->at.offset = before + yajl_get_bytes_consumed(parser);
	if (json->error)
		return json->error;
	return incstack__refuse(json->reader, why_not(parser));
}

/* Passes the bytes on to the parser. Those that may begin an escape stay at the start of the buffer. */
static int feed_part(struct json *json, yajl_handle parser, unsigned char *buffer, size_t *size,
		     uint64_t *taken)
{
	const size_t done =
		incstack__json_show_surrogates(buffer, *size, feof(json->reader->stream) != 0);

	if (yajl_parse(parser, buffer, done) != yajl_status_ok)
		return failed(json, parser, *taken);
	*taken += done;
	*size -= done;
	memmove(buffer, buffer + done, *size);
	return 0;
}

static int feed(struct json *json, yajl_handle parser)
{
	unsigned char buffer[1 << 16];
	uint64_t taken = 0;
	size_t size = 0, got;
	int error = 0;

	do {
		got = fread(buffer + size, 1, sizeof(buffer) - size, json->reader->stream);
		size += got;
		error = feed_part(json, parser, buffer, &size, &taken);
		if (error)
			return error;
		incstack__progress(json->reader, taken);
	} while (got > 0);
	if (ferror(json->reader->stream))
		return INCSTACK_EIO;
	json->reader->at.offset = taken;
	if (yajl_complete_parse(parser) != yajl_status_ok)
		return json->error ? json->error : incstack__refuse(json->reader, why_not(parser));
	return 0;
}

int incstack__json_read(struct incstack__reader *reader, const struct incstack__json_client *client)
{
	static const yajl_callbacks callbacks = {
		.yajl_null = on_null,
		.yajl_boolean = on_boolean,
		.yajl_integer = on_integer,
		.yajl_double = on_double,
		.yajl_string = on_string,
		.yajl_start_map = on_map,
		.yajl_map_key = on_key,
		.yajl_end_map = close_level,
		.yajl_start_array = on_array,
		.yajl_end_array = close_level,
	};
	struct json json = {.reader = reader, .client = client};
	yajl_handle parser = yajl_alloc(&callbacks, NULL, &json);
	int error;

	if (!parser)
		return INCSTACK_ENOMEM;
	error = feed(&json, parser);
	yajl_free(parser);
	return error;
}
