/* SPDX-License-Identifier: MIT
 *
 * The table of the formats: one row for each. Profiles are read and written through it.
 */
#include <stdlib.h>
#include <string.h>

#include "read/foreign.h"
#include "read/guess.h"
#include "read/unpack.h"
#include "write/writer.h"
#include "files.h"

static const struct format {
	const char *name, *suffix;
	int (*read)(struct incstack__reader *reader); /* null: it can only be written */
	const struct incstack__writer_ops *write;     /* null: it can only be read */
	bool unpacks;                                 /* the reader knows of compression */
} formats[] = {
	[INCSTACK_FORMAT_FOLDED] = {.name = "folded",
				    .suffix = ".folded",
				    .read = incstack__read_folded,
				    .write = &incstack__write_folded},
	[INCSTACK_FORMAT_PPROF] = {.name = "pprof",
				   .suffix = ".pb.gz",
				   .read = incstack__read_pprof,
				   .write = &incstack__write_pprof,
				   .unpacks = true},
	[INCSTACK_FORMAT_SPEEDSCOPE] = {.name = "speedscope",
					.suffix = ".speedscope.json",
					.read = incstack__read_speedscope,
					.write = &incstack__write_speedscope},
	[INCSTACK_FORMAT_FIREFOX] = {.name = "firefox",
				     .suffix = ".firefox.json",
				     .read = incstack__read_firefox,
				     .write = &incstack__write_firefox},
	[INCSTACK_FORMAT_HTML] = {.name = "html",
				  .suffix = ".html",
				  .write = &incstack__write_html},
	[INCSTACK_FORMAT_PERF_SCRIPT] = {.name = "perf-script", .read = incstack__read_perf_script},
	[INCSTACK_FORMAT_HEAPTRACK] = {.name = "heaptrack", .read = incstack__read_heaptrack},
	[INCSTACK_FORMAT_MASSIF] = {.name = "massif", .read = incstack__read_massif},
	[INCSTACK_FORMAT_DHAT] = {.name = "dhat", .read = incstack__read_dhat},
	[INCSTACK_FORMAT_OTLP] = {.name = "otlp",
				  .suffix = ".otlp.pb",
				  .read = incstack__read_otlp,
				  .write = &incstack__write_otlp},
};
enum { GUESS_BYTES = 4096 };
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* Returns the row of a format, or the empty row 0 if there is no such format. */
static const struct format *row_of(enum incstack_profile_format format)
{
	return &formats[(unsigned)format < FORMATS ? (unsigned)format : 0];
}

static bool ends_with(const char *path, size_t length, const char *suffix)
{
	const size_t size = suffix ? strlen(suffix) : 0;

	return size && length > size && !memcmp(path + length - size, suffix, size);
}

/* Returns the length of a path without the suffix of a packed file. */
static size_t unpacked_length(const char *path)
{
	const size_t length = strlen(path);

	if (ends_with(path, length, ".gz"))
		return length - 3;
	return ends_with(path, length, ".zst") ? length - 4 : length;
}

int incstack_profile_format_of(const char *path)
{
	int found = 0;

	for (int i = INCSTACK_FORMAT_FOLDED; path && i < FORMATS; i++) {
		if (!strcmp(path, formats[i].name))
			return i;
		if (ends_with(path, strlen(path), formats[i].suffix) ||
		    ends_with(path, unpacked_length(path), formats[i].suffix))
			found = i; /* the last: .otlp.pb.gz also ends in .pb.gz */
	}
	return found;
}

int incstack__profile_format_packed(const char *path)
{
	const struct format *row =
		row_of((enum incstack_profile_format)incstack_profile_format_of(path));

	return row->suffix && strcmp(path, row->name) != 0 &&
	       !ends_with(path, strlen(path), row->suffix);
}

int incstack__profile_format_writes(int format)
{
	return row_of((enum incstack_profile_format)format)->write != NULL;
}

int incstack__profile_format_guess(FILE *stream)
{
	char bytes[GUESS_BYTES + 1] = "";
	struct incstack__unpacker *unpacker = calloc(1, sizeof(*unpacker));
	size_t got = 0;

	if (unpacker && !incstack__unpacker_open(unpacker, stream))
		got = fread(bytes, 1, GUESS_BYTES, unpacker->plain);
	if (unpacker)
		incstack__unpacker_close(unpacker);
	free(unpacker);
	rewind(stream);
	return got ? incstack__guess(bytes, got) : 0;
}

/* Reads through an unpacker, unless the format's reader unpacks by itself. */
static int read_unpacked(const struct format *row, struct incstack__reader *reader)
{
	struct incstack__unpacker *unpacker;
	int error;

	if (row->unpacks)
		return row->read(reader);
	unpacker = calloc(1, sizeof(*unpacker));
	if (!unpacker)
		return INCSTACK_ENOMEM;
	error = incstack__unpacker_open(unpacker, reader->stream);
	reader->stream = unpacker->plain;
	if (!error)
		error = row->read(reader);
	if (error == INCSTACK_EIO && unpacker->error)
		error = unpacker->error;
	if (unpacker->inflater.why)
		reader->at.why = unpacker->inflater.why;
	incstack__unpacker_close(unpacker);
	free(unpacker);
	return error;
}

int incstack__profile_read(FILE *stream, enum incstack_profile_format format,
			   const struct incstack__profile_input *input,
			   struct incstack_profile **profile,
			   struct incstack_profile_problem *problem)
{
	static const struct incstack__profile_input plain;
	struct incstack__reader reader = {.stream = stream,
					  .input = input ? input : &plain,
					  .at = {.size = sizeof(reader.at)}};
	const struct format *row = row_of(format);
	int error;

	if (problem && problem->size != sizeof(*problem))
		return INCSTACK_EINVAL;
	if (problem)
		*problem = reader.at;
	if (!stream || !profile || !row->read)
		return INCSTACK_EINVAL;
	error = read_unpacked(row, &reader);
	if (problem)
		*problem = reader.at;
	if (error)
		incstack_profile_destroy(reader.profile);
	else
		*profile = reader.profile;
	return error;
}

int incstack_profile_read(FILE *stream, enum incstack_profile_format format, uint32_t keep,
			  struct incstack_profile **profile,
			  struct incstack_profile_problem *problem)
{
	if (keep & ~(uint32_t)(INCSTACK_KEEP_LABELS | INCSTACK_KEEP_MAPPINGS))
		return INCSTACK_EINVAL;
	return incstack__profile_read(
		stream, format, &(struct incstack__profile_input){.keep = keep}, profile, problem);
}

int incstack__profile_writer_begin(const struct incstack_profile *profile,
				   enum incstack_profile_format format, uint32_t kind, FILE *stream,
				   struct incstack__profile_writer **writer)
{
	return incstack__writer_begin(profile, row_of(format)->write, kind, stream, writer);
}

int incstack_profile_write(const struct incstack_profile *profile,
			   enum incstack_profile_format format, uint32_t kind, FILE *stream)
{
	struct incstack__profile_writer *writer;
	int error = incstack__profile_writer_begin(profile, format, kind, stream, &writer);

	if (error)
		return error;
	(void)incstack__profile_writer_add(writer);
	return incstack__profile_writer_finish(writer, 1);
}
