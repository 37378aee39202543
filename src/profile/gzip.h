/* SPDX-License-Identifier: MIT
 *
 * Reads streams that are compressed with gzip or zstd, or plain, and writes gzip.
 */
#ifndef INCSTACK_PROFILE_GZIP_H
#define INCSTACK_PROFILE_GZIP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <zlib.h>
#include <zstd.h>

enum { INCSTACK__GZIP_CHUNK = 1 << 16 };

enum incstack__packing {
	INCSTACK__PACKED_NOT,
	INCSTACK__PACKED_GZIP,
	INCSTACK__PACKED_ZSTD,
};

/* Reads gzip or zstd data of one or several parts, or bytes that are not compressed. */
struct incstack__inflater {
	FILE *stream;
	z_stream zlib; /* its next_in and avail_in are the bytes in `input`, in all cases */
	ZSTD_DStream *zstd;
	enum incstack__packing packing;
	bool in_part, over; /* a part is a member of gzip, or a frame of zstd */
	bool has_more;      /* zstd has bytes that did not fit into `output` */
	uint64_t read;      /* bytes taken from the stream */
	uint64_t inflated;  /* bytes delivered */
	const char *why;    /* the first failure that is not a failure of the stream */
	unsigned char input[INCSTACK__GZIP_CHUNK];
	unsigned char output[INCSTACK__GZIP_CHUNK];
	size_t start, end; /* of the bytes in `output` that are not delivered yet */
};

int incstack__inflater_open(struct incstack__inflater *inflater, FILE *stream);
/* Reads exactly `size` bytes. EFORMAT with a null `why` means that the stream ended first. */
int incstack__inflater_read(struct incstack__inflater *inflater, void *bytes, size_t size);
/* Reads up to `size` bytes. *got becomes their number, which is 0 at the end of the stream only. */
int incstack__inflater_some(struct incstack__inflater *inflater, void *bytes, size_t size,
			    size_t *got);
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
