/* SPDX-License-Identifier: MIT
 *
 * Reads and writes files in parts, and says what a format cannot have. For the program incstack only.
 * Conventions as in profile.h.
 */
#ifndef INCSTACK_PROFILE_FILES_H
#define INCSTACK_PROFILE_FILES_H

#include <incstack/profile.h>

/* Options for reading a file; a null pointer means all zero. */
struct incstack__profile_input {
	uint32_t nodes_max; /* how many nodes the profile may have before full is called; 0: any */
	/* Called between two records once the profile has nodes_max nodes. It must prune the
	 * profile, or write and clear it. If it returns an error, reading ends with it. Only
	 * folded and pprof files call it. */
	int (*full)(void *context, struct incstack_profile *profile);
	/* Called from time to time with the number of bytes read so far. May be null. */
	void (*progress)(void *context, uint64_t bytes);
	void *context; /* passed to both */
	uint32_t keep; /* INCSTACK_KEEP_* */
};

/* Whether files of this format can be written.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
int incstack__profile_format_writes(int format);

/* Whether the name of a file shows, behind its format, that the file is packed by gzip or zstd. A pprof file is
 * packed anyhow.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
int incstack__profile_format_packed(const char *path);

/* Returns the format of another program's file by its first bytes, and goes back to the beginning of the
 * stream, which must be able to seek; 0: it is none of these.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on the stream. */
int incstack__profile_format_guess(FILE *stream);

/* As incstack_profile_read, with these options.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: on the stream. */
int incstack__profile_read(FILE *stream, enum incstack_profile_format format,
			   const struct incstack__profile_input *input,
			   struct incstack_profile **profile,
			   struct incstack_profile_problem *problem);

/* Details that conversion between files can lose. Weights and names are never lost. */
enum incstack__profile_loss {
	INCSTACK__LOSS_LABELS = 1u << 0,    /* pprof: labels of samples (INCSTACK_KEEP_LABELS) */
	INCSTACK__LOSS_MAPPINGS = 1u << 1,  /* mappings and addresses (INCSTACK_KEEP_MAPPINGS) */
	INCSTACK__LOSS_FUNCTIONS = 1u << 2, /* system names, start lines, columns, filters, URL */
	INCSTACK__LOSS_FILES = 1u << 3,     /* names of source files */
	INCSTACK__LOSS_LINES = 1u << 4,     /* line numbers; when reading, those beyond 2^31 - 1 */
	INCSTACK__LOSS_INLINING = 1u << 5,  /* which frames are inlined */
	INCSTACK__LOSS_KINDS = 1u << 6,     /* all kinds of weight but one */
	INCSTACK__LOSS_UNIT = 1u << 7, /* the kind's name and unit, read as "samples", "count" */
	INCSTACK__LOSS_META = 1u << 8, /* struct incstack_profile_meta */
	INCSTACK__LOSS_COMMENTS = 1u << 9, /* pprof: comments of other programs */
	INCSTACK__LOSS_PERIOD = 1u << 10,  /* pprof: period and default sample type */
	INCSTACK__LOSS_NAMES = 1u << 11,   /* folded: ';' and newlines in names */
	INCSTACK__LOSS_FRACTIONS = 1u
				   << 12, /* JSON: weights are rounded; their sum does not change */
	INCSTACK__LOSS_THREADS =
		1u << 13, /* JSON of other programs: the thread or profile, its name */
	INCSTACK__LOSS_FRAME_KINDS = 1u << 14, /* enum incstack_frame_kind */
};

/* Returns INCSTACK__LOSS_*: the details of the source file that the profile does not have, and
 * those of the profile that a file of `format` cannot have. format 0: only the former.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
uint32_t incstack__profile_losses(const struct incstack_profile *profile,
				  enum incstack_profile_format format, uint32_t kind);

/* Returns the description of one bit, for messages; null if the bit is unknown.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
const char *incstack__profile_loss_text(uint32_t loss);

/* Says which kind users see first, and what a sample stands for: `period` of a kind of event, for example
 * 10,000,000 {"cpu", "nanoseconds"}. pprof files contain both, and speedscope files the former.
 * Errors: EINVAL, ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_set_default(struct incstack_profile *profile, uint32_t kind,
				  const struct incstack_profile_kind *event, uint64_t period);

/* Writes a profile in parts, if it does not fit into memory: call begin, then add for each
 * part, then finish. All parts use the same profile, which is cleared between them. A
 * context that occurs in several parts occurs several times in the file; readers sum its
 * weights. HTML has one part only. The caller keeps the stream and closes it. */
struct incstack__profile_writer;

/* Writes the beginning of the file and creates the writer. Errors: EINVAL, ENOMEM, EIO.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
int incstack__profile_writer_begin(const struct incstack_profile *profile,
				   enum incstack_profile_format format, uint32_t kind, FILE *stream,
				   struct incstack__profile_writer **writer);

/* Writes the current content of the profile as one part. Errors: as write.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
int incstack__profile_writer_add(struct incstack__profile_writer *writer);

/* Completes the file and frees the writer, also after an error. If `complete` is 0, it only
 * frees the writer. Errors: as write.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: on the stream. */
int incstack__profile_writer_finish(struct incstack__profile_writer *writer, int complete);

#endif
