/* SPDX-License-Identifier: MIT
 *
 * Reads and writes gzip streams with bounded memory.
 */
#include <string.h>

#include <incstack/profile.h>

#include "gzip.h"

enum { WINDOW = 15, GZIP_ONLY = 16 };

static int take_input(struct incstack__inflater *inflater)
{
	z_stream *z = &inflater->zlib;

	z->next_in = inflater->input;
	z->avail_in = (uInt)fread(inflater->input, 1, sizeof(inflater->input), inflater->stream);
	inflater->read += z->avail_in;
	return ferror(inflater->stream) ? INCSTACK_EIO : 0;
}

int incstack__inflater_open(struct incstack__inflater *inflater, FILE *stream)
{
	int error;

	memset(inflater, 0, sizeof(*inflater));
	inflater->stream = stream;
	if (inflateInit2(&inflater->zlib, WINDOW + GZIP_ONLY) != Z_OK)
		return INCSTACK_ENOMEM;
	error = take_input(inflater);
	inflater->gzip = inflater->zlib.avail_in >= 2 && inflater->input[0] == 0x1f &&
			 inflater->input[1] == 0x8b;
	return error;
}

static int refuse(struct incstack__inflater *inflater, const char *why)
{
	inflater->why = why;
	return INCSTACK_EFORMAT;
}

static int inflate_some(struct incstack__inflater *inflater)
{
	z_stream *z = &inflater->zlib;
	int result;

	z->next_out = inflater->output;
	z->avail_out = sizeof(inflater->output);
	result = inflate(z, Z_NO_FLUSH);
	inflater->start = 0;
	inflater->end = sizeof(inflater->output) - z->avail_out;
	inflater->in_member = true;
	if (result == Z_STREAM_END) {
		inflater->in_member = false;
		return inflateReset(z) == Z_OK ? 0 : INCSTACK_ENOMEM;
	}
	if (result == Z_MEM_ERROR)
		return INCSTACK_ENOMEM;
	return result == Z_OK || result == Z_BUF_ERROR
		       ? 0
		       : refuse(inflater, "the gzip data are damaged");
}

static void pass_through(struct incstack__inflater *inflater)
{
	z_stream *z = &inflater->zlib;

	memcpy(inflater->output, z->next_in, z->avail_in);
	inflater->start = 0;
	inflater->end = z->avail_in;
	z->avail_in = 0;
}

static int refill(struct incstack__inflater *inflater)
{
	z_stream *z = &inflater->zlib;
	int error = z->avail_in ? 0 : take_input(inflater);

	inflater->start = 0;
	inflater->end = 0;
	if (error)
		return error;
	if (!z->avail_in) {
		inflater->over = true;
		return inflater->in_member ? refuse(inflater, "the gzip data are cut off") : 0;
	}
	if (inflater->gzip)
		return inflate_some(inflater);
	pass_through(inflater);
	return 0;
}

int incstack__inflater_read(struct incstack__inflater *inflater, void *bytes, size_t size)
{
	unsigned char *to = bytes;

	while (size) {
		size_t ready = inflater->end - inflater->start;
		size_t part = ready < size ? ready : size;

		memcpy(to, inflater->output + inflater->start, part);
		inflater->start += part;
		inflater->inflated += part;
		to += part;
		size -= part;
		if (size) {
			int error = refill(inflater);

			if (error)
				return error;
			if (inflater->over)
				return INCSTACK_EFORMAT;
		}
	}
	return 0;
}

void incstack__inflater_close(struct incstack__inflater *inflater)
{
	(void)inflateEnd(&inflater->zlib);
}

int incstack__deflater_open(struct incstack__deflater *deflater, FILE *stream)
{
	memset(&deflater->zlib, 0, sizeof(deflater->zlib));
	deflater->stream = stream;
	return deflateInit2(&deflater->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW + GZIP_ONLY,
			    8, Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : INCSTACK_ENOMEM;
}

static int deflate_all(struct incstack__deflater *deflater, int flush)
{
	z_stream *z = &deflater->zlib;

	do {
		size_t made;

		z->next_out = deflater->output;
		z->avail_out = sizeof(deflater->output);
		(void)deflate(z, flush);
		made = sizeof(deflater->output) - z->avail_out;
		if (fwrite(deflater->output, 1, made, deflater->stream) != made)
			return INCSTACK_EIO;
	} while (!z->avail_out);
	return 0;
}

int incstack__deflater_write(struct incstack__deflater *deflater, const void *bytes, size_t size)
{
	deflater->zlib.next_in = (z_const Bytef *)(uintptr_t)bytes;
	deflater->zlib.avail_in = (uInt)size;
	return deflate_all(deflater, Z_NO_FLUSH);
}

int incstack__deflater_finish(struct incstack__deflater *deflater)
{
	deflater->zlib.avail_in = 0;
	return deflate_all(deflater, Z_FINISH);
}

void incstack__deflater_close(struct incstack__deflater *deflater)
{
	(void)deflateEnd(&deflater->zlib);
}
