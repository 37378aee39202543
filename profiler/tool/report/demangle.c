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

bool tool_demangle(const char *name, char *text, size_t size)
{
	struct output output = {.text = text, .room = size - 1};

	if (name[0] != '_' || strnlen(name, LENGTH_MOST + 1) > LENGTH_MOST ||
	    !demangle(name, &output))
		return false;
	text[output.length] = 0;
	return true;
}
