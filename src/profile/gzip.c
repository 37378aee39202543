/* SPDX-License-Identifier: MIT
 *
 * Reads and writes compressed streams with bounded memory.
 */
#include <string.h>

#include <zstd_errors.h>

#include <incstack/profile.h>

#include "gzip.h"

enum {
	WINDOW = 15,
	GZIP_ONLY = 16,
	ZSTD_WINDOW = 27, /* 128 MiB: what the program zstd reads without being asked */
};

static int take_input(struct incstack__inflater *inflater)
{
	z_stream *z = &inflater->zlib;

	z->next_in = inflater->input;
	z->avail_in = (uInt)fread(inflater->input, 1, sizeof(inflater->input), inflater->stream);
	inflater->read += z->avail_in;
	return ferror(inflater->stream) ? INCSTACK_EIO : 0;
}

static enum incstack__packing packing_of(const unsigned char *bytes, size_t count)
{
	if (count >= 2 && !memcmp(bytes, "\x1f\x8b", 2))
		return INCSTACK__PACKED_GZIP;
	return count >= 4 && !memcmp(bytes, "\x28\xb5\x2f\xfd", 4) ? INCSTACK__PACKED_ZSTD
								   : INCSTACK__PACKED_NOT;
}

static int open_zstd(struct incstack__inflater *inflater)
{
	inflater->zstd = ZSTD_createDStream();
	if (!inflater->zstd ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(inflater->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW)))
		return INCSTACK_ENOMEM;
	return 0;
}

int incstack__inflater_open(struct incstack__inflater *inflater, FILE *stream)
{
	int error;

	memset(inflater, 0, sizeof(*inflater));
	inflater->stream = stream;
	if (inflateInit2(&inflater->zlib, WINDOW + GZIP_ONLY) != Z_OK)
		return INCSTACK_ENOMEM;
	error = take_input(inflater);
	inflater->packing = packing_of(inflater->input, inflater->zlib.avail_in);
	if (!error && inflater->packing == INCSTACK__PACKED_ZSTD)
		error = open_zstd(inflater);
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
	inflater->in_part = true;
	if (result == Z_STREAM_END) {
		inflater->in_part = false;
		return inflateReset(z) == Z_OK ? 0 : INCSTACK_ENOMEM;
	}
	if (result == Z_MEM_ERROR)
		return INCSTACK_ENOMEM;
	return result == Z_OK || result == Z_BUF_ERROR
		       ? 0
		       : refuse(inflater, "the gzip data are damaged");
}

static int unpack_zstd(struct incstack__inflater *inflater)
{
	z_stream *z = &inflater->zlib;
	ZSTD_inBuffer in = {z->next_in, z->avail_in, 0};
	ZSTD_outBuffer out = {inflater->output, sizeof(inflater->output), 0};
	const size_t wanted = ZSTD_decompressStream(inflater->zstd, &out, &in);

	z->next_in += in.pos;
	z->avail_in -= (uInt)in.pos;
	inflater->end = out.pos;
	inflater->in_part = wanted > 0;
	inflater->has_more = wanted > 0 && out.pos == out.size;
	if (!ZSTD_isError(wanted))
		return 0;
	return ZSTD_getErrorCode(wanted) == ZSTD_error_memory_allocation
		       ? INCSTACK_ENOMEM
		       : refuse(inflater, "the zstd data are damaged, or need a window of more "
					  "than 128 MiB");
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
	int error = z->avail_in || inflater->has_more ? 0 : take_input(inflater);

	inflater->start = 0;
	inflater->end = 0;
	if (error)
		return error;
	if (!z->avail_in && !inflater->has_more) {
		inflater->over = true;
		return inflater->in_part ? refuse(inflater, "the compressed data are cut off") : 0;
	}
	switch (inflater->packing) {
	case INCSTACK__PACKED_GZIP:
		return inflate_some(inflater);
	case INCSTACK__PACKED_ZSTD:
		return unpack_zstd(inflater);
	default:
		pass_through(inflater);
		return 0;
	}
}

int incstack__inflater_some(struct incstack__inflater *inflater, void *bytes, size_t size,
			    size_t *got)
{
	size_t ready;
	int error = 0;

	while (inflater->start == inflater->end && !inflater->over && !error)
		error = refill(inflater);
	ready = inflater->end - inflater->start;
	*got = ready < size ? ready : size;
	memcpy(bytes, inflater->output + inflater->start, *got);
	inflater->start += *got;
	inflater->inflated += *got;
	return error;
}

int incstack__inflater_read(struct incstack__inflater *inflater, void *bytes, size_t size)
{
	unsigned char *to = bytes;

	while (size) {
		size_t got;
		int error = incstack__inflater_some(inflater, to, size, &got);

		if (error || !got)
			return error ? error : INCSTACK_EFORMAT;
		to += got;
		size -= got;
	}
	return 0;
}

void incstack__inflater_close(struct incstack__inflater *inflater)
{
	(void)inflateEnd(&inflater->zlib);
	(void)ZSTD_freeDStream(inflater->zstd);
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
