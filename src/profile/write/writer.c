/* SPDX-License-Identifier: MIT
 *
 * The steps of writing a profile, at once or in parts, for all formats.
 */
#include "writer.h"

#include <stdlib.h>

/* Runs a step, unless an earlier one has failed. */
static int step(struct incstack__profile_writer *writer,
		int (*run)(struct incstack__profile_writer *writer))
{
	if (!writer->error && run)
		writer->error = run(writer);
	if (!writer->error && ferror(writer->stream))
		writer->error = INCSTACK_EIO;
	return writer->error;
}

int incstack__writer_begin(const struct incstack_profile *profile,
			   const struct incstack__writer_ops *ops, uint32_t kind, FILE *stream,
			   struct incstack__profile_writer **writer)
{
	struct incstack__profile_writer *made;
	int error;

	if (!profile || !ops || kind >= profile->kinds || !stream || !writer)
		return INCSTACK_EINVAL;
	made = calloc(1, ops->size);
	if (!made)
		return INCSTACK_ENOMEM;
	*made = (struct incstack__profile_writer){
		.ops = ops, .profile = profile, .kind = kind, .stream = stream};
	error = step(made, ops->begin);
	if (error)
		(void)incstack__profile_writer_finish(made, 0);
	else
		*writer = made;
	return error;
}

int incstack__profile_writer_add(struct incstack__profile_writer *writer)
{
	return writer ? step(writer, writer->ops->add) : INCSTACK_EINVAL;
}

int incstack__profile_writer_finish(struct incstack__profile_writer *writer, int complete)
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
