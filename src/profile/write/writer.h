/* SPDX-License-Identifier: MIT
 *
 * What all writers share: their table of functions, columns in temporary files, and texts in
 * JSON.
 */
#ifndef INCSTACK_PROFILE_WRITER_H
#define INCSTACK_PROFILE_WRITER_H

#include "profile/cct.h"
#include "profile/files.h"

struct incstack__writer_ops {
	size_t size; /* of the format's own struct, which starts with the common one */
	int (*begin)(struct incstack__profile_writer *writer);
	int (*add)(struct incstack__profile_writer *writer);
	int (*finish)(struct incstack__profile_writer *writer);
	void (*release)(struct incstack__profile_writer *writer); /* also after an error */
};

struct incstack__profile_writer {
	const struct incstack__writer_ops *ops;
	const struct incstack_profile *profile;
	uint32_t kind;
	FILE *stream;
	int error; /* the first one; nothing is written after it */
};

/* Begins to write; EINVAL if `ops` is null. */
int incstack__writer_begin(const struct incstack_profile *profile,
			   const struct incstack__writer_ops *ops, uint32_t kind, FILE *stream,
			   struct incstack__profile_writer **writer);

extern const struct incstack__writer_ops incstack__write_folded;
extern const struct incstack__writer_ops incstack__write_pprof;
extern const struct incstack__writer_ops incstack__write_speedscope;
extern const struct incstack__writer_ops incstack__write_firefox;
extern const struct incstack__writer_ops incstack__write_html;
extern const struct incstack__writer_ops incstack__write_otlp;

/* Writes the threads of the timeline for the Firefox Profiler. */
int incstack__write_threads(const struct incstack_profile *profile, FILE *stream);

/* A JSON array that grows at the same time as others. Its elements are in a temporary file. */
struct incstack__column {
	FILE *file;
	uint64_t count;
};

int incstack__column_open(struct incstack__column *column);
void incstack__column_number(struct incstack__column *column, uint64_t number);
void incstack__column_null(struct incstack__column *column);
/* Starts an element that the caller writes to column->file. */
void incstack__column_next(struct incstack__column *column);
/* Writes all elements, without brackets. May be called again. */
int incstack__column_copy(struct incstack__column *column, FILE *stream);
void incstack__column_close(struct incstack__column *column);

/* Writes a string of JSON that is valid inside a script, too. */
void incstack__json_text(const char *text, size_t length, FILE *stream);
void incstack__json_string(const char *text, FILE *stream);
void incstack__json_frame(const struct incstack_profile *profile, uint32_t frame, FILE *stream);
void incstack__json_number(uint64_t number, FILE *stream);
/* Writes the elements of a column whose rows are all equal. */
void incstack__json_same(const char *name, uint64_t rows, const char *row, FILE *stream);
/* Writes a column that numbers the rows, from 0 on. */
void incstack__json_counting(const char *name, uint64_t rows, FILE *stream);
/* Writes the meta data as members of an object, without braces. */
void incstack__json_meta(const struct incstack_profile *profile, FILE *stream);

#endif
