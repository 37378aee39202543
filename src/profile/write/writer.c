/* SPDX-License-Identifier: MIT
 *
 * Writing a profile, whole or in parts: the door to the writers of the formats.
 */
#include "writer.h"

#include <stdlib.h>

static const struct incstack__writer_ops *ops_of(enum incstack_profile_format format)
{
	switch (format) {
	case INCSTACK_FORMAT_FOLDED:
		return &incstack__write_folded;
	case INCSTACK_FORMAT_PPROF:
		return &incstack__write_pprof;
	case INCSTACK_FORMAT_SPEEDSCOPE:
		return &incstack__write_speedscope;
	case INCSTACK_FORMAT_FIREFOX:
		return &incstack__write_firefox;
	case INCSTACK_FORMAT_HTML:
		return &incstack__write_html;
	}
	return NULL;
}

/* Runs one step unless an earlier one failed. */
static int step(struct incstack_profile_writer *writer,
		int (*run)(struct incstack_profile_writer *writer))
{
	if (!writer->error && run)
		writer->error = run(writer);
	if (!writer->error && ferror(writer->stream))
		writer->error = INCSTACK_EIO;
	return writer->error;
}

int incstack_profile_writer_begin(const struct incstack_profile *profile,
				  enum incstack_profile_format format, uint32_t kind, FILE *stream,
				  struct incstack_profile_writer **writer)
{
	const struct incstack__writer_ops *ops = ops_of(format);
	struct incstack_profile_writer *made;
	int error;

	if (!profile || !ops || kind >= profile->kinds || !stream || !writer)
		return INCSTACK_EINVAL;
	made = calloc(1, ops->size);
	if (!made)
		return INCSTACK_ENOMEM;
	*made = (struct incstack_profile_writer){
		.ops = ops, .profile = profile, .kind = kind, .stream = stream};
	error = step(made, ops->begin);
	if (error)
		(void)incstack_profile_writer_finish(made, 0);
	else
		*writer = made;
	return error;
}

int incstack_profile_writer_add(struct incstack_profile_writer *writer)
{
	return writer ? step(writer, writer->ops->add) : INCSTACK_EINVAL;
}

int incstack_profile_writer_finish(struct incstack_profile_writer *writer, int complete)
{
	int error;

	if (!writer)
		return INCSTACK_EINVAL;
	if (complete)
		(void)step(writer, writer->ops->finish);
	if (complete && !writer->error && fflush(writer->stream))
		writer->error = INCSTACK_EIO;
	error = writer->error;
	if (writer->ops->release)
		writer->ops->release(writer);
	free(writer);
	return error;
}

int incstack_profile_write(const struct incstack_profile *profile,
			   enum incstack_profile_format format, uint32_t kind, FILE *stream)
{
	struct incstack_profile_writer *writer;
	int error = incstack_profile_writer_begin(profile, format, kind, stream, &writer);

	if (error)
		return error;
	(void)incstack_profile_writer_add(writer);
	return incstack_profile_writer_finish(writer, 1);
}
