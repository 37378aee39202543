/* SPDX-License-Identifier: MIT
 *
 * The table of the formats: one row for each. Profiles are read and written through it.
 */
#include <string.h>

#include "read/reader.h"
#include "write/writer.h"
#include "files.h"

static const struct format {
	const char *name, *suffix;
	int (*read)(struct incstack__reader *reader); /* null: it can only be written */
	const struct incstack__writer_ops *write;
} formats[] = {
	[INCSTACK_FORMAT_FOLDED] = {"folded", ".folded", incstack__read_folded,
				    &incstack__write_folded},
	[INCSTACK_FORMAT_PPROF] = {"pprof", ".pb.gz", incstack__read_pprof, &incstack__write_pprof},
	[INCSTACK_FORMAT_SPEEDSCOPE] = {"speedscope", ".speedscope.json", incstack__read_speedscope,
					&incstack__write_speedscope},
	[INCSTACK_FORMAT_FIREFOX] = {"firefox", ".firefox.json", incstack__read_firefox,
				     &incstack__write_firefox},
	[INCSTACK_FORMAT_HTML] = {"html", ".html", NULL, &incstack__write_html},
};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* Returns the row of a format, or the empty row 0 if there is no such format. */
static const struct format *row_of(enum incstack_profile_format format)
{
	return &formats[(unsigned)format < FORMATS ? (unsigned)format : 0];
}

static int ending(const char *path, const char *suffix)
{
	const size_t length = strlen(path), size = strlen(suffix);

	return length > size && !memcmp(path + length - size, suffix, size);
}

int incstack_profile_format_of(const char *path)
{
	for (int i = INCSTACK_FORMAT_FOLDED; path && i < FORMATS; i++)
		if (!strcmp(path, formats[i].name) || ending(path, formats[i].suffix))
			return i;
	return 0;
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
	error = row->read(&reader);
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
