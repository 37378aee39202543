/* SPDX-License-Identifier: MIT
 *
 * Writes what a pprof file consists of: fields, and strings, each name once.
 */
#include <stdlib.h>
#include <string.h>

#include "profile/pprof.h"
#include "pprof_put.h"

int incstack__pprof_put_open(struct incstack__pprof_put *put,
			     const struct incstack_profile *profile, FILE *stream)
{
	int error = incstack__deflater_open(&put->gzip, stream);

	put->profile = profile;
	put->open = !error;
	return error;
}

void incstack__pprof_put_close(struct incstack__pprof_put *put)
{
	if (put->open)
		incstack__deflater_close(&put->gzip);
	free(put->strings_of);
}

int incstack__pprof_put_start(pb_byte_t **buffer, size_t *room, size_t size, pb_ostream_t *stream)
{
	int error = incstack__reserve((void **)buffer, room, size, 1);

	*stream = pb_ostream_from_buffer(*buffer, *room);
	return error;
}

bool incstack__pprof_put_number(pb_ostream_t *stream, uint32_t field, uint64_t value)
{
	return !value ||
	       (pb_encode_tag(stream, PB_WT_VARINT, field) && pb_encode_varint(stream, value));
}

/* Writes a field of the outermost message: its head, then its bytes. */
int incstack__pprof_put_field(struct incstack__pprof_put *put, uint32_t field, const void *bytes,
			      size_t size)
{
	pb_byte_t head[2 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(head, sizeof(head));
	int error;

	(void)pb_encode_tag(&stream, PB_WT_STRING, field);
	(void)pb_encode_varint(&stream, size);
	error = incstack__deflater_write(&put->gzip, head, stream.bytes_written);
	return error || !size ? error : incstack__deflater_write(&put->gzip, bytes, size);
}

int incstack__pprof_put_top_number(struct incstack__pprof_put *put, uint32_t field, uint64_t value)
{
	pb_byte_t bytes[2 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));

	(void)incstack__pprof_put_number(&stream, field, value);
	return incstack__deflater_write(&put->gzip, bytes, stream.bytes_written);
}

int incstack__pprof_put_string(struct incstack__pprof_put *put, const char *text, size_t length,
			       uint64_t *index)
{
	*index = put->strings++;
	return incstack__pprof_put_field(put, PPROF_STRING, text, length);
}

int incstack__pprof_put_name(struct incstack__pprof_put *put, uint32_t name, uint64_t *string)
{
	const struct incstack_profile *profile = put->profile;
	const char *text;
	int error;

	*string = 0;
	if (!name)
		return 0;
	error = incstack__reserve((void **)&put->strings_of, &put->strings_room,
				  profile->names_used, sizeof(*put->strings_of));
	if (error)
		return error;
	while (put->names < profile->names_used)
		put->strings_of[put->names++] = 0;
	*string = put->strings_of[name - 1];
	if (*string)
		return 0;
	text = incstack__text(profile, name - 1);
	error = incstack__pprof_put_string(put, text, strlen(text), string);
	put->strings_of[name - 1] = *string;
	return error;
}

int incstack__pprof_put_numbers(struct incstack__pprof_put *put, uint32_t field, uint64_t a,
				uint64_t b)
{
	pb_byte_t bytes[4 * INCSTACK__VARINT_MAX];
	pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));

	(void)incstack__pprof_put_number(&stream, 1, a);
	(void)incstack__pprof_put_number(&stream, 2, b);
	return incstack__pprof_put_field(put, field, bytes, stream.bytes_written);
}
