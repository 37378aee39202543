/* SPDX-License-Identifier: MIT
 *
 * Reads compressed or plain streams, and writes compressed ones.
 */
#ifndef INCSTACK_PROFILE_GZIP_H
#define INCSTACK_PROFILE_GZIP_H

#include <stdbool.h>
#include <stdio.h>

#include <zlib.h>

enum { INCSTACK__GZIP_CHUNK = 1 << 16 };

/* Reads gzip data of one or several members, or bytes that are not compressed. */
struct incstack__inflater {
	FILE *stream;
	z_stream zlib;
	bool gzip, in_member, over;
	uint64_t read;     /* bytes taken from the stream */
	uint64_t inflated; /* bytes delivered */
	const char *why;   /* the first failure that is not a failure of the stream */
	unsigned char input[INCSTACK__GZIP_CHUNK];
	unsigned char output[INCSTACK__GZIP_CHUNK];
	size_t start, end; /* of the bytes in `output` that are not delivered yet */
};

int incstack__inflater_open(struct incstack__inflater *inflater, FILE *stream);
/* Reads exactly `size` bytes. EFORMAT with a null `why` means that the stream ended first. */
int incstack__inflater_read(struct incstack__inflater *inflater, void *bytes, size_t size);
void incstack__inflater_close(struct incstack__inflater *inflater);

struct incstack__deflater {
	FILE *stream;
	z_stream zlib;
	unsigned char output[INCSTACK__GZIP_CHUNK];
};

int incstack__deflater_open(struct incstack__deflater *deflater, FILE *stream);
int incstack__deflater_write(struct incstack__deflater *deflater, const void *bytes, size_t size);
int incstack__deflater_finish(struct incstack__deflater *deflater);
void incstack__deflater_close(struct incstack__deflater *deflater);

#endif
