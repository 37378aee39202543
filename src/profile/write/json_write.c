/* SPDX-License-Identifier: MIT
 *
 * Writes JSON: strings, numbers, and columns that are kept in temporary files.
 */
#include <inttypes.h>
#include <string.h>

#include "writer.h"

static void put_byte(unsigned char byte, FILE *stream)
{
	if (byte < 0x20 || byte == '"' || byte == '\\' || byte == '<' || byte == 0x7f)
		fprintf(stream, "\\u%04x", byte);
	else
		putc_unlocked(byte, stream);
}

/* U+2028 and U+2029 need no escape: since ES2019 a string of a script may contain them. */
void incstack__json_text(const char *text, size_t length, FILE *stream)
{
	putc_unlocked('"', stream);
	for (size_t i = 0; i < length; i++)
		put_byte((unsigned char)text[i], stream);
	putc_unlocked('"', stream);
}

void incstack__json_string(const char *text, FILE *stream)
{
	incstack__json_text(text, strlen(text), stream);
}

void incstack__json_frame(const struct incstack_profile *profile, uint32_t frame, FILE *stream)
{
	char buffer[INCSTACK__FRAME_TEXT];
	size_t length;
	const char *text = incstack__frame_text(profile, frame, buffer, &length);

	incstack__json_text(text, length, stream);
}

/* Writes a number. There are many, and fprintf would be slower. */
void incstack__json_number(uint64_t number, FILE *stream)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, stream);
}

void incstack__json_meta(const struct incstack_profile *profile, FILE *stream)
{
	const struct incstack_profile_meta *meta = &profile->meta;

	fputs("\"program\":", stream);
	incstack__json_string(meta->program ? meta->program : "", stream);
	fputs(",\"mode\":", stream);
	incstack__json_string(meta->mode ? meta->mode : "", stream);
	fprintf(stream,
		",\"time_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64 ",\"lost\":%" PRIu64
		",\"truncated\":%" PRIu64 ",\"pruned\":%" PRIu64,
		meta->time_ns, meta->duration_ns, meta->lost, meta->truncated, meta->pruned);
}

void incstack__json_same(const char *name, uint64_t rows, const char *row, FILE *stream)
{
	fprintf(stream, ",\"%s\":[", name);
	for (uint64_t i = 0; i < rows; i++) {
		if (i)
			putc_unlocked(',', stream);
		fputs(row, stream);
	}
	putc_unlocked(']', stream);
}

void incstack__json_counting(const char *name, uint64_t rows, FILE *stream)
{
	fprintf(stream, ",\"%s\":[", name);
	for (uint64_t i = 0; i < rows; i++) {
		if (i)
			putc_unlocked(',', stream);
		incstack__json_number(i, stream);
	}
	putc_unlocked(']', stream);
}

int incstack__column_open(struct incstack__column *column)
{
	column->count = 0;
	column->file = tmpfile();
	return column->file ? 0 : INCSTACK_EIO;
}

void incstack__column_next(struct incstack__column *column)
{
	if (column->count++)
		putc_unlocked(',', column->file);
}

void incstack__column_number(struct incstack__column *column, uint64_t number)
{
	incstack__column_next(column);
	incstack__json_number(number, column->file);
}

void incstack__column_null(struct incstack__column *column)
{
	incstack__column_next(column);
	fputs("null", column->file);
}

int incstack__column_copy(struct incstack__column *column, FILE *stream)
{
	char buffer[1 << 15];
	size_t got;

	if (fflush(column->file) || fseek(column->file, 0, SEEK_SET))
		return INCSTACK_EIO;
	while ((got = fread(buffer, 1, sizeof(buffer), column->file)) > 0)
		fwrite(buffer, 1, got, stream);
	return ferror(column->file) || ferror(stream) ? INCSTACK_EIO : 0;
}

void incstack__column_close(struct incstack__column *column)
{
	if (column->file)
		fclose(column->file);
	column->file = NULL;
}
