/* SPDX-License-Identifier: MIT
 *
 * Demangles with libiberty. A short name may stand for an endless one, because parts of it may refer to others.
 * So the demangler is left as soon as the text is full.
 */
#include "demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* A longer name is shown as it is. The demangler's stack grows with it. */
enum { LENGTH_MOST = 8192 };

/* How often libiberty may try two ways before it prints anything: the time doubles with each operator that converts
 * to a type, and with each reference to an earlier part of a name that also has a parameter pack. */
enum { CONVERSIONS_MOST = 12, REFERENCES_MOST = 22 };

struct output {
	jmp_buf full;
	char *text;
	size_t length, room; /* without the zero byte */
};

static void append(const char *part, size_t bytes, void *context)
{
	struct output *output = context;
	const size_t left = output->room - output->length;

	memcpy(output->text + output->length, part, bytes < left ? bytes : left);
	output->length += bytes < left ? bytes : left;
	if (bytes > left)
		longjmp(output->full, 1);
}

/* Rust's older names are valid names of C++, so Rust is asked first. */
static bool demangle(const char *name, struct output *output)
{
	if (setjmp(output->full) != 0)
		return true;
	if (rust_demangle_callback(name, DMGL_NO_OPTS, append, output) != 0)
		return true;
	output->length = 0; /* of a name that is not Rust's at its end */
	return strncmp(name, "_Z", 2) == 0 &&
	       cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_TYPES | DMGL_NO_RECURSE_LIMIT,
					  append, output) != 0;
}

static size_t count_of(const char *name, const char *part)
{
	size_t count = 0;

	for (name = strstr(name, part); name != NULL; name = strstr(name + 1, part))
		count++;
	return count;
}

/* Whether the name may keep libiberty busy for longer than a report takes. */
static bool is_endless(const char *name)
{
	size_t references = 0;

	for (const char *at = strchr(name, 'S'); at != NULL; at = strchr(at + 1, 'S')) {
		const char *end = at + 1 + strspn(at + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");

		references += *end == '_';
	}
	return count_of(name, "cv") > CONVERSIONS_MOST ||
	       (references > REFERENCES_MOST && strstr(name, "Dp") != NULL);
}

bool tool_demangle(const char *name, char *text, size_t size)
{
	struct output output = {.text = text, .room = size - 1};

	if (name[0] != '_' || strnlen(name, LENGTH_MOST + 1) > LENGTH_MOST || is_endless(name) ||
	    !demangle(name, &output))
		return false;
	text[output.length] = 0;
	return true;
}
