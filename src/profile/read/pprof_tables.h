/* SPDX-License-Identifier: MIT
 *
 * The tables of a pprof file: strings, functions, locations, sample types.
 */
#ifndef INCSTACK_PROFILE_PPROF_TABLES_H
#define INCSTACK_PROFILE_PPROF_TABLES_H

#include <pb_decode.h>

#include "reader.h"

struct incstack__pprof_text {
	size_t offset;
	uint32_t length;
};

struct incstack__pprof_function {
	uint64_t id;
	uint64_t name, file; /* in the string table */
};

struct incstack__pprof_line {
	uint64_t function;
	uint32_t frame; /* of the profile, once that exists */
	int32_t line;
};

struct incstack__pprof_mapping {
	uint64_t id;
	uint64_t start, limit, offset;
	uint64_t file, build_id; /* in the string table */
	uint32_t has;
	uint32_t number; /* in the profile, once that exists; from 1 */
};

/* A location. Its lines are [first, first + count), innermost first. Once the profile exists,
 * count is not 0. */
struct incstack__pprof_location {
	uint64_t id, address, mapping, folded;
	uint32_t first, count;
};

struct incstack__pprof_tables {
	char *bytes; /* of the strings */
	size_t bytes_used, bytes_room;
	struct incstack__pprof_text *texts;
	size_t texts_used, texts_room;
	struct incstack__pprof_function *functions;
	size_t functions_used, functions_room;
	struct incstack__table function_table;
	struct incstack__pprof_location *locations;
	size_t locations_used, locations_room;
	struct incstack__table location_table;
	struct incstack__pprof_mapping *mappings;
	size_t mappings_used, mappings_room;
	struct incstack__table mapping_table;
	struct incstack__pprof_line *lines;
	size_t lines_used, lines_room;
	uint64_t kinds[INCSTACK_PROFILE_KINDS_MAX][2]; /* name and unit, in the string table */
	uint32_t kinds_used;
	uint64_t entries_most; /* of all tables; see pprof_read.c */
	uint64_t *comments;    /* in the string table */
	size_t comments_used, comments_room;
	uint64_t time_ns, duration_ns;
	uint64_t period, period_type[2], default_kind; /* the last two in the string table */
	uint32_t keep;                                 /* INCSTACK_KEEP_* */
	uint32_t losses; /* INCSTACK__LOSS_*: what was read and is not kept */
};

int incstack__pprof_tables_init(struct incstack__pprof_tables *tables);
void incstack__pprof_tables_free(struct incstack__pprof_tables *tables);

/* Reads a field of the outermost message. An error of the input sets *why. */
int incstack__pprof_table(struct incstack__pprof_tables *tables, uint32_t field,
			  pb_istream_t *bytes, const char **why);
int incstack__pprof_number(struct incstack__pprof_tables *tables, uint32_t field, uint64_t number);

/* How many entries all tables have. */
static inline size_t incstack__pprof_entries(const struct incstack__pprof_tables *tables)
{
	return tables->texts_used + tables->functions_used + tables->locations_used +
	       tables->mappings_used + tables->lines_used + tables->comments_used;
}

/* Makes the profile without samples, and the frames of all lines. */
int incstack__pprof_profile(struct incstack__pprof_tables *tables,
			    struct incstack_profile **profile, const char **why);

/* pprof_fields.c. Sets *why and returns INCSTACK_EFORMAT. */
int incstack__pprof_damaged(const char **why);

/* Reads the numbers of a message by field, up to `count` fields, and skips the rest. */
int incstack__pprof_numbers(pb_istream_t *bytes, uint64_t *numbers, uint32_t count,
			    const char **why);

/* Returns a string, or null if there is none, or if it is not UTF-8 without NUL. */
const char *incstack__pprof_string(const struct incstack__pprof_tables *tables, uint64_t string);

/* Makes a string a name of the profile. *name is its number + 1, or 0 if the string is empty or not
 * valid. *valid is false if the string is not valid. */
int incstack__pprof_name(const struct incstack__pprof_tables *tables, uint64_t string,
			 struct incstack_profile *profile, uint32_t *name, bool *valid);

/* Gives the meta data of the file to the profile. */
int incstack__pprof_meta(const struct incstack__pprof_tables *tables,
			 struct incstack_profile *profile);

/* The first of these functions reads a mapping. The second gives all mappings to the profile. The
 * third gives the module and the place of a location to its frame. What cannot be kept is noted as a
 * loss. */
int incstack__pprof_add_mapping(struct incstack__pprof_tables *tables, pb_istream_t *bytes,
				const char **why);
int incstack__pprof_mappings(struct incstack__pprof_tables *tables,
			     struct incstack_profile *profile);
int incstack__pprof_place(struct incstack__pprof_tables *tables, struct incstack_profile *profile,
			  const struct incstack__pprof_location *location,
			  struct incstack__frame *frame);

/* Returns the location with this identifier, or null. */
const struct incstack__pprof_location *
incstack__pprof_location(const struct incstack__pprof_tables *tables, uint64_t id);

#endif
