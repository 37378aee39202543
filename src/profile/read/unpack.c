/* SPDX-License-Identifier: MIT
 *
 * A stream over an inflater.
 */
#include "unpack.h"

#include <errno.h>

#include <incstack/error.h>

/* A file of a few bytes may unpack to any size. */
#define UNPACKED_LEAST (UINT64_C(256) << 20)
#define UNPACKED_EACH 2048

static ssize_t on_read(void *context, char *bytes, size_t size)
{
	struct incstack__unpacker *unpacker = context;
	size_t got = 0;

	if (!unpacker->error)
		unpacker->error = incstack__inflater_some(&unpacker->inflater, bytes, size, &got);
	if (unpacker->inflater.inflated >
	    UNPACKED_LEAST + unpacker->inflater.read * UNPACKED_EACH) {
		unpacker->inflater.why = "the file unpacks to more than 2,048 times its size";
		unpacker->error = INCSTACK_EFORMAT;
		got = 0;
	}
	if (!unpacker->error || got)
		return (ssize_t)got;
	if (unpacker->error != INCSTACK_EIO)
		errno = EBADMSG;
	return -1;
}

int incstack__unpacker_open(struct incstack__unpacker *unpacker, FILE *stream)
{
	static const cookie_io_functions_t functions = {.read = on_read};
	int error = incstack__inflater_open(&unpacker->inflater, stream);

	unpacker->is_open = true;
	unpacker->error = 0;
	unpacker->plain = error ? NULL : fopencookie(unpacker, "r", functions);
	if (error)
		return error;
	return unpacker->plain ? 0 : INCSTACK_ENOMEM;
}

void incstack__unpacker_close(struct incstack__unpacker *unpacker)
{
	if (!unpacker->is_open)
		return;
	if (unpacker->plain)
		fclose(unpacker->plain);
	incstack__inflater_close(&unpacker->inflater);
}
